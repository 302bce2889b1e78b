"""What is kept of a measurement, and what makes it count no longer."""

import json
import os
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from offload_lab import measured_cache
from offload_lab.hardware import Figure, Hardware
from offload_lab.measured_cache import EDITION, Identity, load, place, store, user_cache

NOW = datetime(2026, 3, 1, tzinfo=UTC)
MINE = Identity("host", "Processor", 2, 2, 8 << 30, "numba 1", "2.9", "none", "/state", "ext4 on /dev/vda at /")
SEEN = Hardware("mine", Figure(1, "measured"), Figure(2.5, "measured", "how"), warnings=("a", "b"), taken="2026-03-01")


def test_what_is_kept_comes_back(tmp_path):
    assert load(MINE, 30, tmp_path, NOW) == (None, "")
    store(SEEN, MINE, 30, tmp_path, NOW)
    assert load(MINE, 30, tmp_path, NOW) == (SEEN, "")
    assert load(MINE, 5, tmp_path, NOW + timedelta(days=29)) == (SEEN, "")


@pytest.mark.parametrize("field", [field.name for field in fields(Identity)])
def test_another_machine_or_directory_is_measured_anew(tmp_path, field):
    store(SEEN, MINE, 30, tmp_path, NOW)
    other = replace(MINE, **{field: "another" if isinstance(getattr(MINE, field), str) else 1})
    found, why = load(other, 30, tmp_path, NOW)
    assert found is None
    # Another host's or directory's figures are in a file of their own; what else has changed is told.
    assert why == "" if field in ("node", "directory") else f"{field} was" in why


@pytest.mark.parametrize(
    ("seconds", "later", "told"),
    [
        (31, timedelta(0), "30 s, and 31 s"),
        (30, timedelta(days=31), "more than 30 days"),
        (30, -timedelta(days=1), "2026-03-01"),
    ],
)
def test_too_old_too_quick_or_from_the_future(tmp_path, seconds, later, told):
    store(SEEN, MINE, 30, tmp_path, NOW)
    found, why = load(MINE, seconds, tmp_path, NOW + later)
    assert found is None and told in why


def test_another_edition(tmp_path, monkeypatch):
    store(SEEN, MINE, 30, tmp_path, NOW)
    monkeypatch.setattr(measured_cache, "EDITION", 99)
    assert "another edition" in load(MINE, 30, tmp_path, NOW)[1]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", f'{{"edition": {EDITION}}}', '"x"'])
def test_a_file_that_is_damaged_is_told_and_written_anew(tmp_path, text):
    path = store(SEEN, MINE, 30, tmp_path, NOW)
    path.write_text(text)
    found, why = load(MINE, 30, tmp_path, NOW)
    assert found is None and f"{str(path)!r} cannot be used" in why
    store(SEEN, MINE, 30, tmp_path, NOW)
    assert load(MINE, 30, tmp_path, NOW)[0] == SEEN


def test_hardware_that_is_damaged_within(tmp_path):
    path = store(SEEN, MINE, 30, tmp_path, NOW)
    kept = json.loads(path.read_text())
    kept["hardware"]["dram_bandwidth"]["source"] = "hearsay"
    path.write_text(json.dumps(kept))
    assert "hearsay" in load(MINE, 30, tmp_path, NOW)[1]


def test_it_is_kept_whole_or_not_at_all(tmp_path, monkeypatch):
    store(SEEN, MINE, 30, tmp_path, NOW)

    def refused(*arguments):
        raise OSError("no")

    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(OSError, match="no"):
        store(replace(SEEN, name="other"), MINE, 30, tmp_path, NOW)
    assert [path.name for path in (tmp_path / "hardware").iterdir()] == [place(MINE, tmp_path).name]
    assert load(MINE, 30, tmp_path, NOW)[0] == SEEN


def test_the_users_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache() == tmp_path / "offload-lab"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setattr(measured_cache.sys, "platform", "linux")
    assert user_cache() == Path.home() / ".cache" / "offload-lab"
