"""Settings of all tests: no deadline, because speed belongs into a benchmark, never into a test."""

import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.fake import CommandLine

# A change is judged by the same examples each time; `make chance` draws others (pytest --hypothesis-profile=chance).
settings.register_profile("chance", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("zaudit", settings.get_profile("chance"), derandomize=True)
settings.load_profile("zaudit")

# A shell that puts the tests into the background, and nohup, have these two ignored, which every program that a test starts
# would inherit: tests that send them would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def zaudit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The command, in a terminal that nobody has set up."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "ZAUDIT_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    return CommandLine(monkeypatch, capsys)
