"""A PostgreSQL of the tests' own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def postgresql():
    """The URL of a PostgreSQL of this test's own, on a socket in a folder."""
    pytest.importorskip("psycopg", reason="the driver psycopg comes with the extra service")
    found = [
        *Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"),
        *filter(None, [shutil.which("pg_ctl") and Path(shutil.which("pg_ctl"))]),
    ]
    if not found:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    # It refuses to run as root.
    who = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="quiz-"))
    if who:
        shutil.chown(folder, "postgres", "postgres")
    commands = found[-1].resolve().parent

    def call(*command):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, **who)
        assert done.returncode == 0, done.stdout + done.stderr

    call(commands / "initdb", "-D", folder / "data", "-U", "quiz", "-A", "trust", "--no-sync")
    options = f"-k {folder} -c listen_addresses=''"
    call(commands / "pg_ctl", "-D", folder / "data", "-o", options, "-w", "-t", "120", "-l", folder / "log", "start")
    yield f"postgresql+psycopg://quiz@/postgres?host={folder}"
    call(commands / "pg_ctl", "-D", folder / "data", "-m", "immediate", "stop")
    shutil.rmtree(folder)
