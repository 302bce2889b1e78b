"""JSON from a file that anybody may have written. Pure."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def parsed(text: str) -> Any:
    """What `text` says. Raises ValueError where it is no JSON (NaN and Infinity are none), or nested too deeply to read."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise ValueError(f"it cannot be read as JSON ({error})") from None
    except RecursionError:
        raise ValueError("it cannot be read as JSON (nested too deeply)") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"it cannot be read as JSON ({name} is no number of JSON)")
