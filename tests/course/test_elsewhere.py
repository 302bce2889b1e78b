"""Others' trainings: what is missing is said, what hangs or ends is reaped, and all come to the losses of a plain AdamW."""

import json
import os
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from bench import peers
from course import elsewhere, elsewhere_child
from course import ours as ours_module
from course.elsewhere import DeepSpeed, NotHere, launch
from course.elsewhere_child import LR, PARAMETERS
from course.ours import Ours
from offload_lab import catalogue, plan
from offload_lab.export import Recipe, as_accelerate, as_deepspeed
from offload_lab.storage.direct_io import StorageError, require_disk_tier

try:
    require_disk_tier()
    NO_DISK = ""
except StorageError as error:
    NO_DISK = str(error)
needs_disk = pytest.mark.skipif(bool(NO_DISK), reason=NO_DISK)
needs_peers = pytest.mark.skipif(
    not peers.ready(), reason="DeepSpeed has an environment of its own, and it is not here: python -m bench.peers makes it"
)
RECIPE = Recipe(lr=LR, clip=None)


def small(directory, durability="checkpoint"):
    laptop = catalogue.machine("laptop")
    where = {"state": "disk", "directory": str(directory), "durability": durability}
    return plan(PARAMETERS, laptop, batch=4, sequence=1, ram_budget="64MiB", **where)


@pytest.fixture(scope="module")
def expected():
    """Losses of four steps of torch's AdamW on float32 masters, of the same model and batch."""
    model, x = elsewhere_child.network(), elsewhere_child.batch()
    masters = [parameter.detach().float().requires_grad_() for parameter in model.parameters()]
    optimizer = torch.optim.AdamW(masters, lr=LR)
    losses = []
    for _step in range(4):
        loss = elsewhere_child.loss_of(model, x)
        model.zero_grad()
        loss.backward()
        losses.append(loss.item())
        for master, parameter in zip(masters, model.parameters(), strict=True):
            master.grad = parameter.grad.float()
        optimizer.step()
        with torch.no_grad():
            for master, parameter in zip(masters, model.parameters(), strict=True):
                parameter.copy_(master)
    assert losses[-1] < losses[0] / 2, "it learns"
    return losses


@needs_disk
@pytest.mark.parametrize("durability, size", [("checkpoint", 10), ("step", 24)])
def test_ours_trains_as_adamw_does(tmp_path, expected, durability, size):
    with Ours(small(tmp_path / "état d'âme", durability)) as ours:
        losses = [ours.train(1) for _step in range(4)]
        assert ours.about() == {"optimizer": "OffloadAdamW"}
    assert losses == pytest.approx(expected, rel=1e-2)
    assert ours.disk == pytest.approx(size * PARAMETERS, rel=0.01), "bytes a parameter, as the lesson says"
    ours.close()


def no_disk(*_arguments, **_named):
    raise StorageError("this file system has no direct I/O")


def test_a_machine_without_a_disk_tier_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(ours_module, "OffloadAdamW", no_disk)
    with pytest.raises(NotHere, match="OffloadAdamW has no disk here: this file system has no direct I/O"):
        Ours(small(tmp_path / "state"))


@needs_disk
def test_a_disk_that_is_full_in_a_step_is_told(monkeypatch, tmp_path):
    with Ours(small(tmp_path / "state")) as ours:
        ours.train(1)
        monkeypatch.setattr(ours._optimizer, "step", no_disk)
        with pytest.raises(NotHere, match="OffloadAdamW has no disk here"):
            ours.train(1)


def test_where_deepspeed_is_not_it_says_how_to_have_it(monkeypatch, tmp_path):
    monkeypatch.setenv("OFFLOAD_LAB_PEERS", str(tmp_path / "nowhere"))
    monkeypatch.setattr(elsewhere.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NotHere, match=r"not installed here.*python -m bench\.peers"):
        DeepSpeed({})
    with pytest.raises(NotHere, match=r"nothing was launched.*pip install accelerate"):
        launch("", small(tmp_path / "state"))


@pytest.fixture
def child(monkeypatch, tmp_path):
    """Call it with the text of a program: it is run in place of the file that holds DeepSpeed."""

    def install(text):
        file = tmp_path / "child.py"
        file.write_text(text)
        monkeypatch.setattr(elsewhere, "_CHILD", file)
        monkeypatch.setattr(elsewhere, "deepspeed_python", lambda: sys.executable)

    return install


TALKS = """
import json, sys
config = json.load(open(sys.argv[2]))
print("a word of greeting, as libraries have it", flush=True)
print("@ " + json.dumps({"optimizer": config["name"]}), flush=True)
for line in sys.stdin:
    print("and another", flush=True)
    print("@ " + json.dumps({"loss": json.loads(line)["steps"] / 2, "disk": 7}), flush=True)
"""


def test_only_marked_lines_are_answers(child):
    child(TALKS)
    with DeepSpeed({"name": "a name"}) as theirs:
        assert theirs.about() == {"optimizer": "a name"} and theirs.disk == 0
        assert theirs.train(3) == 1.5 and theirs.train(4) == 2.0 and theirs.disk == 7
        pid, folder = theirs._process.pid, Path(theirs._folder.name)
        assert folder.is_dir()
    assert not psutil.pid_exists(pid) and not folder.exists()
    theirs.close()


def test_one_that_ends_says_its_last_words(child):
    child("import sys; sys.stderr.write('one\\ntwo\\nthree\\nCUDA is sad\\n'); sys.exit(3)")
    with pytest.raises(NotHere, match=r"ended with 3: two \| three \| CUDA is sad"), DeepSpeed({}) as theirs:
        theirs.train(1)
    assert not psutil.pid_exists(theirs._process.pid)


def test_one_that_ends_silently_and_in_the_middle_is_told(child):
    child("print('@ {}', flush=True); input(); raise SystemExit(0)")
    theirs = DeepSpeed({})
    assert theirs.about() == {}
    with pytest.raises(NotHere, match=r"ended with 0: \(it said nothing\)"):
        theirs.train(1)
    theirs.close()


def test_one_that_hangs_is_ended_with_its_children(child, monkeypatch):
    monkeypatch.setattr(elsewhere, "_WAIT", 2)
    sleeps = "import time; time.sleep(600)"
    child(f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {sleeps!r}]); {sleeps}")
    theirs = DeepSpeed({})
    with pytest.raises(NotHere, match="has not answered for 2 s"):
        theirs.about()
    assert group_is_empty(theirs._process.pid)


def group_is_empty(group):
    """Whether nothing but zombies is left of a process group, within a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        alive = []
        for process in psutil.process_iter(["pid", "status"]):
            try:
                if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                    alive.append(process.pid)
            except (ProcessLookupError, PermissionError):
                continue
        if not alive:
            return True
        time.sleep(0.05)
    return False


@needs_disk
def test_accelerate_launches_a_script_with_our_optimizer(tmp_path, expected):
    pytest.importorskip("accelerate", reason="accelerate is in the extra 'test'")
    made = small(tmp_path / "lancé ici", "step")
    told = launch(as_accelerate(made, RECIPE), made, steps=3)
    assert told["losses"] == pytest.approx(expected[:3], rel=1e-2)
    assert told["device"] == "cpu" and told["precision"] == "no" and told["disk"] == pytest.approx(24 * PARAMETERS, rel=0.01)


def test_a_script_that_fails_under_accelerate_is_told(child, tmp_path):
    pytest.importorskip("accelerate", reason="accelerate is in the extra 'test'")
    child("raise SystemExit('no such plan')")
    made = small(tmp_path / "state")
    with pytest.raises(NotHere, match=r"`accelerate launch` ended with 1: .*"):
        launch(as_accelerate(made, RECIPE), made)


@needs_peers
@needs_disk
def test_deepspeed_trains_as_adamw_does_and_keeps_sixteen_bytes(tmp_path, expected):
    """Nothing is clipped, which has to be said to it: the norm of these gradients is above 1."""
    config = as_deepspeed(small(tmp_path / "état"), RECIPE)
    with DeepSpeed(json.loads(json.dumps(config))) as theirs:
        assert "Stage3" in theirs.about()["optimizer"]
        losses = [theirs.train(1) for _step in range(4)]
    assert losses == pytest.approx(expected, rel=1e-2)
    assert theirs.disk == 16 * PARAMETERS
