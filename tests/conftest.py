"""Settings of all tests: no deadline, because speed belongs into a benchmark, never into a test."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from auditor.gather import answer
from tests.drivers import Drivers, Installed, listening
from tests.fake import CommandLine
from tests.parsed import Parsed

# A change is judged by the same examples each time; `make chance` draws others (pytest --hypothesis-profile=chance).
settings.register_profile("chance", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("zaudit", settings.get_profile("chance"), derandomize=True)
settings.register_profile("brief", settings.get_profile("zaudit"), max_examples=10)  # make quick
settings.load_profile("zaudit")

# A shell that puts the tests into the background, and nohup, have these two ignored, which every program that a test starts
# would inherit: tests that send them would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Debian 13 gives users a umask of 0002. Folders that a test makes would then be writable by a group, and what is read from them
# refused, as it should be. A test that is about the umask sets its own.
os.umask(0o022)

# zaudit itself collects no garbage in its short run (auditor/__main__.py); a test run is long and collects seldom, for all the
# tests and recordings that it holds would be looked through each time.
gc.set_threshold(200_000, 20, 100)

# jsonschema, where it finds this package, makes a grammar of addresses of it for more than a second while it is imported; in no
# schema of ours is an address.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with long proofs first: side by side, none of them is begun when all others are done."""
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in long)


def pytest_collection_finish() -> None:
    """What was imported and collected stays: no collection of garbage looks through it again."""
    gc.freeze()


@pytest.fixture
def zaudit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The command, in a terminal that nobody has set up."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "ZAUDIT_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Installed]:
    """Installs psycopg and PyMySQL, which connect to this process. Given the server's answers."""
    with listening(tmp_path) as path:

        def install(server: Any) -> Drivers:
            drivers = Drivers(path, server)
            drivers.install(monkeypatch)
            return drivers

        yield install


@pytest.fixture(scope="module")
def parsed_once() -> Iterator[Parsed]:
    """For tests that look at one recorded host again and again with one answer at fault: the others are parsed once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer, "answer_of", parsed := Parsed(answer.answer_of))
        yield parsed
