"""The command around the demonstration: how it ends, what it refuses, what its page says."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

import offload_lab
from offload_lab import demo
from offload_lab.cli import app
from offload_lab.demo import DemoError, DemoResult, Run
from offload_lab.demo_page import as_page, as_text

ROOT = str(Path(offload_lab.__path__[0]).parent)


@pytest.mark.parametrize(
    "code, said",
    [
        ("raise ValueError('the reason')", "the reason"),
        ("import sys; sys.exit(3)", "exit code 3"),
        ("pass", "exit code 0"),
    ],
)
def test_a_child_that_ends_otherwise_is_named_and_its_folder_goes(monkeypatch, tmp_path, code, said):
    real = subprocess.Popen
    monkeypatch.setattr(demo.subprocess, "Popen", lambda command, **options: real([sys.executable, "-c", code], **options))
    with pytest.raises(DemoError, match=r"torch\.AdamW") as caught:
        demo.run_demo(preset="lesson", directory=tmp_path)
    assert said in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot send these signals to another process")
@pytest.mark.parametrize("name, code", [("SIGINT", 130), ("SIGTERM", 128 + 15)])
def test_a_signal_ends_the_child_and_removes_the_folder(tmp_path, name, code):
    # SIGINT is ignored in background runs; the command shall be tested as it is in a terminal.
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from offload_lab.cli import app; app(['demo', '--json', '--preset', 'lesson', '--steps', '5000'])"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": ROOT}, start_new_session=True,
    )  # fmt: skip
    children = []
    try:
        deadline = time.monotonic() + 60
        while not children and time.monotonic() < deadline:
            time.sleep(0.05)
            children = psutil.Process(parent.pid).children()
        parent.send_signal(getattr(signal, name))
        out, errors = parent.communicate(timeout=60)
    finally:
        parent.kill()
    assert children and not any(child.is_running() for child in children)
    assert parent.returncode == code and out == ""
    assert name != "SIGINT" or "No process is left running" in errors
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option, value", [("--html", "nowhere/page.html"), ("--html", "."), ("--directory", "nowhere")])
def test_a_path_that_cannot_be_used_is_refused_before_any_run(monkeypatch, tmp_path, option, value):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "run_demo", lambda **_: pytest.fail("it trained first"))
    told = CliRunner().invoke(app, ["demo", option, value])
    assert told.exit_code == 2 and option in told.output


@pytest.mark.parametrize("text, count", [("25e6", "25,000,000"), ("7B", "7,000,000,000"), ("25_000", "25,000")])
def test_a_count_is_read_as_people_write_it(text, count):
    assert f"{count} parameters" in CliRunner().invoke(app, ["plan", "--params", text]).stdout


@pytest.mark.parametrize("text", ["many", "", "-5", "0"])
def test_what_is_no_count_is_refused(text):
    assert CliRunner().invoke(app, ["plan", "--params", text]).exit_code == 2


def result(ram_loss=1.5, disk_loss=1.5, message="no <memory> & more"):
    runs = [
        Run("torch.AdamW", "out of memory", message, 0, [], None, 160, 159, 0, []),
        Run("OffloadAdamW ram", "trained", "", 2, [0.5, 0.25], ram_loss, 144, 143, 0, []),
        Run("OffloadAdamW disk", "trained", "", 2, [0.5, 0.25], disk_loss, 54, 53, 240, []),
    ]
    return DemoResult(160, "", 10, 2, "", runs)


def test_the_words_follow_the_figures():
    said = as_text(result())
    assert "torch.AdamW ran out of memory in step 1 of 2" in said and "the same to the last bit" in said
    differs = as_text(result(disk_loss=1.5000001))
    assert "the same to the last bit" not in differs and "different losses, 1.5 and 1.5000001" in differs


def test_the_page_escapes_what_the_system_said():
    page = as_page(result())
    assert "no &lt;memory&gt; &amp; more" in page and "<memory>" not in page and "http-equiv" not in page


def test_the_arithmetic_needs_no_torch():
    code = (
        "import sys, types\n"
        "package = types.ModuleType('offload_lab'); package.__path__ = [sys.argv[1]]; sys.modules['offload_lab'] = package\n"
        "sys.modules['torch'] = None\n"
        "from offload_lab.state_bytes import training_bytes; print(training_bytes(1).peak_bytes)"
    )
    done = subprocess.run([sys.executable, "-c", code, offload_lab.__path__[0]], capture_output=True, text=True)
    assert done.stdout.strip() == "18", done.stderr
