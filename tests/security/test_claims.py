"""A process of a user without rights that takes a server's name claims no dataset of another, however he has it mounted.

Each attack is made by a real process; what holds the folder of the other user is called a dataset in its table of mounts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from auditor.databases import paths
from auditor.facts import Fact, Facts, Judged, Known, Subject, Unknown, known, unknown
from auditor.gather import witnesses
from auditor.host.children.reader import BARRED
from auditor.host.live import LiveHost
from auditor.host.request import Files, Read
from tests.security.fakes import USER, Refused, folder, server

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of two users")
BIND, REMOUNT, READ_ONLY = 4096, 32, 1
APART = """
must(libc.unshare(0x20000))
must(libc.mount(None, b"/", None, (1 << 18) | (1 << 14), None))
"""
OF_HIS_OWN = """
must(libc.unshare(0x10000000 | 0x20000))
open("/proc/self/setgroups", "w").write("deny")
open("/proc/self/uid_map", "w").write(f"0 {user} 1")
open("/proc/self/gid_map", "w").write(f"0 {user} 1")
must(libc.mount(None, b"/", None, (1 << 18) | (1 << 14), None))
"""


@pytest.fixture
def his() -> Iterator[Path]:
    """A folder of the hostile user; beside it that of another, which is a mount of the host."""
    with folder() as place:
        theirs = place.parent / "theirs"
        (theirs / "pg").mkdir(parents=True)
        (theirs / "pg" / "file").touch()
        (theirs / "link").symlink_to("/tmp")
        (theirs / "shut" / "db").mkdir(parents=True)
        (theirs / "shut").chmod(0o700)
        (place / "pg_tblspc").mkdir()
        (place / "base").mkdir()
        (place / "file").touch()
        yield place


def bound(source: Path | str, target: Path | str) -> str:
    return f"must(libc.mount({os.fsencode(source)!r}, {os.fsencode(target)!r}, None, {BIND}, None))\n"


def read_only(target: Path | str) -> str:
    return f"must(libc.mount(None, {os.fsencode(target)!r}, None, {REMOUNT | BIND | READ_ONLY}, None))\n"


def in_its_file_system(path: Path) -> str:
    """As a table of mounts names the root of a mount: /tmp may be a file system, as on Debian 13."""
    mount = next(each for each in (path, *path.parents) if each.is_mount())
    return f"/{path.relative_to(mount)}"


def as_dataset(found: Files, theirs: Path) -> Files:
    """The same, with every mount of that folder as one of OpenZFS."""
    text, root = {}, in_its_file_system(theirs)
    for path, lines in found.text.items():
        told = (
            f"{line.partition(' - ')[0]} - zfs tank/db rw" if line.split(" ")[3].startswith(root) else line
            for line in lines.split("\n")[:-1]
        )
        text[path] = "".join(f"{line}\n" for line in told)
    return found._replace(text=text)


def datasets(number: int, data: Path, theirs: Path) -> Judged:
    """Of a server with its data there, as the collectors ask for them one after the other."""
    host, facts, subject = LiveHost(20), Facts(), Subject("database", f"postgres {number}")
    facts.put(Fact(subject, "directories", known((f"data:{data}",), "")))
    try:
        question = paths.database_paths.request(subject, facts)
        assert isinstance(question, Read)
        facts.put_all(list(paths.database_paths.parse(as_dataset(host.read(question), theirs), subject)))
    except ValueError as error:
        return unknown(str(error))
    question = paths.database_links.request(subject, facts)
    if isinstance(question, Read):
        try:
            facts.put_all(list(paths.database_links.parse(host.read(question), subject)))
        except ValueError as error:
            facts.put(Fact(subject, "more_symlinks", unknown(str(error))))
    facts.put_all(list(paths.lies_on(facts, Facts(), {})))
    witnesses.compare(facts, witnesses.compare_mounts_of_databases)
    return facts.get(subject, "datasets")


def claimed(data: Path, theirs: Path, *, host: str = "", own: str | None = None) -> Judged:
    """What a server with its data there is on. host: what root mounts before; own: what the user does, in mounts of his own."""
    before = APART + bound(theirs, theirs) + host
    try:
        with server(name="postgres", before=before, after="" if own is None else OF_HIS_OWN + own) as number:
            return datasets(number, data, theirs)
    except Refused as why:
        pytest.skip(f"a process may have no mounts of its own here: {why}")


def not_his(found: Judged, why: str) -> None:
    assert isinstance(found, Unknown), found
    assert why in found.reasons[0].text


MAY_NOT = "the process may not write there"
UNSEEN = "was not seen to be a folder in which the process may write"


# -- in mounts of his own -------------------------------------------------------------------------------------------------


def test_the_folder_of_another(his: Path) -> None:
    theirs = his.parent / "theirs"
    not_his(claimed(theirs / "pg", theirs), MAY_NOT)


def test_the_folder_of_another_that_he_mounted_read_only(his: Path) -> None:
    theirs, there = his.parent / "theirs", his / "base"
    not_his(claimed(there / "pg", theirs, own=bound(theirs, there) + read_only(there)), MAY_NOT)


@pytest.mark.parametrize("also", ["", "read-only"])
def test_the_folder_of_another_that_he_mounted_inside_of_his_own(his: Path, also: str) -> None:
    theirs, there = his.parent / "theirs", his / "base"
    own = bound(theirs / "pg", there) + (read_only(there) if also else "")
    not_his(claimed(his, theirs, own=own), f"{there}: {MAY_NOT}")


def test_a_file_of_another_that_he_mounted_inside_of_his_own(his: Path) -> None:
    theirs = his.parent / "theirs"
    not_his(claimed(his, theirs, own=bound(theirs / "pg" / "file", his / "file")), f"{his}/file: {UNSEEN}")


def test_a_link_of_another_that_he_mounted_inside_of_his_own(his: Path) -> None:
    """It leads to where anybody may write; it lies where he may not."""
    theirs = his.parent / "theirs"
    own = f"tree = must(libc.syscall(428, -100, {os.fsencode(theirs / 'link')!r}, 1 | 0x80000 | 0x100))\n"
    own += f"must(libc.syscall(429, tree, b'', -100, {os.fsencode(his / 'file')!r}, 4))\n"
    not_his(claimed(his, theirs, own=own), f"{his}/file: {UNSEEN}")


def test_an_overlay_that_cannot_write_on_the_folder_of_another(his: Path) -> None:
    """It is read-only as a whole, which the kernel says before it looks at who asks."""
    theirs, there = his.parent / "theirs", his / "base"
    options = f"lowerdir={his}/pg_tblspc,upperdir={theirs}/pg,workdir={theirs}/work"
    (theirs / "work").mkdir()
    own = f"must(libc.mount(b'o', {os.fsencode(there)!r}, b'overlay', 0, {options.encode()!r}))\n"
    not_his(claimed(there, theirs, own=own), MAY_NOT)


# -- with no mount of his own ---------------------------------------------------------------------------------------------


def test_a_file_in_place_of_a_folder(his: Path) -> None:
    theirs = his.parent / "theirs"
    not_his(claimed(theirs / "pg" / "file", theirs), UNSEEN)


def test_a_file_in_place_of_a_folder_right_below_the_root(his: Path) -> None:
    """No folder at all is on the way."""
    theirs, top = his.parent / "theirs", his / "base"
    (top / "x").touch()
    own = bound(theirs / "pg" / "file", top / "x") + f"os.chroot({str(top)!r})\n"
    not_his(claimed(Path("/x"), theirs, own=own), UNSEEN)


@pytest.mark.parametrize(("to", "why"), [("pg", MAY_NOT), ("pg/file", UNSEEN), ("shut/db", "permission denied")])
def test_a_tablespace_of_another(his: Path, to: str, why: str) -> None:
    theirs = his.parent / "theirs"
    (his / "pg_tblspc" / "1").symlink_to(theirs / to)
    host = bound(theirs / to, theirs / to) if to == "shut/db" else ""  # the way to a mount point is not asked for
    not_his(claimed(his, theirs, host=host), why)


def test_a_tablespace_that_is_not_there_holds_nothing(his: Path) -> None:
    theirs = his.parent / "theirs"
    (his / "pg_tblspc" / "1").symlink_to(theirs / "pg" / "no such folder")
    found = claimed(his, theirs)
    assert isinstance(found, Known), found
    assert found.value == ()


# -- what stays his -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_a_folder_on_it_in_which_he_may_write(his: Path, mode: int) -> None:
    """His own, and one of root for all: he really may keep his files there."""
    theirs = his.parent / "theirs"
    there = theirs / "in"
    there.mkdir()
    there.chmod(mode)
    os.chown(there, USER if mode == 0o700 else 0, USER)
    found = claimed(there, theirs)
    assert isinstance(found, Known), found
    assert found.value == (Subject("dataset", "tank/db"),)
    found = claimed(there, theirs, host=read_only(theirs))  # by root, for everybody
    assert isinstance(found, Known), found
    assert found.value == (Subject("dataset", "tank/db"),)
    found = claimed(his, theirs, host=bound(there, his / "base"))
    assert isinstance(found, Known), found
    assert found.value == (Subject("dataset", "tank/db"),)


def test_a_file_system_that_is_read_only_as_a_whole(his: Path) -> None:
    """As a dataset with readonly=on: there the mode decides."""
    base = os.fsencode(his / "base")
    kinds = {"own": (USER, USER, 0o700), "bare": (USER, USER, 0o555), "roots": (0, 0, 0o755), "group": (0, USER, 0o775),
             "everybodys": (0, 0, 0o1777), "but_the_group": (0, USER, 0o707)}  # fmt: skip
    before = f"{APART}must(libc.mount(b't', {base!r}, b'tmpfs', 0, None))\n"
    for name, (user, group, mode) in kinds.items():
        path = f"{his}/base/{name}"
        before += f"os.mkdir({path!r}); os.chown({path!r}, {user}, {group}); os.chmod({path!r}, {mode})\n"
    before += f"must(libc.mount(None, {base!r}, None, {REMOUNT | READ_ONLY}, None))\n"
    try:
        with server(name="postgres", before=before) as number:
            asked = tuple(f"/proc/{number}/root{his}/base/{name}" for name in kinds)
            found = LiveHost(20).read(Read(asked))
    except Refused as why:
        pytest.skip(f"a process may have no mounts of its own here: {why}")
    assert found.errors == {}
    told = {path.rpartition("/")[2]: said.endswith(BARRED) for path, said in found.devices.items() if path in asked}
    assert sorted(told) == sorted(kinds)
    assert {name for name, barred in told.items() if barred} == {"bare", "roots", "but_the_group"}
