"""Where commands and files spell serials, GUIDs and WWNs, and what looks like one wherever it stands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator

SHORTEST = 4
_KEYS = (  # of JSON
    b"serial_number|SerialNumber|serial|sn|subnqn|SubsystemNQN|HostNQN|HostID|eui64|nguid|wwn|ieee_oui_identifier|"
    b"logical_unit_id|sas_address|attached_sas_address|scsi_lu_id|Serial Number|SAS Address|SCSI NAA Id|SN|WWN"
)
_UDEV = (
    rb"ID_SERIAL|ID_SERIAL_SHORT|ID_SCSI_SERIAL|ID_USB_SERIAL|ID_USB_SERIAL_SHORT|SCSI_IDENT_(?!PORT_RELATIVE|PORT_TARGET_PORT_GROUP)[A-Z0-9_]+|ID_WWN|"
    rb"ID_WWN_WITH_EXTENSION|ID_WWN_VENDOR_EXTENSION|ID_ATA_WWN|ID_NVME_NQN|ID_PART_ENTRY_UUID|ID_PART_TABLE_UUID|"
    rb"ID_FS_UUID|ID_FS_UUID_SUB|MD_UUID|DM_SERIAL|DM_WWN|ID_NET_NAME_MAC|NVME_HOST_TRADDR|NVME_TRADDR|NVME_NQN"
)
_END = rb"(?=-part\d|[\s\"'=,;)]|:(?:\s|\Z)|\Z)"
_MAPPED = rb"(?:part\d+-)?(?:LVM|CRYPT(?:-[A-Z]+\d*)?|mpath|DMRAID)-"
_BUS = rb"(?:ata|nvme|usb|mmc|scsi)-"
_UUID = rb"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"

# of a name that may hold its own beginning, what begins anew is not a part: the next match finds it
# as the group "id"; each found value is then replaced wherever it stands, or only here where it is short
SPELT = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rb'"(?:%s)"\s*+:\s*+"\s*+(?P<id>(?:[^"\\\s]|\\.|\s++(?!"))++)\s*+"' % _KEYS,
        rb"\b(?:sn|nguid|eui64|subnqn)\s*:\s*(?P<id>[^\s\"',{}\[\]]+)",  # nvme
        rb"\b(?:(?:Cache |Host )?Serial [Nn]umber|Unique Identifier|Logical Drive Label|WWID|Asset Tag|"
        rb"LU WWN Device Id|Logical Unit id):\s++(?P<id>\S++(?:[^\S\n]++\S++)*+)",
        rb"\b[Ss]erial(?: [Nn]umber)?[:=#]?\s+(?P<id>(?=\S*\d)[0-9A-Za-z][0-9A-Za-z_-]{5,})",
        rb"\b(?:%s)=(?P<id>[^\n]+)" % _UDEV,
        # the prefix says what kind of device it is
        rb"(?:\bDM_UUID=|\bdm-uuid-|^)%s(?P<id>[0-9A-Za-z:_-]{8,}?)(?=-part\d|[^0-9A-Za-z:_-]|$)" % _MAPPED,
        rb"\b(?:pool_guid|guid_sum|guid|hostid)\b['\"]?(?:\s*+[:=]|[^\S\t]*+\t)\s*+['\"]?(?P<id>\d{6,20})",
        rb"\b(?:wwn-|nvme-eui\.|nvme-uuid\.|nvme-nvme\.|scsi-|eui\.|naa\.|t10\.|uuid\.|nqn\.)(?P<id>[0-9A-Za-z][0-9A-Za-z.:_-]{7,}?)(?=-part\d|[^0-9A-Za-z.:_-]|\Z)",
        rb"\b(?P<id>iqn\.\d{4}-\d\d\.[0-9A-Za-z.:_-]+?)(?=-lun-|[^0-9A-Za-z.:_-]|\Z)",
        rb"-(?:sas-exp|sas-|z?fc-|zfcp-)(?P<id>0x[0-9A-Fa-f]{8,16})\b",
        rb"\bip-(?P<id>(?:(?!\bip-)[^\s/\"'])+?)(?::\d+)?-(?:iscsi|nvme|nbd)",
        rb"\b(?:host_)?(?:traddr|src_addr)=(?P<id>[^\s,\"']{6,})",
        rb"/dev/disk/by-(?:uuid|partuuid)/(?P<id>[^/\s\"'=]+)",
        rb"\bzfs-(?P<id>[0-9a-f]{16})\b",
        rb"\b(?:lvm-pv-uuid-|md-uuid-|DM_UUID=(?!%s))(?P<id>(?:(?!\b(?:lvm-pv|md)-uuid-)[0-9A-Za-z:_-]){8,}?)" % _MAPPED
        + _END,
        # /dev/disk/by-id/nvme-MODEL_SERIAL[_NAMESPACE][-partN]; of a serial the last piece, where udev does not spell it
        rb"\b%s(?:(?!\b%s)[^\s\"'/=])+?_(?P<id>[0-9A-Za-z-]{4,}?)(?:_\d{1,2})?(?:-\d:\d)?" % (_BUS, _BUS) + _END,
        rb"(?:by-id/|^[ \t]+|\"name\":\")virtio-(?!pci\b)(?P<id>[^\s\"'/=,:]{1,20}?)" + _END,
    )
)
# whatever stands before them
NETS = (
    re.compile(rb"(?<![0-9A-Za-z])(?P<id>%s)(?![0-9A-Za-z])" % _UUID),
    # NAA 5 and 6; without 0x a number of 16 digits may be bytes
    re.compile(
        rb"(?<![0-9A-Za-z])(?P<id>0x[56][0-9a-f]{15}(?:[0-9a-f]{16})?|3?6[0-9a-f]{31}"
        rb"|3?(?=[0-9]{0,15}[a-f])[56][0-9a-f]{15})(?![0-9A-Za-z])"
    ),
)
# zpool prints the GUID of a device that is missing in place of its name; other numbers of this length may be bytes
_NUMBER = re.compile(rb"(?<![0-9A-Za-z.])(?P<id>\d{17,20})(?![0-9A-Za-z.])")
_NAME = re.compile(rb"(?m)(?:(?<=\")|(?<=[ \t]))(?P<id>\d{17,20})(?=\"|[ \t]+[A-Z]|[ \t]*$)")
NUMBERED: dict[tuple[str, ...], re.Pattern[bytes]] = {
    ("zpool", "status"): _NAME,
    ("zpool", "history"): _NUMBER,
    **{("stderr", tool): _NUMBER for tool in ("zpool", "zfs", "zdb")},
}
# the same on every host: ZFS's own numbers near 2^63 and 2^64 (also as signed ones), what zpool initialize writes
_LIMITS = (1 << 63) - 1, (1 << 64) - (1 << 32), 0xDEADBEEFDEADBEEE
PARTITION_TYPE = re.compile(
    rb"\bID_PART_ENTRY_TYPE=(%s)" % _UUID
)  # says what a partition is for, the same on every host
_SAME = re.compile(rb"[0fF:.-]+|0x0+")  # the zero UUID, and what drives say that have none
# a number in JSON that is a part of a name: smartctl
_PARTS = re.compile(
    rb'("wwn"\s*:\s*\{\s*"naa"\s*:\s*)(\d+)(\s*,\s*"oui"\s*:\s*)(\d+)(\s*,\s*"id"\s*:\s*)(\d+)(?=\s*\})'
    rb'|("eui64"\s*:\s*\{\s*"oui"\s*:\s*)(\d+)(\s*,\s*"ext_id"\s*:\s*)(\d+)(?=\s*\})'
)
_UNSAFE = re.compile(rb"[^0-9A-Za-z#+.:=@_/-]")  # what udev puts an underscore for in names of links
FILES = (
    re.compile(r"/sys/block/[^/]+/(?:device/)?(?:serial|wwid|subsysnqn)"),
    re.compile(r"/sys/class/nvme/[^/]+/(?:serial|subsysnqn)"),
    re.compile(r"/etc/machine-id"),
)
_MODEL = re.compile(
    rb'"(?:model_name|scsi_model_name|scsi_product|mn|ModelNumber|Model)"\s*:\s*"([^"]+)"|\bID_MODEL=([^\n]+)'
)
# words that are spelt like identities, or are the name of a host, and stand elsewhere for something else
COMMON = frozenset(
    b"none unknown (none) localhost default disk disks nvme sata data root pool mirror spare cache special standard "
    b"local online volume filesystem linux debian ubuntu name zpool host state errors sync device devices block "
    b"redacted empty null n/a not_specified virtio".split()
)


def identities(texts: Iterable[tuple[tuple[str, ...], bytes]]) -> tuple[set[bytes], set[bytes], set[re.Pattern[bytes]]]:
    """What is to be replaced wherever it stands; what only where it is spelt; and the patterns that found the latter.

    texts: (command or nothing, text).
    """
    found: set[bytes] = set()
    short: set[bytes] = set()
    guesses: set[bytes] = set()
    types: set[bytes] = set()
    models: set[bytes] = set()
    patterns = set()
    # of a text it matters which command wrote it only where numbers are names; the kernel's files say the same again and again
    for numbers, text in dict.fromkeys((NUMBERED.get(argv[:2]), text) for argv, text in texts):
        for pattern in SPELT:
            for each in pattern.finditer(text):
                value = _plain(each["id"]).strip()
                if is_worth(value):
                    (guesses if pattern in SPELT[-2:] else found).add(value)
                elif is_short(value):
                    short.add(value)
                    patterns.add(pattern)
        found.update(each["id"] for net in NETS for each in net.finditer(text) if not _SAME.fullmatch(each["id"]))
        if numbers:
            found.update(each["id"] for each in numbers.finditer(text) if not _is_limit(int(each["id"])))
        found.update(each for match in _PARTS.finditer(text) for each in _core(match))
        types.update(PARTITION_TYPE.findall(text))
        models.update(word for pair in _MODEL.findall(text) for each in pair for word in re.split(rb"[\s_]+", each))
    return (found | guesses - models) - types, short, patterns


def ways(value: bytes) -> Iterator[bytes]:
    """How an identity is written: as it is; in JSON, by libraries that escape the slash, too; by udev in names of links."""
    text = value.decode("utf-8", "surrogateescape")
    escaped = json.dumps(text)[1:-1].encode()
    yield value
    yield escaped
    yield escaped.replace(b"/", b"\\/")
    yield _UNSAFE.sub(b"_", re.sub(rb"\s+", b"_", value))


def _plain(value: bytes) -> bytes:
    """Without the escapes of JSON."""
    if b"\\" not in value:
        return value
    try:
        return str(json.loads(b'"%s"' % value)).encode("utf-8", "surrogateescape")
    except ValueError:
        return value


def is_worth(value: bytes) -> bool:
    """Whether a value is nobody else's, wherever it stands."""
    limit = value.isdigit() and len(value) >= 17 and _is_limit(int(value))
    return len(value) >= SHORTEST and value.lower() not in COMMON and not _SAME.fullmatch(value) and not limit


def is_short(value: bytes) -> bool:
    """Whether a value is an identity, but too short to be known again elsewhere."""
    return 0 < len(value) < SHORTEST and value.isalnum() and not _SAME.fullmatch(value)


def with_parts(text: bytes, stand_in: Callable[[bytes], bytes]) -> bytes:
    """The text with names that are given as several numbers replaced, each by the numbers of its stand-in."""

    def replaced(match: re.Match[bytes]) -> bytes:
        (whole,) = _core(match)
        if len(whole) != 16:  # no name
            return re.sub(rb"(:\s*)\d+", rb"\g<1>0", match[0])
        made = stand_in(whole)
        if match[1]:
            numbers = int(made[:1], 16), int(made[1:7], 16), int(made[7:], 16)
            return b"%s%d%s%d%s%d" % (match[1], numbers[0], match[3], numbers[1], match[5], numbers[2])
        return b"%s%d%s%d" % (match[7], int(made[:6], 16), match[9], int(made[6:], 16))

    return _PARTS.sub(replaced, text)


def _core(match: re.Match[bytes]) -> Iterator[bytes]:
    """The 16 hexadecimal digits that the numbers come to."""
    if match[1]:
        yield b"%x%06x%09x" % (int(match[2]), int(match[4]), int(match[6]))
    else:
        yield b"%06x%010x" % (int(match[8]), int(match[10]))


def _is_limit(number: int) -> bool:
    return number in (_LIMITS[0], _LIMITS[2]) or number >= _LIMITS[1]
