"""For all tests: no timing decides a test, so hypothesis has no deadline for an example; none touches this user's progress."""

import os
import shutil
import tempfile

from hypothesis import HealthCheck, settings

settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")


def pytest_configure(config):
    # Lessons that a test runs answer questions; a quiz takes up what it finds in the progress file.
    config.own_progress = tempfile.mkdtemp(prefix="progress-")
    os.environ["OFFLOAD_LAB_PROGRESS"] = os.path.join(config.own_progress, "progress.json")


def pytest_unconfigure(config):
    shutil.rmtree(config.own_progress, ignore_errors=True)
