"""environment.yml, pyproject.toml, constraints.txt and the Makefile say the same; the tree is clean."""

import re
import subprocess
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pins():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    rows = [line.split("#")[0].strip() for line in lines]
    found = [re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.+!]+)", row) for row in rows if row]
    assert all(found), "every line of constraints.txt is one name==version"
    return {canonicalize_name(match[1]): Version(match[2]) for match in found}


def requirements():
    listed = list(PROJECT["dependencies"])
    for extra in PROJECT["optional-dependencies"].values():
        listed += extra
    return [Requirement(text) for text in listed]


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_every_dependency_is_pinned_within_its_range(requirement):
    if requirement.name == PROJECT["name"]:
        assert requirement.extras <= set(PROJECT["optional-dependencies"])
        return
    assert requirement.specifier, f"{requirement.name} has no floor"
    assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)], prereleases=True)


def test_all_is_all_extras():
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert Requirement(everything).extras == set(PROJECT["optional-dependencies"]) - {"all"}


def test_conda_installs_this_project_with_these_constraints():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert environment["name"] == PROJECT["name"]
    assert conda == [f"python{PROJECT['requires-python']}", "pip"]
    assert pip == ["-c constraints.txt", "-e .[all]"]


def test_make_installs_the_tested_edition():
    makefile = (ROOT / "Makefile").read_text()
    assert '-c constraints.txt -e ".[all]"' in makefile
    assert re.search(r"^\$\(READY\): pyproject\.toml constraints\.txt$", makefile, re.M)


def tracked(*patterns):
    done = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True)
    if done.returncode:
        pytest.skip("not a git checkout, so there is no list of tracked files")
    return [ROOT / name for name in done.stdout.decode().split("\0") if name]


def test_notebooks_are_clean():
    for path in tracked("*.ipynb"):
        # As git has it: a reader may have run a lesson where it lies.
        name = path.relative_to(ROOT).as_posix()
        shown = subprocess.run(["git", "show", f":{name}"], cwd=ROOT, capture_output=True, check=True)
        notebook = nbformat.reads(shown.stdout.decode(), as_version=4)
        assert "widgets" not in notebook.metadata, path
        for cell in notebook.cells:
            if cell.cell_type == "code":
                assert not cell.outputs and cell.execution_count is None, (path, cell.id)


def _is_a_lesson(path):
    """It is read cell by cell, text and code; tests/course keeps the cells short."""
    return path.parent == ROOT / "course" / "src"


def test_no_file_is_a_house_of_its_own():
    long = {
        str(path.relative_to(ROOT)): n
        for path in tracked("offload_lab", "quizzes", "course")
        if path.suffix == ".py" and (n := len(path.read_text().splitlines())) > (550 if _is_a_lesson(path) else 380)
    }
    assert not long


def committed_lines(pattern):
    """Lines of all text files that match, as git has them: a lesson that was run where it lies may say anything."""
    tracked()
    done = subprocess.run(["git", "grep", "--cached", "-InE", pattern], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()


def test_committed_lines_are_found():
    assert [line for line in committed_lines("^name = .offload-lab.$") if line.startswith("pyproject.toml:")]


def test_no_path_of_one_machine_is_in_the_tree():
    assert not committed_lines("/(" + "|".join(["home", "wo" + "rk", "fa" + "rm", "Us" + "ers"]) + ")/[A-Za-z0-9_]")


def test_the_package_is_installed_from_this_tree():
    import offload_lab

    assert Path(offload_lab.__file__).is_relative_to(ROOT)
    assert offload_lab.__version__ == PROJECT["version"]


def test_no_package_registry_is_named_in_the_tree():
    hosts = ["py" + r"pi\.org", "python" + r"hosted\.org", "download.py" + "torch", "anaconda" + r"\.org"]
    assert not committed_lines("|".join(hosts))
