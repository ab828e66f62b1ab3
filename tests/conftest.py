"""Hypothesis profiles and paths that every test shares."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A shell that starts us in the background has us ignore these, and what we start would inherit that.
for _signal in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_signal) == signal.SIG_IGN:
        signal.signal(_signal, signal.default_int_handler if _signal == signal.SIGINT else signal.SIG_DFL)

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "vectors"

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile(
    "ci", max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
settings.register_profile("deep", max_examples=10_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of the public test data; tests that need it are skipped where it is not laid beside the project."""
    if not SHARED.is_dir():
        pytest.skip("the public test data is not beside the project")
    return SHARED
