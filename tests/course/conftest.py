"""For the lessons: a machine with neither GPU nor network, and every lesson run once, whoever asks first."""

import os

import nbformat
import pytest
from nbclient import NotebookClient

from course import build, running

# Loaded by every Python of a lesson, its children's too. What tries to leave this machine is refused and written down, in
# case somebody swallows the error. The kernel's own channels are zmq's and do not pass here.
NO_NETWORK = """
import os, sys

def refuse(event, arguments):
    if event not in {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}:
        return
    address = arguments[0] if event.startswith("socket.get") else arguments[1]
    host = address[0] if isinstance(address, tuple) else address
    if isinstance(address, tuple) or event.startswith("socket.get"):
        if host not in {None, "", "localhost", "127.0.0.1", "::1", "0.0.0.0", b"localhost"}:
            with open(os.environ["LESSON_NETWORK_LOG"], "a") as log:
                log.write(f"{event} {host!r}\\n")
            raise OSError(f"no network in this test: {event} {host!r}")

sys.addaudithook(refuse)
"""


@pytest.fixture(scope="session")
def alone(tmp_path_factory):
    """The environment of a machine with neither GPU nor network; its log of refused connections."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "sitecustomize.py").write_text(NO_NETWORK)
    log = folder / "refused"
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    hidden = dict.fromkeys(["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"], "")
    kept = {  # what a learner keeps outside of the notebook
        "OFFLOAD_LAB_HARDWARE": str(folder / "hardware.json"),
        "OFFLOAD_LAB_PROGRESS": str(folder / "progress.json"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "OFFLOAD_LAB_PEERS": str(folder / "peers"),  # DeepSpeed is not installed, whatever this machine has
    }
    return os.environ | hidden | kept | {"PYTHONPATH": path, "LESSON_NETWORK_LOG": str(log)}, log


class Ran:
    """A lesson that was run from top to bottom: its cells by id, and the folder that it ran in."""

    def __init__(self, notebook, folder, widgets):
        self.notebook, self.folder, self.widgets = notebook, folder, widgets
        self.cells = {cell.id: cell for cell in notebook.cells}

    def outputs(self, name):
        return self.cells[name].get("outputs", [])

    def text(self, name):
        """What cell `name` printed or showed, as text."""
        parts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in self.outputs(name)]
        return "\n".join(parts)

    def html(self, name):
        return " ".join(output["data"]["text/html"] for output in self.outputs(name) if "text/html" in output.get("data", {}))


@pytest.fixture(scope="session")
def ran(tmp_path_factory, alone):
    """Call it with a lesson's number ("03"): the lesson as run once, in a folder with a space and an accent."""
    done = {}

    def run(number):
        if number not in done:
            (source,) = (source for source in build.targets() if source.name.startswith(f"{number}_"))
            folder = tmp_path_factory.mktemp(f"leçon {number}")
            notebook = nbformat.reads(build.build(source), as_version=4)
            resources = {"metadata": {"path": str(folder)}}
            client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources, allow_errors=True)
            client.execute(env=alone[0])
            done[number] = Ran(notebook, folder, running.widgets(client))
        return done[number]

    return run
