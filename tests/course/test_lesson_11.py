"""Lesson 11: a model that AdamW cannot train is trained, killed and gone on with; its install cell replaces nothing."""

import json
import re
import subprocess
import sys
import types

import nbformat
import psutil
import pytest

from course import build, lab_runs, repository
from course.checks.lesson_11 import place
from course.children import ChildError
from course.fitting import Choice
from course.lab_runs import killed_after, tried
from offload_lab.demo import limit_is_enforced

GB = 10**9
STATE = {"float32": 8, "bfloat16": 10}
ELEMENT = {"float32": 4, "bfloat16": 2}

# --- the exercise ---------------------------------------------------------------------------------------------------------


def right(parameters, dtype, card, ram, disk):
    if dtype not in STATE:
        raise ValueError(dtype)
    if 16 * parameters <= card:
        return "card"
    if 2 * ELEMENT[dtype] * parameters > card:
        return "nowhere"
    if STATE[dtype] * parameters <= ram:
        return "ram"
    return "disk" if 24 * parameters <= disk else "nowhere"


def also_right(parameters, dtype, card, ram, disk):
    """A table of what each place asks of each memory; the first whose all are met."""
    if dtype == "float32":
        stays, state = 8, 8
    elif dtype == "bfloat16":
        stays, state = 4, 10
    else:
        raise ValueError("float32 or bfloat16")
    there = (card, ram, disk)
    asked = {"card": (16, 0, 0), "ram": (stays, state, 0), "disk": (stays, 0, 24)}
    fitting = [name for name, sizes in asked.items() if all(n * parameters <= m for n, m in zip(sizes, there, strict=True))]
    return next(iter(fitting), "nowhere")


@pytest.mark.parametrize("function", [right, also_right])
def test_a_right_function_passes(function):
    assert place.check(function)


def changed(adamw=16, stays=None, state=None, disk=24):
    def function(parameters, dtype, card, ram, there):
        if dtype not in STATE:
            raise ValueError(dtype)
        if adamw * parameters <= card:
            return "card"
        if (2 * ELEMENT[dtype] if stays is None else stays(dtype)) * parameters > card:
            return "nowhere"
        if (STATE[dtype] if state is None else state(dtype)) * parameters <= ram:
            return "ram"
        return "disk" if disk * parameters <= there else "nowhere"

    return function


@pytest.mark.parametrize(
    "wrong, said",
    [
        (changed(stays=ELEMENT.get), "only the weights stay on the card"),
        (changed(stays=lambda dtype: 0), "and not the card"),
        (changed(disk=12), "one generation on the disk"),
        (changed(state=lambda dtype: 8), "ten bytes, not eight"),
        (changed(state=lambda dtype: {"float32": 8, "bfloat16": 12}[dtype]), "You keep whole masters"),
        (changed(adamw=12), "twelve bytes for AdamW"),
        (lambda n, dtype, card, ram, disk: "disk" if right(n, dtype, card, ram, disk) == "ram" and disk >= 24 * n
         else right(n, dtype, card, ram, disk), "You prefer the disk"),
        (lambda n, dtype, card, ram, disk: right(n, dtype if dtype in STATE else "float32", card, ram, disk), "a ValueError"),
        (lambda *numbers: "nowhere", "Sixteen bytes"),
        (lambda n, dtype: "ram", "Sixteen bytes"),
        (lambda *numbers: None, "Not begun"),
    ],
)  # fmt: skip
def test_a_wrong_one_is_told_what_is_behind_it(wrong, said, capsys):
    assert not place.check(wrong)
    assert re.search(said, capsys.readouterr().out)


# --- the lesson as it ran -------------------------------------------------------------------------------------------------


def test_adamw_runs_out_of_memory_and_the_disk_does_not(ran):
    full, fits = ran("11").text("full"), ran("11").text("fits")
    assert re.search(r"state on disk: 2 steps, .* at the most", fits)
    if limit_is_enforced():
        assert "enforces no limit" in full
    else:
        assert re.search(r"torch\.AdamW: out of memory before step 1 was over\. .*words:\n +\w+Error: ", full)
        assert "allocate" in full


def test_it_says_that_it_runs_without_a_gpu_and_that_the_weights_are_random(ran):
    assert "the same cells run on the CPU" in ran("11").text("room")
    assert "random weights" in ran("11").text("choose") and "predicted" in ran("11").text("choose")
    assert "nothing is installed" in ran("11").text("install")


def numbers(text, pattern):
    return [float(found) for found in re.search(pattern, text).groups()]


def test_the_loss_falls_and_is_the_same_wherever_the_state_is(ran):
    said = ran("11").text("read-off")
    first, last = numbers(said, r"loss: ([\d.]+) in step 1, ([\d.]+) in step 20")
    assert last < first - 1
    assert numbers(said, r"losses at most ([\d.]+) apart")[0] < 1e-4
    held = {name: sizes.split() for name, sizes in re.findall(r"^(state .*?)  +(.*)$", said, re.M)}
    assert held["state in RAM"][4] == "0" and held["state on the disk"][2:4] == ["8", "MB"]


def test_without_activations_the_card_holds_eight_bytes_a_parameter(ran):
    (measured,) = numbers(ran("11").text("ram-wait"), r"Measured: ([\d.]+) bytes")
    assert 8 <= measured < 10


def test_a_killed_training_goes_on_where_it_was(ran):
    lesson = ran("11")
    assert "killed; the last loss that it told was" in lesson.text("kill") and "of step 10" in lesson.text("kill")
    (following,) = numbers(lesson.text("look"), r"Measured: (\d+)\.00\.")
    assert following in (11, 12), "the step that was under way may have been published"
    assert "no damage was found" in lesson.text("look")
    steps, apart = numbers(lesson.text("curve"), r"(\d+) steps after the kill: losses at most ([\d.]+) apart")
    assert steps == 21 - following and apart < 1e-4
    assert "resumed" in lesson.text("curve") and "<img" in lesson.html("curve")


def test_a_checkpoint_is_written_in_torchs_own_format(ran):
    assert re.search(r"'step': .*'exp_avg': \(256, 384\), 'exp_avg_sq': \(256, 384\)", ran("11").text("checkpoint"))


def test_a_larger_batch_fills_the_card_and_nothing_else(ran):
    rows = re.findall(r"^batch (\d+), .* card +([\d.]+) MB   RAM +([\d.]+) MB", ran("11").text("change"), re.M)
    assert [int(row[0]) for row in rows] == [2, 16]
    assert float(rows[1][1]) > 1.3 * float(rows[0][1]) and rows[1][2] == rows[0][2]


def test_other_cards_get_models_that_adamw_cannot_train_there(ran):
    said = ran("11").text("transfer")
    assert (
        len(re.findall(r"AdamW .* does not fit", said)) == len(re.findall(r"offloaded .* card of [\d.]+ GB: fits", said)) == 3
    )
    assert "Not begun." in ran("11").text("make-check")


# --- its processes --------------------------------------------------------------------------------------------------------

TINY = Choice("TinyGPT", 100, "float32", "cpu", 10**9, None, layers=1, width=64, context=16, buffers=1_000_000)


def test_a_child_that_fails_is_told_in_its_own_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    missing = tmp_path / "kein Modell é"
    missing.mkdir()
    lost = Choice(str(missing), 100, "float32", "cpu", 10**9, None)
    with pytest.raises(ChildError, match=r"ended with 1: .*é"):
        tried(lost, "adamw")
    assert [path.name for path in tmp_path.iterdir()] == [missing.name]


def test_a_training_that_ends_before_its_kill_is_no_killed_one(tmp_path):
    with pytest.raises(ChildError, match="ended by itself, after step 1"):
        killed_after(TINY, tmp_path / "run", step=3, most=1)


def test_what_a_library_prints_is_no_event():
    printed = ["Loading…\n", '{"loss": 1.5}\n', '{"loss": 2\n', "{}\n", '{"half']
    heard = []
    child = types.SimpleNamespace(stdout=iter(printed))
    assert list(lab_runs._lines(child, lambda: heard.append(1))) == [{"loss": 1.5}, {}] and len(heard) == 5


def test_a_child_that_says_nothing_for_too_long_is_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(lab_runs, "_WAIT", 0.05)  # less than Python takes to load torch
    with pytest.raises(ChildError, match="ended with -9"):
        killed_after(TINY, tmp_path / "run", step=3)


def test_an_interrupt_leaves_no_child(tmp_path):
    held = []
    with (
        pytest.raises(KeyboardInterrupt),
        lab_runs._child(TINY, {"do": "train", "steps": 100_000, "folder": str(tmp_path)}) as lines,
    ):
        held += [entry for entry in psutil.Process().children() if "course.lab_runs" in entry.cmdline()]
        next(lines)
        raise KeyboardInterrupt
    assert len(held) == 1 and not held[0].is_running()


# --- the install cell -----------------------------------------------------------------------------------------------------


def lesson():
    (source,) = (source for source in build.lessons() if source.name.startswith("11_"))
    return nbformat.reads(build.build(source), as_version=4)


@pytest.fixture
def install(monkeypatch, capsys):
    """The first cell with code, as Colab would run it, with a `pip` that answers `planned` and notes what it was asked."""
    (cell,) = (cell.source for cell in lesson().cells if cell.id == "install")

    def run(planned, colab=True, named="ada/lab", code=0):
        asked = []

        def pip(command, **_options):
            asked.append(command[1:])
            report = json.dumps({"install": [{"metadata": {"name": name}} for name in planned]})
            return types.SimpleNamespace(returncode=code, stdout=report, stderr="ERROR: no such repository")

        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        monkeypatch.setattr(subprocess, "run", pip)
        if colab:
            monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
        source = cell.replace(f'REPOSITORY = "{repository.REPOSITORY}"', f'REPOSITORY = "{named}"')
        exec(compile(source, "install", "exec"), {})
        return asked, capsys.readouterr().out

    return run


def test_on_colab_it_installs_what_the_plan_says_and_pins_nothing(install):
    asked, said = install(["offload-lab", "numba"])
    assert [command[-1] for command in asked] == ["git+https://github.com/ada/lab"] * 2
    assert "--dry-run" in asked[0] and "--dry-run" not in asked[1]
    assert not any("torch" in word or "numpy" in word or word in ("-c", "-U") for command in asked for word in command)
    assert "2 packages installed" in said and "as before: True" in said


@pytest.mark.parametrize("replaced", ["torch", "numpy"])
def test_a_plan_that_replaces_torch_or_numpy_is_not_carried_out(install, replaced):
    asked, said = install(["offload-lab", replaced])
    assert len(asked) == 1 and f"Nothing was installed: pip would have replaced {replaced}" in said


def test_anywhere_else_it_installs_nothing(install):
    asked, said = install(["offload-lab"], colab=False)
    assert asked == [] and "this is not Colab" in said


def test_a_copy_without_a_repository_says_so(install):
    asked, said = install(["offload-lab"], named="OWNER/REPO")
    assert asked == [] and "Write the course's repository" in said


def test_a_pip_that_fails_is_told(install):
    asked, said = install(["offload-lab"], code=1)
    assert len(asked) == 1 and "pip could not do it: ERROR: no such repository" in said


def test_the_badge_leads_to_this_notebook_and_needs_no_network_to_be_seen():
    (title,) = (cell.source for cell in lesson().cells if cell.id == "title")
    badge = re.search(r"\[!\[Open in Colab\]\((.*?)\)\]\((.*?)\)", title)
    assert (build.HERE / "en" / badge[1]).resolve().is_file()
    assert badge[2] == (
        f"https://colab.research.google.com/github/{repository.REPOSITORY}/blob/main/course/en/11_colab_lab.ipynb"
    )
