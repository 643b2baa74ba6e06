"""Recordings that may leave the house: serials, GUIDs, WWNs and host names become stable stand-ins.

The same original always becomes the same stand-in of the same length and alphabet, everywhere in the recording, so that
links between outputs still hold and the findings stay the same. The stand-ins come from a key that is made for each
recording and thrown away: they cannot be turned back by trying all serials.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from auditor.collect import sql
from auditor.collect.recording import Recording
from auditor.collect.request import Capture, Files

# (where an identity is spelt, as the group "id"); each found value is then replaced wherever it stands
_SPELT = tuple(
    re.compile(pattern)
    for pattern in (
        rb'"(?:serial_number|SerialNumber|serial|sn|subnqn|SubsystemNQN|eui64|nguid|wwn|ieee_oui_identifier)"\s*:\s*"(?P<id>[^"\\]+)"',
        rb"\bsn\s*:\s*(?P<id>\S+)",
        # storcli, ssacli
        rb'"(?:Serial Number|SAS Address|SCSI NAA Id|SN|WWN)"\s*:\s*"\s*(?P<id>[^"\\]+?)\s*"',
        rb"\b(?:(?:Cache |Host )?Serial Number|Unique Identifier|Logical Drive Label|WWID):\s+(?P<id>\S[^\n]*?)\s*(?=\n)",
        rb"\b(?:ID_SERIAL|ID_SERIAL_SHORT|ID_SCSI_SERIAL|SCSI_IDENT_SERIAL|ID_WWN|ID_WWN_WITH_EXTENSION|ID_NVME_NQN|ID_PART_ENTRY_UUID|ID_PART_TABLE_UUID|ID_FS_UUID|ID_FS_UUID_SUB|MD_UUID)=(?P<id>[^\n]+)",
        # the prefix says what kind of device it is
        rb"\bDM_UUID=(?:(?:part\d+-)?(?:LVM|CRYPT(?:-[A-Z]+\d*)?|mpath|DMRAID)-)?(?P<id>[^\n]+)",
        rb"\b(?:pool_guid|guid_sum|guid|hostid)\b['\"]?\s*[:=\t]\s*['\"]?(?P<id>\d{6,20})",
        rb"\bhostname: '(?P<id>[^']+)'",
        rb"\b(?:wwn-|nvme-eui\.|nvme-uuid\.|nvme-nvme\.|scsi-|eui\.|uuid\.|nqn\.)(?P<id>[0-9A-Za-z][0-9A-Za-z.:_-]{7,}?)(?=-part\d|[^0-9A-Za-z.:_-]|\Z)",
        rb"/dev/disk/by-(?:uuid|partuuid)/(?P<id>[^/\s\"'=]+)",
        rb"\bzfs-(?P<id>[0-9a-f]{16})\b",
        # /dev/disk/by-id/nvme-MODEL_SERIAL[_NAMESPACE][-partN]
        rb"\b(?:ata|nvme|usb|mmc)-[^\s\"'/=]+?_(?P<id>[0-9A-Za-z]{4,}?)(?:_\d{1,2})?(?:-\d:\d)?(?:-part\d+)?(?=[\s\"'=]|\Z)",
    )
)
_FILES = (
    re.compile(r"/sys/block/[^/]+/(?:device/)?(?:serial|wwid|subsysnqn)"),
    re.compile(r"/sys/class/nvme/[^/]+/(?:serial|subsysnqn)"),
    re.compile(r"/proc/sys/kernel/hostname|/etc/machine-id"),
)
# of these nothing but what a rule reads stays: clients, users and comments are names of people and hosts
_EXPORTS = re.compile(r"/etc/exports(?:\.d/.*)?|/var/lib/nfs/etab")
_CLIENT = re.compile(r'(?<=\s)[^\s#()\\/"-][^\s()]*')
_SMB_CONF = "/etc/samba/smb.conf"
_SMB_LINE = re.compile(r"\s*(?:\[|(?i:path|strict\s*sync|include|config|copy|registry)\b)")
_BINARY = "/etc/hostid"  # only that it exists says anything
_BUILDER = re.compile(rb"(Linux version \S+) .*")  # who built the kernel, and on which host
_CMDLINE, _ZFS_OPTION = "/proc/cmdline", re.compile(r'(?<!\S)"?(?:zfs|spl)\.[^\s"]+"?')
_ZFS_WORD = re.compile(r"\b(?:zfs|spl)\b")
# words that are spelt like identities, or are the name of a host, and stand elsewhere for something else
_COMMON = frozenset(
    b"none unknown (none) localhost default disk disks nvme sata data root pool mirror spare cache special standard "
    b"local online volume filesystem linux debian ubuntu name zpool host state errors sync device devices block".split()
)
_HOST_FILE = "/proc/sys/kernel/hostname"
_HOST = re.compile(rb"(?<=\bhostname: ')[^'\n]+(?=')")  # replaced here even where it is short or common
_LISTS = {("zfs", "list"), ("zfs", "get"), ("zpool", "list")}
_CONNECTION = "redacted"
SHORTEST = 4


def redact(recording: Recording) -> Recording:
    """The same recording with every identity replaced. Device models, firmware and dataset names stay: rules need them."""
    import secrets

    key = secrets.token_bytes(32)
    found = set(_identities(recording)) - _names(recording)
    replace_words = _replacer(sorted(found, key=lambda each: (-len(each), each)), key)

    def replace_all(data: bytes) -> bytes:
        data = _BUILDER.sub(rb"\1 (redacted)", data)
        return replace_words(_HOST.sub(lambda found: _stand_in(found[0], key), data))

    def file(path: str, content: str) -> str:
        if path == _BINARY:
            return ""
        if path == _SMB_CONF:
            content = "".join(line for line in content.splitlines(keepends=True) if _SMB_LINE.match(line))
        if _EXPORTS.fullmatch(path):
            content = _CLIENT.sub("client", re.sub(r"#.*", "", content))
        if path == _CMDLINE:  # it may name anything: disks, addresses, passwords
            return " ".join(_ZFS_OPTION.findall(content)) + "\n"
        if "/modprobe.d/" in path:
            return "".join(line for line in content.splitlines(keepends=True) if _ZFS_WORD.search(line))
        return text(f"hostname: '{content.strip()}'")[11:-1] + "\n" if path == _HOST_FILE else text(content)

    def text(value: str) -> str:
        return replace_all(value.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    return replace(
        recording,
        targets=tuple(map(text, recording.targets)),
        options={
            key: _CONNECTION if key == "connection" and value else text(value)
            for key, value in recording.options.items()
        },
        commands={
            tuple(map(text, argv)): _capture(each, replace_all)
            for argv, each in _without_connection(recording.commands).items()
        },
        files={
            patterns: Files(
                {text(path): file(path, content) for path, content in files.text.items()},
                {text(path): text(target) for path, target in files.links.items()},
                {text(path): error for path, error in files.errors.items()},
            )
            for patterns, files in recording.files.items()
        },
        paths={text(path): text(real) for path, real in recording.paths.items()},
    )


def _without_connection(commands: Mapping[tuple[str, ...], Capture]) -> dict[tuple[str, ...], Capture]:
    """How a database was reached names hosts and people, and so does the error where it was not."""
    found = {}
    for argv, capture in commands.items():
        if argv[0] == sql.NAME:
            argv = (*argv[:2], _CONNECTION)
            stderr = re.sub(rb"(?s): .*", b": (redacted)", capture.stderr)
            capture = capture._replace(stdout=_without_roles(capture.stdout), stderr=stderr)
        found[argv] = capture
    return found


def _without_roles(answer: bytes) -> bytes:
    """Roles and databases that have settings of their own become role1, database1, ..."""
    import json

    try:
        found = json.loads(answer)
        for number, row in enumerate(found["roles"], 1):
            row[:2] = [row[0] and f"database{number}", row[1] and f"role{number}"]
    except (ValueError, KeyError, TypeError):
        return answer
    return (json.dumps(found, indent=1, sort_keys=True) + "\n").encode()


def _capture(capture: Capture, replace_all: Callable[[bytes], bytes]) -> Capture:
    return capture._replace(stdout=replace_all(capture.stdout), stderr=replace_all(capture.stderr))


def _identities(recording: Recording) -> Iterator[bytes]:
    """Everything that some command or file spells as a serial, GUID, WWN or host name."""
    links = "\n".join(path for files in recording.files.values() for path in files.links)
    for text in (*(each.stdout for each in recording.commands.values()), links.encode("utf-8", "surrogateescape")):
        for pattern in _SPELT:
            for found in pattern.finditer(text):
                yield from _worth(found["id"])
    for files in recording.files.values():
        for path, content in files.text.items():
            if any(pattern.fullmatch(path) for pattern in _FILES):
                yield from _worth(content.encode("utf-8", "surrogateescape"))


def _names(recording: Recording) -> set[bytes]:
    """The parts of all names of pools and datasets: a host is often called like one of them."""
    lists = (each.stdout for argv, each in recording.commands.items() if argv[:2] in _LISTS)
    return {part for text in lists for line in text.split(b"\n") for part in line.partition(b"\t")[0].split(b"/")}


def _worth(value: bytes) -> Iterator[bytes]:
    value = value.strip()
    if len(value) >= SHORTEST and value.lower() not in _COMMON and not value.isspace():
        yield value


def _replacer(identities: list[bytes], key: bytes) -> Callable[[bytes], bytes]:
    """One pass over the text, the longest identity first."""
    if not identities:
        return lambda data: data
    stand_ins = {identity: _stand_in(identity, key) for identity in identities}
    pattern = re.compile(b"|".join(map(_alone, identities)))
    return lambda data: pattern.sub(lambda found: stand_ins[found[0]], data)


def _alone(identity: bytes) -> bytes:
    """A number is no part of a longer number, and a short word no part of a longer word."""
    if len(identity) < 8:
        return rb"(?<![0-9A-Za-z])%s(?![0-9A-Za-z])" % re.escape(identity)
    return rb"(?<!\d)%s(?!\d)" % identity if identity.isdigit() else re.escape(identity)


def _stand_in(identity: bytes, key: bytes) -> bytes:
    """Of the same length: digits stay digits, letters stay letters of their case, everything else stays.

    A decimal number keeps its first digit, so that a 64-bit GUID stays one.
    """
    import hashlib

    stream = hashlib.shake_256(key + identity).digest(len(identity))
    made = bytearray(identity)
    for i, (byte, random) in enumerate(zip(identity, stream, strict=True)):
        char = chr(byte)
        if char in string.digits:
            made[i] = byte if i == 0 and identity.isdigit() else ord(string.digits[random % 10])
        elif char in string.ascii_lowercase:
            made[i] = ord("abcdef"[random % 6] if char in "abcdef" else string.ascii_lowercase[random % 26])
        elif char in string.ascii_uppercase:
            made[i] = ord("ABCDEF"[random % 6] if char in "ABCDEF" else string.ascii_uppercase[random % 26])
    return bytes(made)
