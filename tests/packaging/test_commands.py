"""`make lab` and `make test` in a folder with a space and an accent, with stand-ins for Python that write down their calls."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

STAND_IN = """#!/bin/bash
# {name}
printf '%s|' "$PWD" "$0" "$@" >> "$CALLS"; echo >> "$CALLS"
case "$*" in
  "-c import sys"*) exit {old} ;;
  "-V") echo "Python {version}" ;;
  "-m venv .venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
  "-m pip"*) exit ${{PIP_FAILS:-0}} ;;
esac
"""


@pytest.fixture
def clone(tmp_path):
    """A folder like a fresh clone, and a function that runs make there."""
    folder = tmp_path / "mon été" / "offload lab"
    (folder / "course").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    bins = tmp_path / "bin"
    bins.mkdir()
    return Clone(folder, bins, tmp_path / "calls")


class Clone:
    def __init__(self, folder, bins, calls):
        self.folder, self.bins, self.log = folder, bins, calls
        for name in ("python3.11", "python3.12", "python3.13", "python3", "python"):
            self.python(name, "2.7.18", old=1)

    def python(self, name, version, old=0):
        path = self.bins / name
        path.write_text(STAND_IN.format(name=name, version=version, old=old))
        path.chmod(0o755)

    def make(self, *arguments, **environment):
        self.log.write_text("")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PYTHON", "MFLAGS"))}
        path = f"{self.bins}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["make", *arguments],
            cwd=self.folder,
            env=clean | {"PATH": path, "CALLS": str(self.log)} | environment,
            capture_output=True,
            text=True,
        )
        self.calls = [line.rstrip("|").split("|") for line in self.log.read_text().splitlines()]
        return done

    def installed(self):
        return any("pip" in call for call in self.calls)


def test_the_first_python_that_is_new_enough_makes_the_environment(clone):
    clone.python("python3.12", "3.12.1")
    clone.python("python3", "3.14.0")
    done = clone.make("test")
    assert done.returncode == 0, done.stderr
    assert "Making a virtual environment in .venv with Python 3.12.1" in done.stdout
    assert done.stdout.index("==> Making") < done.stdout.index("==> Installing") < done.stdout.index("==> Running")
    install = next(call for call in clone.calls if "pip" in call)
    assert install[1] == ".venv/bin/python" and install[-4:] == ["-c", "constraints.txt", "-e", ".[all]"]
    assert clone.calls[-1] == [str(clone.folder), ".venv/bin/python", "-m", "pytest", "-n", "2"]


@pytest.mark.parametrize("say", [[], ["PYTHON=python3.11"]], ids=["searched", "named"])
def test_an_old_python_is_told_and_nothing_is_made(clone, say):
    done = clone.make("test", *say)
    assert done.returncode != 0
    assert "Python 2.7.18" in done.stdout and "3.11 or newer is needed" in done.stdout and "make PYTHON=" in done.stdout
    assert not (clone.folder / ".venv").exists()


def test_a_named_python_is_taken(clone):
    clone.python("mine", "3.13.0")
    assert "with Python 3.13.0" in clone.make("test", f"PYTHON={clone.bins / 'mine'}").stdout


def test_the_environment_is_made_once_and_again_when_it_must(clone):
    clone.python("python3", "3.11.2")
    clone.make("test")
    clone.make("test")
    assert not clone.installed() and len(clone.calls) == 1, "only pytest"
    for name in ("pyproject.toml", "constraints.txt"):
        later = (clone.folder / ".venv/.ready").stat().st_mtime + 2
        os.utime(clone.folder / name, (later, later))
        clone.make("test")
        assert clone.installed(), name
        os.utime(clone.folder / name, (0, 0))
    moved = clone.folder.rename(clone.folder.with_name("moved"))
    clone.folder = moved
    clone.make("test")
    assert clone.installed(), "an editable install points to the folder it was made in"
    clone.make("test")
    assert not clone.installed()


def test_an_installation_that_failed_is_tried_again(clone):
    clone.python("python3", "3.11.2")
    assert clone.make("test", PIP_FAILS="1").returncode != 0
    assert not any("pytest" in call for call in clone.calls)
    assert clone.make("test").returncode == 0 and clone.installed()


def test_lab_opens_the_landing_notebook_from_the_course_folder(clone):
    clone.python("python3", "3.11.2")
    assert clone.make("lab", "LAB_ARGS=--no-browser --port=9999").returncode == 0
    where, python, *arguments = clone.calls[-1]
    course = clone.folder / "course"
    assert where == str(course) and python == "../.venv/bin/python"
    arguments = [argument for argument in arguments if argument != "--allow-root"]
    landing = "en/index.ipynb"
    jupyter = ["-m", "jupyterlab", f"--ServerApp.root_dir={course}", landing, "--no-browser", "--port=9999"]
    assert arguments == ["-m", "quizzes.service.lab", *jupyter]
    assert (ROOT / "course" / landing).exists()


def test_site_is_written_by_its_command_and_the_help_names_it(clone):
    clone.python("python3", "3.11.2")
    assert clone.make("site", "SITE_ARGS=--only 02").returncode == 0
    assert clone.calls[-1] == [str(clone.folder), ".venv/bin/python", "-m", "course.site", "--only", "02"]
    assert "make site " in clone.make("help").stdout


def test_ci_runs_make_test_and_returns_what_it_returns(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    bins = tmp_path / "bin"
    bins.mkdir()
    for name, body in {
        "make": 'echo "make $* CI=$CI in $PWD"; exit 7',
        "python3": "exit 0",
        "apt-get": 'echo "apt-get $*" >> "$PWD/apt"',
        "id": "echo 0",
    }.items():
        (bins / name).write_text(f"#!/bin/bash\n{body}\n")
        (bins / name).chmod(0o755)
    path = f"{bins}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run([".ci/run"], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True)
    assert done.returncode == 7
    assert done.stdout.splitlines()[-1] == f"make test CI=1 in {tmp_path}"
    if not Path("/usr/bin/chromium").exists():
        assert "install" in (tmp_path / "apt").read_text() and "chromium" in (tmp_path / "apt").read_text()
