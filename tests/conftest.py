"""What every test shares: rewritten asserts in contract suites, how Hypothesis runs, Control-C."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("remembrancer.contracts")

# No deadline: two busy cores make an honest example slow.  In CI the same examples every time, so
# that a red run is about the change.
settings.register_profile(
    "remembrancer",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("remembrancer")

# What a shell runs in the background ignores interrupts, and so would every process of a test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
