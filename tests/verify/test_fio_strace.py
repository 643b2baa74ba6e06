"""What strace 6.1 printed of fio: calls in one piece and in two, that failed, and on files with odd names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.verify import fio, profile
from auditor.verify.fio import FILES
from auditor.verify.result import Syscalls
from tests.golden import FIO, fio_output

TRACES = sorted(FIO.glob("*/log.strace"))
FILE = "6</tank/db/.zaudit-1/zaudit.log.0.0>"


def parse(*lines: str) -> Syscalls:
    return fio.parse("\n".join(lines), FILES)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.parent.name)
def test_real_traces(path: Path) -> None:
    text = path.read_text()
    seen = fio.parse(text, FILES)
    (log,) = [each for each in profile.load(path.parent.name).sections if each.purpose == "log"]
    syncs = seen.fdatasyncs if log.sync == "fdatasync" else seen.fsyncs
    assert syncs == text.count(f"{log.sync}(") > 10
    assert syncs + 1 >= seen.writes >= syncs
    assert seen.opened
    assert not any(seen.opened), "none of them opens with O_DSYNC"


def test_some_of_them_come_in_two_pieces() -> None:
    assert any("sync resumed>" in path.read_text() for path in TRACES)
    assert any("pwrite64 resumed>" in path.read_text() for path in TRACES)


def test_as_many_as_fio_counted() -> None:
    done = fio.documents(fio_output(FIO / "postgres" / "log.out.gz"))
    assert fio.jobs_of(done[0], {"log": "fdatasync"})[0].syncs > 10
    expected = json.loads((FIO / "postgres" / "expected.json").read_text())["log.strace"]
    assert expected["fdatasyncs"] > 10


def test_a_call_in_two_pieces_counts_once() -> None:
    seen = parse(
        f"7 fdatasync({FILE} <unfinished ...>",
        f'8 pwrite64({FILE}, "(<unfinished ...>"..., 8192, 0 <unfinished ...>',
        f"9 fdatasync({FILE}) = 0",
        "7 <... fdatasync resumed>) = 0",
        "8 <... pwrite64 resumed>) = 8192",
    )
    assert (seen.fdatasyncs, seen.writes) == (2, 1)


def test_a_call_that_fails_does_not_count() -> None:
    seen = parse(
        f"7 fdatasync({FILE}) = -1 EIO (Input/output error)",
        f"7 fsync({FILE} <unfinished ...>",
        "7 <... fsync resumed>) = -1 EIO (Input/output error)",
        f'7 pwrite64({FILE}, "x"..., 8192, 0) = -1 ENOSPC (No space left on device)',
        '7 openat(AT_FDCWD</t>, "./zaudit.log.0.0", O_RDWR|O_DSYNC, 0600) = -1 EACCES (Permission denied)',
    )
    assert seen == Syscalls(0, 0, 0, ())


def test_a_call_that_never_returned_does_not_count() -> None:
    assert parse(f"7 fsync({FILE} <unfinished ...>", "7 +++ killed by SIGKILL +++").fsyncs == 0


def test_other_files_do_not_count() -> None:
    seen = parse(
        "7 fsync(6</tank/db/mine>) = 0",
        "7 fsync(6) = 0",
        '7 write(1<pipe:[1234]>, "{ zaudit."..., 512) = 512',
        '7 openat(AT_FDCWD</tank/.zaudit-1>, "zaudit.job.fio", O_RDONLY) = 3</tank/.zaudit-1/zaudit.job.fio>',
        f"7 sync_file_range({FILE}, 0, 4096, 2) = 0",
    )
    assert seen == Syscalls(0, 0, 0, ())


@pytest.mark.parametrize(
    "where",
    ["/tank/with space", "/tank/a\\76b \\74c", '/tank/a\\"b', "/tank/\\303\\251", "/tank/(a) = -1 Ex", "/tank/[x]"],
)
def test_odd_names_of_folders(where: str) -> None:  # as strace -y prints them
    seen = parse(
        f'7 openat(AT_FDCWD<{where}>, "./zaudit.log.0.0", O_RDWR|O_CREAT|O_DSYNC, 0600) = 6<{where}/zaudit.log.0.0>',
        f'7 pwrite64(6<{where}/zaudit.log.0.0>, "x"..., 8192, 0) = 8192',
        f"7 fsync(6<{where}/zaudit.log.0.0>) = 0",
    )
    assert seen == Syscalls(1, 1, 0, (("O_DSYNC",),))


def test_flags_and_forms_of_open() -> None:
    seen = parse(
        'open("zaudit.a", O_WRONLY|O_SYNC) = 3',
        '[pid  12] openat(AT_FDCWD, "zaudit.b", O_RDWR|O_DIRECT|O_DSYNC) = 3',
        '12    openat(AT_FDCWD, "zaudit.c", O_RDWR <unfinished ...>',
        "12    <... openat resumed>) = 3</t/zaudit.c>",
    )
    assert seen.opened == (("O_SYNC",), ("O_DSYNC", "O_DIRECT"), ())


def test_a_zvol_is_named_by_its_node() -> None:
    assert parse("7 fdatasync(5</dev/zd16>) = 0").fdatasyncs == 1


@pytest.mark.parametrize(
    "text", ["", "strace: attach: ptrace(PTRACE_SEIZE, 1): Operation not permitted\n", "+++ exited +++"]
)
def test_no_trace(text: str) -> None:
    with pytest.raises(ValueError, match="strace traced no call"):
        fio.parse(text, FILES)
