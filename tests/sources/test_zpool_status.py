"""What must hold for ``zpool status`` and its kin whatever they are given: cut off, garbled, or of another release."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from auditor.facts import HOST, Fact, Facts, Known, Subject, known
from auditor.host.request import Output, Run, Skip
from auditor.recording.recording import Recording
from auditor.sources import sources, zpool, zpool_status
from auditor.sources.pool_tree import Paths, count, display_name, size
from auditor.sources.source import Source
from tests import pairs, shared

SOURCES = (zpool_status.status, zpool_status.paths, zpool.properties, zpool.vdev_properties, zpool.config)
TANK = Subject("pool", "tank")


def values(source: Source, text: str, pool: Subject) -> dict[tuple[Subject, str], object]:
    """All facts without their evidence; every one known, specified, and given once."""
    found: dict[tuple[Subject, str], object] = {}
    for fact in source.parse(Output(text, "command"), pool):
        assert isinstance(fact.value, Known)
        assert (fact.subject, fact.name) not in found
        assert f"{fact.subject.kind}.{fact.name}" in source.facts or fact.name in source.facts
        found[fact.subject, fact.name] = fact.value.value
    return found


def good() -> list[tuple[str, str, str]]:
    """(collector, pool, output) of every fixture that is understood."""
    found = []
    for source in SOURCES:
        name = source.name
        for pair in pairs.of(name):
            if "facts" in pair.expected:
                found.append((name, pair.expected["subject"][1], pairs.output(name, pair.case)))
    assert len(found) > 30
    return found


GOOD = good()


def check_cut(name: str, pool: str, text: str, cut: str) -> None:
    source = sources()[name]
    subject = Subject("pool", pool)
    try:
        part = values(source, cut, subject)
    except ValueError:
        return
    assert part.items() <= values(source, text, subject).items()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "pool", "text"), GOOD, ids=lambda each: each[:20])
def test_cut_off_at_any_line(name: str, pool: str, text: str) -> None:
    lines = text.splitlines(keepends=True)
    step = 1 + len(lines) // 100
    for end in range(0, len(lines), step):
        check_cut(name, pool, text, "".join(lines[:end]))


@given(st.sampled_from(GOOD), st.floats(0, 1))
def test_cut_off_anywhere(case: tuple[str, str, str], share: float) -> None:
    name, pool, text = case
    check_cut(name, pool, text, text[: int(share * len(text))])


@pytest.mark.parametrize(("name", "pool", "text"), [case for case in GOOD if case[0] in ("zpool_status", "zdb_config")])
def test_status_and_zdb_give_nothing_when_cut_before_the_end(name: str, pool: str, text: str) -> None:
    end = text.rfind("errors:") if name == "zpool_status" else text.rfind("features_for_read")
    source = sources()[name]
    with pytest.raises(ValueError, match=r"cut off|line 1 column|no pool|not one"):
        list(source.parse(Output(text[: end if end > 0 else len(text) - 3], "command"), Subject("pool", pool)))


HEAD = "  pool: tank\n state: ONLINE\nconfig:\n\n\tNAME        STATE     READ WRITE CKSUM\n"
WORDS = [
    "\t",
    "  ",
    " ",
    "\n",
    ":",
    "tank",
    "mirror-0",
    "sda",
    "ONLINE",
    "0",
    "4.11K",
    "logs",
    "spares",
    "errors: ",
    "-",
]
SOUP = st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=60).map("".join)


@pytest.mark.slow
@given(st.sampled_from(SOURCES), st.text() | SOUP | SOUP.map(lambda soup: HEAD + soup))
@example(zpool_status.status, HEAD + "".join(f"\t{' ' * depth}tank  ONLINE 0 0 0\n" for depth in range(2000)))
@example(
    zpool_status.status, '{"output_version":{"command":"zpool status"},"pools":{"tank":' + '{"vdevs":' * 900 + "}" * 902
)
@example(
    zpool_status.status, '{"output_version":{"command":"zpool status"},"pools":{"tank":{"name":"tank","state":["x"]}}}'
)
@example(zpool_status.status, "[" * 100000)
def test_anything_else_is_a_value_error(source: Source, text: str) -> None:
    with contextlib.suppress(ValueError):
        list(source.parse(Output(text, "command"), TANK))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["tank", "ONLINE", "raidz", "CANT_OPEN", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["vdevs", "tank", "vdev_type", "state", "aux", "logs", "scan_stats", "name"]), inner
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_a_value_error_or_facts(inner: object) -> None:
    pool = {"name": "tank", "state": "ONLINE", "error_count": 0, "vdevs": {"tank": inner}, "logs": inner}
    document = {"output_version": {"command": "zpool status"}, "pools": {"tank": pool}}
    with contextlib.suppress(ValueError):
        values(zpool_status.status, json.dumps(document), TANK)


def test_a_section_that_we_do_not_know_is_refused() -> None:
    text = pairs.output("zpool_status", "2.3-mirror-slog").replace('"logs"', '"faster_logs"')
    with pytest.raises(ValueError, match="faster_logs"):
        values(zpool_status.status, text, TANK)


def test_text_and_json_agree() -> None:
    for one, other in (
        ("2.3-stacked", "2.3-stacked-text"),
        ("2.3-odd-name", "2.3-odd-name-text"),
        ("2.4-raidz", "2.4-raidz-text"),
    ):
        pool = Subject("pool", json.loads(pairs.members("zpool_status")[f"{one}.json"])["subject"][1])
        rich, text = (values(zpool_status.status, pairs.output("zpool_status", each), pool) for each in (one, other))
        assert text.items() <= rich.items()
        assert {name for _, name in rich.keys() - text.keys()} == {"guid", "path", "slow_ios", "used_percent"}


def test_which_output_is_asked_for() -> None:
    def asked(source: Source, **versions: tuple[int, ...]) -> Run | Skip:
        facts = Facts()
        for name, version in versions.items():
            facts.put(Fact(HOST, name, known(version, "")))
        request = source.request(TANK, facts)
        assert isinstance(request, Run | Skip)
        return request

    text, rich = zpool_status.status.request(TANK, Facts()), asked(zpool_status.status, zfs_version=(2, 3, 0))
    assert isinstance(text, Run)
    assert text.argv == ("zpool", "status", "-p", "-s", "tank")
    assert isinstance(rich, Run)
    assert rich.argv == ("zpool", "status", "-j", "--json-int", "tank")
    assert asked(zpool_status.status, zfs_version=(2, 2, 9)) == text
    assert asked(zpool_status.status, zfs_version=(2, 4, 4), zfs_userland_version=(2, 2, 9)) == text
    assert asked(zpool_status.status, zfs_version=(2, 2, 9), zfs_userland_version=(2, 4, 4)) == text
    assert asked(zpool_status.status, zfs_version=(3, 0, 0), zfs_userland_version=(2, 10, 0)) == rich
    assert isinstance(asked(zpool_status.paths, zfs_version=(2, 3, 9)), Skip)
    assert isinstance(asked(zpool_status.paths, zfs_version=(2, 1, 11)), Run)
    assert isinstance(asked(zpool.vdev_properties, zfs_version=(2, 1, 11)), Skip)
    old, new = asked(zpool.properties, zfs_version=(2, 1, 11)), asked(zpool.properties, zfs_version=(2, 2, 0))
    assert isinstance(old, Run)
    assert "bcloneused" not in old.argv[4]
    assert isinstance(new, Run)
    assert "bcloneused" in new.argv[4] + new.argv[5]


@pytest.mark.parametrize(
    ("path", "whole", "plain"),
    [
        ("/dev/disk/by-id/nvme-X_1-part1", "nvme-X_1", "nvme-X_1-part1"),
        ("/dev/disk/by-id/wwn-0x5-part12", "wwn-0x5", "wwn-0x5-part12"),
        ("/dev/nvme0n1p1", "nvme0n1", "nvme0n1p1"),
        ("/dev/sda1", "sda", "sda1"),
        ("/dev/xvda1", "xvda", "xvda1"),
        ("/dev/mapper/mpatha-part1", "mpatha", "mpatha-part1"),
        ("/dev/mapper/luks_root", "luks_root", "luks_root"),
        ("/dev/vg0/log", "vg0/log", "vg0/log"),
        ("/dev/disk/by-foo/x", "disk/by-foo/x", "disk/by-foo/x"),
        ("/srv/image", "/srv/image", "/srv/image"),
    ],
)
def test_names_of_disks(path: str, whole: str, plain: str) -> None:
    assert (display_name(path, True), display_name(path, False)) == (whole, plain)
    assert Paths((path, "/dev/sdz1")).of(whole) == Paths((path, "/dev/sdz1")).of(plain) == path


def test_a_name_that_fits_two_paths_has_none() -> None:
    assert Paths(("/dev/sda1", "/dev/sda2")).of("sda") == ""
    assert Paths(("/dev/sda1", "/dev/sda2")).of("sda1") == "/dev/sda1"
    assert Paths(("/dev/disk/by-id/x",)).of("sda") == ""


def test_paths_meet_names() -> None:
    facts = Facts()
    put(facts, zpool_status.status, "2.1-single-slog")
    paths = "".join(
        f"\t    /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_LABNVME{each}  ONLINE 0 0 0\n" for each in ("0-part1", "2-part1")
    )
    table = f"  pool: tank\n state: ONLINE\nconfig:\n\n\tNAME STATE READ WRITE CKSUM\n\ttank  ONLINE 0 0 0\n{paths}"
    for fact in zpool_status.paths.parse(
        Output(f"{table}\nerrors: No known data errors\n", "zpool status -P tank"), TANK
    ):
        facts.put(fact)
    found = {fact.subject.name: fact.value for fact in zpool_status.join(facts)}
    assert sorted(found) == ["nvme-QEMU_NVMe_Ctrl_LABNVME0", "nvme-QEMU_NVMe_Ctrl_LABNVME2"]
    path = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_LABNVME2-part1"
    assert found["nvme-QEMU_NVMe_Ctrl_LABNVME2"] == known(path, path, "zpool status -P tank")


def put(facts: Facts, source: Source, case: str) -> None:
    text = pairs.output(source.name, case)
    for fact in source.parse(Output(text, "command"), TANK):
        facts.put(fact)


@pytest.mark.parametrize(
    ("text", "counted", "sized"),
    [
        ("0", 0, 0),
        ("4.11K", 4208, 4208),
        ("23.0K", 23552, 23552),
        ("0B", 0, 0),
        ("66.5M", 69730304, 69730304),
        (12, 12, 12),
        ("18446744073709551615", -1, -1),
        ("-", -1, -1),
        ("", -1, -1),
        (None, -1, -1),
        (True, -1, -1),
        ("none", -1, -1),
    ],
)
def test_numbers(text: object, counted: int, sized: int) -> None:
    assert (count(text), size(text)) == (counted, sized)


def named(source: Source, past: Recording, *words: str) -> set[Subject]:
    """The subjects but pools of which a recorded answer tells."""
    answer = next((each for argv, each in past.commands.items() if " ".join(argv).startswith(words)), None)
    assert answer is not None, words
    facts: Iterable[Fact] = source.parse(Output(answer.stdout.decode(), "command"), Subject("pool", "tank"))
    return {fact.subject for fact in facts if fact.subject.kind != "pool" and fact.subject.within == "tank"}


@pytest.mark.parametrize(
    "host", ["2.1-healthy-mirrored-slog", "2.3-healthy-mirrored-slog", "2.4-healthy-mirrored-slog"]
)
def test_the_commands_of_one_host_call_everything_the_same(host: str) -> None:
    past = shared.host(host)
    whole = named(zpool_status.status, past, "zpool status -p ", "zpool status -j ")
    assert len(whole) >= 6
    assert named(zpool.config, past, "zdb -C") == whole
    if not host.startswith("2.1"):
        assert named(zpool.vdev_properties, past, "zpool get -Hp -o name,property,value,source ashift,guid") == whole
