"""For all tests: no timing decides a test, so hypothesis has no deadline for an example; Ctrl-C is heard as in a terminal; the
progress of whoever runs them is not touched."""

import os
import shutil
import signal
import tempfile

import pytest
from hypothesis import HealthCheck, settings

from tests import rooms

# Before a change lands the same examples are tried each time; `make test` by hand looks for new ones.
settings.register_profile(
    "no clock", deadline=None, derandomize=bool(os.environ.get("CI")), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("no clock")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: rooms.turn(item.nodeid))


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    return rooms.scheduler(config, log)


# A test run that a script started in the background ignores SIGINT, and every process that a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    # Lessons that a test runs answer questions; a quiz takes up what it finds in the progress file.
    config.own_progress = tempfile.mkdtemp(prefix="progress-")
    os.environ["OFFLOAD_LAB_PROGRESS"] = os.path.join(config.own_progress, "progress.json")


def pytest_unconfigure(config):
    shutil.rmtree(config.own_progress, ignore_errors=True)
