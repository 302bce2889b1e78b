"""The tests of this folder share one module of strategies."""

import importlib.util
import sys
from pathlib import Path

if "interchange_making" not in sys.modules:
    spec = importlib.util.spec_from_file_location("interchange_making", Path(__file__).with_name("making.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["interchange_making"] = module
    spec.loader.exec_module(module)
