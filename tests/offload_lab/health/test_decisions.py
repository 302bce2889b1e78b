"""The decision log: appended, one write an entry, and text of others is text."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload_lab.health import Targets
from offload_lab.health.decisions import append, markdown
from offload_lab.health.gate import Decision
from offload_lab.health.targets import Measured, compare

TARGETS = Targets(seconds_per_step=1.0, loss=2.0)
MEASURED = Measured((0.5,), (float("nan"),))
DECISION = Decision(
    passed=False,
    why="missed: loss",
    when="2026-01-02T03:04:05+00:00",
    script="my_workload.py",
    sha256="ab" * 32,
    steps_wanted=3,
    steps=3,
    targets=TARGETS,
    checks=compare(TARGETS, MEASURED),
    measured=MEASURED,
    machine={"system": "Linux", "cores": 2, "ram_bytes": 1024, "python": "3.11", "torch": "2.6", "offload_lab": "0.1.0"},
    workload={"parameters": 5, "optimizer": "OffloadAdamW"},
)


def test_entries_are_added_and_none_is_changed(tmp_path):
    folder = tmp_path / "new" / "gates"
    kept = ["", ""]
    for number in range(3):
        append(replace(DECISION, why=f"number {number}"), folder)
        texts = [(folder / name).read_text() for name in ("decisions.md", "decisions.jsonl")]
        assert all(
            text.startswith(old) and f"number {number}" in text[len(old) :] for text, old in zip(texts, kept, strict=True)
        )
        kept = texts
    entries = [json.loads(line) for line in kept[1].splitlines()]
    assert len(entries) == 3 and entries[0]["measured"]["losses"] == ["nan"]
    assert entries[0]["targets"] == TARGETS.to_dict()
    assert "| seconds_per_step | 1 | 0.5 | pass |" in kept[0] and "| loss | 2 | nan | **fail** |" in kept[0]


ANY = st.text() | st.text("#\n`|-= a")


@given(why=ANY, script=ANY, output=ANY)
def test_no_text_of_a_workload_makes_a_heading_or_a_second_entry(why, script, output):
    lines = markdown(replace(DECISION, why=why, script=script, output=output)).split("\n")
    assert [line for line in lines if line.startswith("#")] == ["## 2026-01-02T03:04:05+00:00 — failed"]


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "gates").write_text("mine")
    with pytest.raises(OSError, match="gates"):
        append(DECISION, tmp_path / "gates")
    assert (tmp_path / "gates").read_text() == "mine"


def test_markup_of_others_is_shown_as_it_is():
    text = markdown(replace(DECISION, why="a | b\n\n# c", script="x`y\n# z", output="# d\n\n- e"))
    assert "a \\| b \\# c" in text and "`x'y # z`" in text and "    # d\n    \n    - e" in text
