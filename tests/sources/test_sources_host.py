"""What must hold for every output: what is cut off is no fact, what is strange is a ValueError and nothing worse."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.facts import HOST, Fact, Facts, Known, Subject, known
from auditor.host import builtin
from auditor.host.request import Files, Output, Run, Skip
from auditor.sources import kernel_module, kstat, machine, zfs, zpool
from auditor.sources.mounts import mount_of, mounts
from auditor.sources.source import Source
from tests import pairs, shared
from tests.pairs import Pair
from tests.question import patterns

TANK = Subject("dataset", "tank")
POOL = Subject("pool", "tank")
RUNS = (zfs.properties, zfs.free_text, zfs.ancestors, zfs.datasets, zfs.userland, zpool.pools, machine.virtualization)
READS = (
    *((source, HOST) for source in (kstat.arcstats, kstat.dmu_tx, kstat.zil, zfs.loaded, kernel_module.parameters)),
    *((source, HOST) for source in (machine.memory, machine.dmi, machine.identity)),
    *((source, POOL) for source in (kstat.iostats, kstat.state, kstat.txgs)),
    (kstat.objset, TANK),
)
FREE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)
REAL = pairs.output("zfs_get", "2.3.9-odd-names-encrypted-zvol")


def name_of(source: object) -> str:
    return source.name if isinstance(source, Source) else ""


# -- zfs get ------------------------------------------------------------------------------------------------------


@given(mountpoint=FREE, sharenfs=FREE, source=st.sampled_from(["local", "received", "inherited from tank"]))
def test_free_text_comes_back_whole(mountpoint: str, sharenfs: str, source: str) -> None:
    """TABs and newlines included; a text that forges records is refused, or taken for what it says."""
    lines = (
        "sync\talways\tlocal",
        f"mountpoint\t{mountpoint}\t{source}",
        f"sharenfs\t{sharenfs}\t{source}",
        "readonly\toff\tlocal",
    )
    text = "".join(f"tank/db\t{line}\n" for line in lines)
    found = {
        fact.name: fact.value for each in (zfs.properties, zfs.free_text) for fact in each.parse(Output(text, ""), TANK)
    }
    for name, value in (("mountpoint", mountpoint), ("sharenfs", sharenfs)):
        match found.get(name):
            case Known(got, (evidence,)):
                assert got == value
                assert evidence.origin == ("tank" if source.startswith("inherited") else "")
            case _:
                assert value == "-"
    assert isinstance(found["sync"], Known)
    assert found["sync"].value == "always"


def test_a_forged_record_is_refused() -> None:
    mountpoint = "/x\tlocal\ntank\tsync\talways"
    text = f"tank\ttype\tfilesystem\t-\ntank\tmountpoint\t{mountpoint}\tlocal\ntank\tsync\tdisabled\tlocal\n"
    with pytest.raises(ValueError, match="records of tank contradict each other"):
        list(zfs.properties.parse(Output(text, ""), TANK))


@shared.examples(60, deadline=None)
@given(share=st.floats(0, 1))
def test_a_cut_zfs_get_gives_fewer_facts_never_others(share: float) -> None:
    subject, whole = Subject("dataset", "my pool"), REAL
    every = set(zfs.properties.parse(Output(whole, ""), subject))
    try:
        some = set(zfs.properties.parse(Output(whole[: int(len(whole) * share)], ""), subject))
    except ValueError:
        return
    assert some <= every


def test_a_zfs_get_cut_at_any_line() -> None:
    subject, lines = Subject("dataset", "my pool"), REAL.splitlines(keepends=True)
    every = set(zfs.properties.parse(Output("".join(lines), ""), subject))
    for end in range(1, len(lines)):
        assert set(zfs.properties.parse(Output("".join(lines[:end]), ""), subject)) < every


def test_ten_thousand_datasets_share_what_reads_alike() -> None:
    record = "tank/{}\tsync\tdisabled\tinherited from tank\n"
    facts = zfs.properties.parse(Output("".join(record.format(n) for n in range(10_000)), ""), TANK)
    assert len({id(fact.value) for fact in facts if fact.name in ("sync", "ancestors", "pool")}) == 3


@pytest.mark.parametrize(
    ("release", "asked"), [((2, 1, 11), False), ((2, 2, 11), False), ((2, 3, 0), True), (None, False)]
)
def test_only_properties_of_the_release_are_asked_for(release: tuple[int, ...] | None, asked: bool) -> None:
    facts = Facts()
    if release:
        facts.put(Fact(HOST, "zfs_userland_version", known(release, "")))
    request = zfs.properties.request(TANK, facts)
    assert isinstance(request, Run)
    assert ("direct" in request.argv[-2].split(",")) == asked
    assert request.argv[-1] == "tank"


def test_ancestors_are_asked_for_nearest_first() -> None:
    request = zfs.ancestors.request(Subject("dataset", "tank/db/wal"), Facts())
    assert isinstance(request, Run)
    assert request.argv[-2:] == ("tank/db", "tank")
    assert isinstance(zfs.ancestors.request(TANK, Facts()), Skip)


# -- any output ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", RUNS, ids=name_of)
@shared.examples(50)
@given(
    text=st.text(max_size=200)
    | st.lists(st.sampled_from(["tank", "\t", "\n", "sync", "-", "local", "1", "zfs-2.3.9"])).map("".join)
)
def test_garbage_from_a_command_raises_only_value_error(source: Source, text: str) -> None:
    with contextlib.suppress(ValueError):
        assert all(isinstance(fact.value, Known) for fact in source.parse(Output(text, ""), TANK))


@pytest.mark.parametrize(("source", "subject"), READS, ids=name_of)
@shared.examples(50)
@given(data=st.data())
def test_garbage_in_a_file_raises_only_value_error(source: Source, subject: Subject, data: st.DataObject) -> None:
    paths = [path.replace("*", "x") for path in patterns(source, subject)]
    word = st.sampled_from(
        ["1 1 0x01 2 3 4 5\n", "name type data\n", "dataset_name 7 tank\n", "C", "O", "\n", " ", "-1", "4"]
    )
    text = data.draw(st.text(max_size=100) | st.lists(word).map("".join))
    with contextlib.suppress(ValueError):
        list(source.parse(Files(dict.fromkeys(paths, text)), subject))


CASES = [
    (source, subject, pair)
    for source, subject in READS
    for pair in pairs.of(source.name)
    if pair.case.startswith("2.") and "space" not in pair.case
]


@pytest.mark.parametrize(("source", "subject", "pair"), CASES, ids=lambda each: getattr(each, "case", ""))
def test_a_cut_file_gives_fewer_facts_never_others(source: Source, subject: Subject, pair: Pair) -> None:
    assert isinstance(pair.reply, Files)
    whole = pair.reply.text
    every = set(source.parse(Files(whole), subject))
    for name, text in whole.items():
        for end in {*range(0, len(text), 1 + len(text) // 150), len(text) - 1}:
            try:
                some = set(source.parse(Files({**whole, name: text[:end]}), subject))
            except ValueError:
                continue
            assert some <= every, (name, end)


# -- the channel program ------------------------------------------------------------------------------------------

FAKE = """
def lzc_channel_program_nosync(pool, program, instrlimit, memlimit, params):
    assert (pool, params) == (b"tank", [b"tank/db", b"sync", b"mountpoint"])
    assert memlimit <= 100 << 20 and instrlimit <= 100000000 and b"zfs.get_prop" in program
    return {b"tank/db/wal": b"tank/db/wal\\tsync\\tdisabled\\tinherited from tank\\n", b"tank/db":
            b"tank/db\\tsync\\tdisabled\\tinherited from tank\\ntank/db\\tmountpoint\\t/\\xff\\tlocal\\n"}
"""


def test_the_script_stands_alone_and_prints_what_zfs_get_would(tmp_path: Path) -> None:
    (tmp_path / "libzfs_core.py").write_text(FAKE)
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + builtin.lzc_script().removeprefix(
        "from __future__ import annotations\n"
    )
    command = [sys.executable, "-I", "-c", script, "tank", "tank/db", "sync", "mountpoint"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True, cwd="/")
    facts = zfs.channel_program.parse(
        Output(done.stdout.decode("utf-8", "surrogateescape"), ""), Subject("dataset", "tank/db")
    )
    found = [
        (fact.subject.name, fact.value.value)
        for fact in facts
        if fact.name in ("sync", "mountpoint") and isinstance(fact.value, Known)
    ]
    assert found == [("tank/db", "disabled"), ("tank/db", "/\udcff"), ("tank/db/wal", "disabled")]


def test_the_script_says_in_one_line_why_not() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", builtin.lzc_script(), "p", "p", "sync"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"ModuleNotFoundError: No module named 'libzfs_core'\n"


def test_the_channel_program_is_asked_only_when_wanted() -> None:
    facts = Facts()
    assert isinstance(zfs.channel_program.request(TANK, facts), Skip)
    facts.put(Fact(HOST, "consistent", known(True, "--consistent")))
    request = zfs.channel_program.request(Subject("dataset", "tank/db"), facts)
    assert isinstance(request, Run)
    assert request.argv[:3] == (builtin.LZC_NAME, "tank", "tank/db")
    assert set(request.argv[3:]) == set(zfs.PROPERTIES) - builtin.LZC_CANNOT_SAY - {"direct"}


# -- mounts -------------------------------------------------------------------------------------------------------

TABLE = (
    "22 28 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
    "28 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
    "40 28 0:50 / /tank rw,relatime shared:9 - zfs tank rw,xattr,posixacl\n"
    "41 40 0:51 / /tank/a\\040b\\011c\\134d rw - zfs tank/a\\040b rw\n"
    "42 40 0:52 / /tank/db rw master:3 propagate_from:2 - zfs tank/db rw\n"
    "43 42 0:53 / /tank/db/wal rw - zfs tank/wal rw\n"
)


def source(text: str, path: str) -> str:
    found = mount_of(mounts(text), path)
    return found.source if found else "none"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "/dev/sda1"),
        ("/tank", "tank"),
        ("/tank/dbx", "tank"),
        ("/tank/db/base/1", "tank/db"),
        ("/tank/db/wal/0001", "tank/wal"),
        ("/tank/a b\tc\\d/x", "tank/a b"),
        ("/system", "/dev/sda1"),
    ],
)
def test_a_path_is_on_the_mount_that_covers_it(path: str, expected: str) -> None:
    assert source(TABLE, path) == expected


def test_a_later_mount_hides_what_was_there() -> None:
    same = "44 42 0:54 / /tank/db rw - tmpfs same rw\n"
    assert source(TABLE + same, "/tank/db/base/1") == "same"
    above = "45 40 0:55 / /tank rw - tmpfs above rw\n"
    assert source(TABLE + same + above, "/tank/db/wal") == "above"


def test_without_a_root_the_longest_mount_point_decides() -> None:
    rootless = "".join(line for line in TABLE.splitlines(keepends=True) if " / / " not in line)
    assert source(rootless, "/tank/db/wal/1") == "tank/wal"
    assert source(rootless, "/home") == "none"


@pytest.mark.parametrize("text", ["x\n", "1 2 3 4 5 6 - zfs tank\n", TABLE[:-5]])
def test_what_is_no_mountinfo_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a mount|cut off"):
        mounts(text)


@pytest.mark.parametrize("text", ["", "\n", "#1 SMP PREEMPT_DYNAMIC Debi", "#1 SMP\n#2", "#1 SMP\n#2\n"])
def test_the_build_of_a_kernel_is_a_whole_line(text: str) -> None:
    with pytest.raises(ValueError, match="not one line"):
        list(machine.kernel_build.parse(Files({machine.BUILD: text}), HOST))
