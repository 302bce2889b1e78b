"""`python -m offload_lab` is `offload-lab`."""

from offload_lab.cli import app

app(prog_name="offload-lab")
