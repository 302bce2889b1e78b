"""For all tests: no timing decides a test, so hypothesis has no deadline for an example; Ctrl-C is heard as in a terminal."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")

# A test run that a script started in the background ignores SIGINT, and every process that a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
