"""Recordings that may leave the house: serials, GUIDs, WWNs and host names become stable stand-ins.

The same original always becomes the same stand-in of the same length and alphabet in the whole recording, so links between
outputs hold and the findings stay the same. The key is made for each recording and thrown away, so no one can find the
originals by trying all serials; or a site keeps one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache

from auditor.databases import configuration
from auditor.databases.engine import WITHHELD
from auditor.host import sql
from auditor.host.live import allowed_part
from auditor.host.request import Capture, Files
from auditor.recording.identities import FILES, HOST_FILE, is_short, replacement
from auditor.recording.recording import Recording
from auditor.sources import commands, guests

# of these nothing but what a rule reads stays: clients, users and comments are names of people and hosts
_EXPORTS = re.compile(r"/etc/exports(?:\.d/.*)?|/var/lib/nfs/etab")
_CLIENT = re.compile(r'(?<=\s)[^\s#()\\/"-][^\s()]*')
_SHARED = re.compile(rb"\tsharenfs\t[^\t\n]*=[^\t\n]*")
_GUESTS = "/etc/libvirt/qemu/"
_SMB_CONF = "/etc/samba/smb.conf"
_SMB_LINE = re.compile(r"\s*(?:\[|(?i:path|strict\s*sync|include|config|copy|registry)\b)")
# of host ids only whether they are the same says anything, from either end, or that one is zero
_HOSTID, _PARAMETER = "/etc/hostid", "/sys/module/spl/parameters/spl_hostid"
_GIVEN = re.compile(r'(?<!\S)"?((?:[\w-]+\.)?spl[-_]hostid)="?([^\s"]+)"?')
_OWN, _ZERO, _OTHER = ("01020304", "04030201"), "00" * 4, "0a0b0c0d"
_CMDLINE, _ZFS_OPTION = "/proc/cmdline", re.compile(r'(?<!\S)"?(?:zfs\.|spl\.|spl_hostid=)[^\s"]+"?')
_ZFS_WORD = re.compile(r"\b(?:zfs|spl)\b")
_ENVIRON = re.compile(r"/proc/\d+/environ")
_OF_DATABASES = re.compile(r"/proc/(?:\d+|self)/(?:cmdline|maps|root/.+)")
_CELLS = re.compile(rb"([\t\n])")
_PATHS = ("paths",)
_ALL, _SERIAL = "hostname: '", "Serial Number: "  # all that follows is a name, or a serial number


def redact(recording: Recording, key: bytes = b"") -> Recording:
    """The same recording with every identity replaced. Device models, firmware and dataset names stay: rules need them.
    key: of a fleet, whose recordings share stand-ins: its holder can try all serials. Empty: one for this recording, thrown
    away. Names and serials of a few characters have few stand-ins, so different ones may share one."""
    import secrets

    recording = _cut(_with_other_hostids(recording))
    replace_all = replacement(recording, list(dict.fromkeys(_texts(recording))), key or secrets.token_bytes(32))

    @cache  # paths, targets of links and errors stand there again and again
    def text(value: str) -> str:
        return replace_all(_bytes(value)).decode("utf-8", "surrogateescape")

    def file(path: str, content: str) -> str:
        value = content.strip()
        if path == HOST_FILE:
            return content.replace(value, text(f"{_ALL}{value}'")[len(_ALL) : -1])
        if is_short(_bytes(value)) and any(pattern.fullmatch(path) for pattern in FILES):
            return content.replace(value, text(f"{_SERIAL}{value}")[len(_SERIAL) :])
        return text(content)

    return replace(
        recording,
        targets=tuple(map(text, recording.targets)),
        options={
            key: sql.REDACTED if key == "connection" and value else text(value)
            for key, value in recording.options.items()
        },
        commands={
            tuple(map(text, argv)): each._replace(
                stdout=_by_cells(replace_all, each.stdout) if _is_table(argv) else replace_all(each.stdout),
                stderr=replace_all(each.stderr),
                fault=text(each.fault),
            )
            for argv, each in recording.commands.items()
        },
        files={
            tuple(map(text, patterns)): Files(
                {text(path): file(path, content) for path, content in files.text.items()},
                {text(path): text(target) for path, target in files.links.items()},
                {text(path): text(error) for path, error in files.errors.items()},
                {text(path): text(device) for path, device in files.devices.items()},
                {text(path): after for path, after in files.changed.items()},
            )
            for patterns, files in recording.files.items()
        },
        paths={text(path): text(real) for path, real in recording.paths.items()},
        trial=replace_all(recording.trial),
    )


def _texts(recording: Recording) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """(command or nothing, text) of all that is in a recording. Of a table each cell once."""
    for argv, capture in recording.commands.items():
        out = capture.stdout
        if _is_table(argv):
            argv = ("zfs", "get")
            out = out if b"\tguid\t" in out else b"\n".join(sorted(set(_CELLS.split(out))))
        yield argv, out
        if capture.stderr:
            yield ("stderr", argv[0]), capture.stderr
    small: list[str] = [*recording.targets, *recording.options.values(), *recording.paths, *recording.paths.values()]
    small += (word for argv in recording.commands if argv[0] != sql.NAME for word in argv)
    small += (capture.fault for capture in recording.commands.values())
    for patterns, files in recording.files.items():
        small += (*patterns, *files.links, *files.links.values(), *files.errors, *files.errors.values(), *files.text)
        for path, content in files.text.items():
            serial = _SERIAL if any(pattern.fullmatch(path) for pattern in FILES) else ""
            yield ("file", path), _bytes(serial + content)
    yield _PATHS, _bytes("\n".join(small) + "\n")
    yield _PATHS, recording.trial


def _is_table(argv: tuple[str, ...]) -> bool:
    """Whether a command prints properties of datasets."""
    return argv[0] == "python3" or any(each.table and each.begins_as(argv) for each in commands())


def _cut(recording: Recording) -> Recording:
    """Without what no rule reads, and what may name anything."""
    return replace(
        recording,
        commands=_without_names(recording.commands),
        files={
            patterns: files._replace(
                text={
                    _unnamed(path, at): _without(path, content, files)
                    for at, (path, content) in enumerate(sorted(files.text.items()))
                },
                errors={_unnamed(path, at): why for at, (path, why) in enumerate(sorted(files.errors.items()))},
            )
            for patterns, files in recording.files.items()
        },
    )


def _with_other_hostids(recording: Recording) -> Recording:
    """With a stand-in for the id of the host, and one for all others."""
    files_of_it = (files.text[_HOSTID] for files in recording.files.values() if _HOSTID in files.text)
    own = next(filter(None, map(hostid_of_file, files_of_it)), ())

    def stand_in(name: str, value: str) -> str:
        given = hostid_of_option(name, value)
        if given in own:
            return _OWN[own.index(given)]
        return _ZERO if given in ("", ZERO) else _OTHER

    def option(match: re.Match[str], name: str = "") -> str:
        return f"{match[1]}=0x{stand_in(name or match[1].replace('-', '_'), match[2])}"

    def text(path: str, content: str) -> str:
        if path == _HOSTID:
            return bytes.fromhex(_OWN[1]).decode() if hostid_of_file(content) else ""
        if path == _PARAMETER and content.strip():
            return f"{int(stand_in(HOSTID_PARAMETER, content.strip()), 16)}\n"
        if "/modprobe.d/" in path:
            return _GIVEN.sub(lambda match: option(match, HOSTID_PARAMETER), content)
        return _GIVEN.sub(option, content) if path == _CMDLINE else content

    return replace(
        recording,
        files={
            patterns: files._replace(text={path: text(path, content) for path, content in files.text.items()})
            for patterns, files in recording.files.items()
        },
    )


def _unnamed(path: str, number: int) -> str:
    """libvirt calls its files as their guests."""
    return f"{_GUESTS}guest{number}.xml" if path.startswith(_GUESTS) and "*" not in path else path


def _without(path: str, content: str, others: Files) -> str:
    if path == _SMB_CONF:
        return "".join(line for line in content.splitlines(keepends=True) if _SMB_LINE.match(line))
    if _EXPORTS.fullmatch(path):
        return _CLIENT.sub("client", re.sub(r"#.*", "", content))
    if path == _CMDLINE:  # it may name anything: disks, addresses, passwords
        return " ".join(_ZFS_OPTION.findall(content)) + "\n"
    if "/modprobe.d/" in path:
        return "".join(line for line in content.splitlines(keepends=True) if _ZFS_WORD.search(line))
    if _ENVIRON.fullmatch(path):  # of this server alone
        engine = configuration.server(others.text.get(path.replace("environ", "cmdline"), "").partition("\0")[0])
        return configuration.variables(content, engine.variables if engine else {})
    if path.endswith("/cmdline") and content.startswith(guests.GUEST):
        return re.sub(r"^guest .*", f"{guests.GUEST}{WITHHELD}", content)
    if _OF_DATABASES.fullmatch(path):  # an older zaudit kept more than this one
        return allowed_part(path, content) or ""
    return content


def _by_cells(replace_all: Callable[[bytes], bytes], table: bytes) -> bytes:
    """Each different cell once: a table of 10,000 datasets has few."""
    cells = _CELLS.split(table)
    made = {cell: replace_all(cell) for cell in set(cells)}
    return b"".join(map(made.__getitem__, cells))


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def _without_names(commands: Mapping[tuple[str, ...], Capture]) -> dict[tuple[str, ...], Capture]:
    """How a database was reached names hosts and people, and so does the error where it was not; a share names its clients."""
    found = {}
    for argv, capture in commands.items():
        if argv[0] == sql.NAME:
            argv = (*argv[:2], sql.REDACTED)
            stderr = re.sub(rb"(?s): .*", b": (redacted)", capture.stderr)
            capture = capture._replace(stdout=_without_roles(capture.stdout), stderr=stderr)
        elif _is_table(argv):
            capture = capture._replace(
                stdout=_SHARED.sub(lambda found: re.sub(rb"=[^,\t]+", b"=client", found[0]), capture.stdout)
            )
        found[argv] = capture
    return found


def _without_roles(answer: bytes) -> bytes:
    """Roles and databases that have settings of their own become role1, database1, ...; what is not understood is withheld."""
    import json

    try:
        found = json.loads(answer)
        if isinstance(found, dict) and "roles" not in found:  # MySQL and MariaDB have no such settings
            return answer
        for number, row in enumerate(found["roles"], 1):
            row[:2] = [row[0] and f"database{number}", row[1] and f"role{number}"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return b""
    return (json.dumps(found, indent=1, sort_keys=True) + "\n").encode()


# -- the host id ------------------------------------------------------------------------------------------------------
# The host id, as /etc/hostid and the kernel's command line give it: 8 hexadecimal digits.
#
# spl_hostid= is for the initramfs: that of dracut makes an /etc/hostid of it, with zgenhostid, for which zero means a
# random id. spl.spl_hostid= is the parameter of the module, which precedes any /etc/hostid; there zero means none. (OpenZFS
# 2.4.4 contrib/dracut/90zfs/parse-zfs.sh.in, cmd/zgenhostid.c, module/os/linux/spl/spl-generic.c zone_get_hostid)

HOSTID_PARAMETER = "spl.spl_hostid"
MALFORMED, ZERO = "malformed", "zero"
# as the kernel's kstrtoul reads a number with base 0
_HOSTID_NUMBERS = (
    (16, re.compile(r"0[xX]([0-9A-Fa-f]{1,16})")),
    (8, re.compile(r"0([0-7]{0,21})")),
    (10, re.compile(r"([1-9][0-9]{0,18})")),
)
_HOSTID_BYTES = 4
_HOSTID_MASK = 0xFFFFFFFF


def hostid_of_file(text: str) -> tuple[str, ...]:
    """Its first four bytes as little- and big-endian hosts read them; nothing where they are fewer. (hostid_read)"""
    data = text.encode("utf-8", "surrogateescape")[:_HOSTID_BYTES]
    return (data[::-1].hex(), data.hex()) if len(data) == _HOSTID_BYTES else ()


def hostid_of_option(name: str, value: str) -> str:
    """Its id, ZERO of the first option, MALFORMED, or empty where it leaves /etc/hostid in force."""
    if name == "spl_hostid":
        digits = re.fullmatch(r"(?:0[xX])?([0-9A-Fa-f]{1,8})", value)
        if not digits:
            return MALFORMED
        return f"{int(digits[1], 16):08x}" if digits[1].strip("0") else ZERO
    for base, pattern in _HOSTID_NUMBERS:
        digits = pattern.fullmatch(value)
        if digits:
            number = int(digits[1] or "0", base)
            return f"{number & _HOSTID_MASK:08x}" if number else ""
    return MALFORMED
