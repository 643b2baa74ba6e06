"""What was named to the kernel is followed to a dataset only where nobody but root could have put another there since."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from auditor.host.live import LiveHost
from auditor.recording.recording import RecordingHost, ReplayHost

EVIL = 5000
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user: needs root")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """ours/diff, theirs/diff (a folder of somebody else), and everybodys/ours and /theirs, as in /tmp."""
    for name in ("ours/diff", "theirs/diff", "everybodys/ours", "everybodys/theirs"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("theirs", "everybodys/theirs", "ours/diff"):
        os.chown(tmp_path / name, EVIL, EVIL)
    (tmp_path / "everybodys").chmod(0o1777)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "steady"),
    [
        ("ours/diff", True),  # which belongs to root of the container, as its upper layer does
        ("ours/./../ours//diff", True),
        ("theirs/diff", False),
        ("everybodys/ours", True),
        ("everybodys/theirs", False),
        ("ours/gone", False),
        ("ours/diff/x", False),
    ],
)
def test_only_what_nobody_could_have_moved(place: Path, name: str, steady: bool) -> None:
    (place / "ours/diff/x").mkdir()
    assert LiveHost(5).steady(f"{place}/{name}") == (os.path.realpath(place / name) if steady else "")


def test_a_folder_that_was_exchanged_for_a_link_leads_nowhere(place: Path) -> None:
    (place / "theirs/diff").rmdir()
    (place / "theirs/diff").symlink_to(place / "ours")
    host = LiveHost(5)
    assert host.realpath(f"{place}/theirs/diff") == os.path.realpath(place / "ours")
    assert host.steady(f"{place}/theirs/diff") == ""


def test_every_link_on_the_way_counts(place: Path) -> None:
    (place / "ours/in").symlink_to("../theirs/out")
    (place / "theirs/out").symlink_to(place / "ours")
    (place / "ours/plain").symlink_to("../everybodys/ours")
    (place / "ours/self").symlink_to("self")
    host = LiveHost(5)
    assert host.steady(f"{place}/ours/in") == ""
    assert host.steady(f"{place}/ours/self") == ""
    assert host.steady(f"{place}/ours/x\0") == ""
    assert host.steady(f"{place}/ours/plain") == os.path.realpath(place / "everybodys/ours")


def test_a_replay_knows_it_and_takes_no_other_answer_for_it(place: Path) -> None:
    live = RecordingHost(LiveHost(5))
    for name in ("ours", "theirs/diff"):
        live.steady(f"{place}/{name}")
    live.realpath(f"{place}/theirs/diff")
    past = ReplayHost(live.recording((), {}, "0"))
    assert past.steady(f"{place}/ours") == f"{place}/ours"
    assert past.steady(f"{place}/theirs/diff") == ""
    assert past.realpath(f"{place}/theirs/diff") == f"{place}/theirs/diff"
