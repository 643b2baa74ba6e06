"""Host ids: what a kernel's command line gives, and whether it is that of /etc/hostid."""

from __future__ import annotations

import pytest

from auditor.derive import hostid_given
from auditor.facts import HOST, Fact, Facts, Known, Unknown, known, unknown
from auditor.host import hostid

OWN = "00bab10c"
OWNS = (OWN, "0cb1ba00")


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        ("root=zfs:rpool/ROOT quiet\n", []),
        ("spl_hostid=00bab10c\n", [("spl_hostid", OWN)]),
        ("spl_hostid=0x00BAB10C quiet\n", [("spl_hostid", OWN)]),
        ('"spl_hostid=00bab10c"\n', [("spl_hostid", OWN)]),
        ("spl_hostid=1 spl_hostid=00bab10c\n", [("spl_hostid", OWN)]),
        ("spl_hostid=00000000\n", [("spl_hostid", hostid.ZERO)]),
        ("spl_hostid=\n", []),
        ("spl_hostid=100bab10c\n", [("spl_hostid", hostid.MALFORMED)]),
        ("my_spl_hostid=1 x.spl_hostid=1 spl_hostid_path=/etc/id spl.spl_hostid_path=/etc/id\n", []),
        ("spl.spl_hostid=0x00bab10c\n", [("spl.spl_hostid", OWN)]),
        ('spl.spl-hostid="12235020"\n', [("spl.spl_hostid", OWN)]),
        ("spl.spl_hostid=056530414\n", [("spl.spl_hostid", OWN)]),
        ("spl.spl_hostid=0\n", []),
        ("spl.spl_hostid=00000000\n", []),
        ("spl.spl_hostid=00bab10c\n", [("spl.spl_hostid", hostid.MALFORMED)]),
        ("spl.spl_hostid=0x100bab10c\n", [("spl.spl_hostid", OWN)]),
    ],
)
def test_of_the_command_line(line: str, ids: list[tuple[str, str]]) -> None:
    assert list(hostid.of_line(line)) == ids


@pytest.mark.parametrize(
    ("text", "own"),
    [("\x0c\udcb1\udcba\x00", OWNS), ("\x0c\udcb1\udcba\x00\n", OWNS), ("\x01\x02\x03", ()), ("", ())],
)
def test_of_the_file(text: str, own: tuple[str, ...]) -> None:
    assert hostid.of_file(text) == own


@pytest.mark.parametrize(
    ("given", "other"),
    [
        ((), False),
        ((OWN,), False),
        ((OWN, "0cb1ba00", "0a0b0c0d"), True),
        ((OWN, "0a0b0c0d"), True),
        ((hostid.MALFORMED,), True),
        ((hostid.ZERO,), True),
    ],
)
def test_another_than_that_of_the_file(given: tuple[str, ...], other: bool) -> None:
    facts = Facts()
    facts.put(Fact(HOST, "hostids", known(OWNS, OWN)))
    facts.put(Fact(HOST, "command_line_hostids", known(given, "ids")))
    (found,) = hostid_given.derive(HOST, facts)
    assert isinstance(found.value, Known)
    assert found.value.value is other


@pytest.mark.parametrize("given", [("0cb1ba00",), (OWN, "0cb1ba00")])
def test_the_same_bytes_from_the_other_end_are_left_open(given: tuple[str, ...]) -> None:
    """It is the same id on a big-endian host, and another on all others."""
    facts = Facts()
    facts.put(Fact(HOST, "hostids", known(OWNS, OWN)))
    facts.put(Fact(HOST, "command_line_hostids", known(given, "ids")))
    (found,) = hostid_given.derive(HOST, facts)
    assert isinstance(found.value, Unknown)


@pytest.mark.parametrize("missing", ["hostids", "command_line_hostids"])
def test_without_both_nothing_is_known(missing: str) -> None:
    facts = Facts()
    for name, value in (("hostids", known(OWNS, OWN)), ("command_line_hostids", known((), "no id"))):
        facts.put(Fact(HOST, name, unknown("not read") if name == missing else value))
    (found,) = hostid_given.derive(HOST, facts)
    assert isinstance(found.value, Unknown)
