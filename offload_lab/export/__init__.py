"""A plan as another stack's configuration: DeepSpeed's, Accelerate's, or a script of FSDP2. Pure: no torch.

Each function takes a plan and returns a dict or text; what the other stack cannot do as planned is an `ExportError`, or a note
in the result.
"""

from offload_lab.export.accelerate import as_accelerate
from offload_lab.export.deepspeed import as_deepspeed
from offload_lab.export.fsdp import as_fsdp
from offload_lab.export.recipe import ExportError, Recipe, read_plan

__all__ = ["ExportError", "Recipe", "as_accelerate", "as_deepspeed", "as_fsdp", "read_plan"]
