"""What was named to the kernel is followed to a dataset only where nobody but root could have put another there since."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from auditor.host import named, tools
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


@pytest.fixture
def through_another(tmp_path: Path) -> Path:
    """A link of root's that leads through a folder of somebody else to a file of root's."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "mid").symlink_to("/usr/bin/true")
    os.chown(tmp_path / "theirs", 5000, 5000)
    (tmp_path / "name").symlink_to(tmp_path / "theirs" / "mid")
    return tmp_path / "name"


def test_no_program_behind_a_link_of_another_is_run(through_another: Path, tmp_path: Path) -> None:
    assert tools.named(str(through_another))[0] == ""
    (tmp_path / "own").symlink_to("/usr/bin/true")
    assert tools.named(str(tmp_path / "own")) == (os.path.realpath("/usr/bin/true"), "")


def test_no_policy_behind_a_link_of_another_is_followed(through_another: Path) -> None:
    with pytest.raises(OSError, match="others than root"):
        named.read(through_another, 1 << 20, trusted=True)


def test_what_the_group_may_write_is_not_roots_alone(tmp_path: Path) -> None:
    """Behind the bits of the group may be a list of others."""
    program = tmp_path / "hook"
    program.write_text("#!/bin/true\n")
    program.chmod(0o755)
    assert tools.named(str(program)) == (str(program), "")
    tools.of_root.cache_clear()
    program.chmod(0o775)
    assert tools.named(str(program))[0] == ""
    assert not tools.kept_by_root(Path("/nowhere"))


def test_a_folder_in_which_others_may_write_is_not_kept_by_root(tmp_path: Path) -> None:
    """Nor one behind a link of root's that is another's."""
    assert tools.kept_by_root(tmp_path)
    assert not tools.kept_by_root(Path("/tmp"))
    (tmp_path / "group").mkdir()
    (tmp_path / "group").chmod(0o770)
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 5000, 5000)
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    (tmp_path / "own").symlink_to(tmp_path)
    assert [tools.kept_by_root(tmp_path / each) for each in ("group", "theirs", "link", "own")] == [False] * 3 + [True]
