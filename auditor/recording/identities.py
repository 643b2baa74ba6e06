"""Where commands and files spell serials, GUIDs and WWNs, and what looks like one wherever it stands."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from auditor.recording.recording import Recording

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

# of a name that may hold its own beginning, what begins again is not a part: the next match finds it
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
    """What to replace anywhere; what only where spelt; and the patterns of the latter. texts: (command or nothing,
    text)."""
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


# Stand-ins for identities, and one pass that replaces thousands of identities.

ATTEMPTS = 50  # until a stand-in is found that is no other's; of names of one character there may be none left
# a WWN of 64 bits, with what stands before it in udev, smartctl and names of links
_NAA = re.compile(rb"(0x|3|naa\.|t10\.)?([0-9A-Fa-f]{16})")


class StandIns:
    """value -> stand-in: always the same for the same value, whatever its case, and another one for another value. key:
    secret of this recording. avoid: what no stand-in may be, because it is something else already."""

    def __init__(self, key: bytes, avoid: Collection[bytes]) -> None:
        self._key = key
        self._avoid = {each.lower() for each in avoid}
        self._attempts: dict[bytes, int] = {}
        self._used: set[bytes] = set()

    def of(self, value: bytes) -> bytes:
        """Of the same length: digits stay digits, letters stay letters of their case, everything else stays."""
        if naa := _NAA.fullmatch(value):  # with and without its prefix it is the same device
            return (naa[1] or b"") + self._of(naa[2])
        return self._of(value)

    def name(self, value: bytes) -> bytes:
        """Of a host: each label for itself, so that a host and its full name still belong together."""
        return b".".join(map(self.of, value.split(b"."))) if re.search(rb"[A-Za-z]", value) else self.of(value)

    def _of(self, value: bytes) -> bytes:
        seed = value.lower()
        if seed not in self._attempts:
            tried = ((attempt, _made(seed, self._key, attempt)) for attempt in range(ATTEMPTS))
            free = (i for i, made in tried if made != seed and made not in self._used and made not in self._avoid)
            self._attempts[seed] = next(free, 0)
            self._used.add(_made(seed, self._key, self._attempts[seed]))
        return _made(value, self._key, self._attempts[seed])


def _made(value: bytes, key: bytes, attempt: int) -> bytes:
    """A decimal number keeps its first digit, so that a 64-bit GUID stays one, and so does a WWN, where it says the kind. A
    letter that may be a hexadecimal digit becomes another, so that a number stays one."""
    import hashlib

    stream = hashlib.shake_256(key + value.lower() + bytes([attempt])).digest(len(value))
    keep = 1 if (value.isdigit() and len(value) > 3) or (len(value) in (16, 32) and value[:1] in b"56") else 0
    made = bytearray(value)
    for i, (byte, random) in enumerate(zip(value, stream, strict=True)):
        char = chr(byte)
        if i < keep:
            continue
        if char in string.digits:
            # of 20 digits, 18446744073709551615 is the largest that fits
            made[i] = ord(string.digits[random % (8 if i == 1 and len(value) == 20 and value.isdigit() else 10)])
        elif char in string.ascii_lowercase:
            made[i] = ord("abcdef"[random % 6] if char in "abcdef" else string.ascii_lowercase[random % 26])
        elif char in string.ascii_uppercase:
            made[i] = ord("ABCDEF"[random % 6] if char in "ABCDEF" else string.ascii_uppercase[random % 26])
    return bytes(made)


def replacer(words: Mapping[bytes, bytes], parts: Mapping[bytes, bytes]) -> Callable[[bytes], bytes]:
    """Replaces, the longest first. words: where no letter or digit touches them. parts: anywhere, numbers whole."""
    numbers = {each for each in parts if each.isdigit()}
    kinds = (
        (rb"%s", parts.keys() - numbers),
        (rb"(?<!\d)%s(?!\d)", numbers),
        (rb"(?<![0-9A-Za-z])%s(?![0-9A-Za-z])", words.keys()),
    )
    passes = [re.compile(frame % any_of(each)) for frame, each in kinds if each]
    if not passes:
        return lambda data: data
    stand_ins = {**words, **parts}
    # one pattern, because what one pass has set in must not be found by the next
    pattern = re.compile(b"|".join(each.pattern for each in passes))
    return lambda data: pattern.sub(lambda found: stand_ins[found[0]], data)


def any_of(words: Iterable[bytes]) -> bytes:
    """A regular expression for any of the words, the longest first: a tree of their beginnings, fast for many words."""
    root: _Tree = {}
    for word in words:
        here = root
        for byte in word:
            here = here.setdefault(byte, {})
        here[END] = {}
    return _pattern(root)


END = -1
_Tree = dict[int, "_Tree"]


def _pattern(tree: _Tree) -> bytes:
    made = b""
    while len(tree) == 1 and END not in tree:  # no fork: no group, which would nest too deep
        ((byte, tree),) = tree.items()
        made += re.escape(bytes([byte]))
    forks = [re.escape(bytes([byte])) + _pattern(rest) for byte, rest in sorted(tree.items()) if byte != END]
    if forks:
        made += b"(?:%s)%s" % (b"|".join(forks), b"?" if END in tree else b"")
    return made


# The names and addresses of this host and of others. A host may be called "db", "sda" or "tank". Where its name is also a
# word of a pool, a dataset or a tool it stays there. It goes where only a host can be meant, and out of names that were
# made with it (the volume group db-vg).

HOST_FILE = "/proc/sys/kernel/hostname"
SHORTEST_NAME = 2
# where nothing but a host can be named: zdb, md, NFS and SMB, and zpool history of each host that took a pool up
HOSTNAME = re.compile(
    rb"(?<=\bhostname: ')[^'\n]+(?=')|(?<=\bMD_NAME=)[^:\s]+(?=:)|(?<=\bmd-name-)[^:\s\"'=/]+(?=:)"
    rb"|(?<= - nfs )[^\s:/]+(?=:)|(?<= - nfs4 )[^\s:/]+(?=:)|(?<= - (?:cifs|smb3) //)[^\s/]+"
    rb"|(?<=; uts )(?!(?:\(none\)|localhost) )[^\s]+(?= )"
)
_LISTS = {("zfs", "list"), ("zfs", "get"), ("zpool", "list")}
# who serves a mount, and the options that name somebody
_NETWORK = re.compile(r" - (?:nfs4?|cifs|smb3|ceph|lustre|beegfs|9p|afs|fuse\.\S+|glusterfs) (\S+) (\S+)")
_SERVER = re.compile(r"(?:^//|(?<=@)|^|,)(\[[0-9a-fA-F:.]+\]|[^\s/:,@\[\]=]+)(?=[:/@])")
_AT = re.compile(r"(?:^|,)(?:\w*addr|ip|host|server|mon_addr|user|username|domain|workgroup)=([^,\s]+)")
# in command lines and settings of databases
_SETTINGS = re.compile(r"/proc/\d+/(?:cmdline|environ|root/.+)|/proc/self/root/.+")
# PostgreSQL: in a file or on a command line, and in the answer of the server
_STANDBYS = re.compile(
    rb"synchronous_standby_names(?:[ \t]*=?[ \t]*'?([^'\n\0]{0,4096})|\",\s{0,99}\"((?:[^\"\\\n]|\\.){0,4096}))"
)
_STANDBY = re.compile(rb"[^\s,()*'\"\\]+")
_HOST_KEYS = re.compile(rb"(?<=https://)(?:[^@/\s]*@)?([^/:@\s]+)")  # keylocation
_HERE = re.compile(r"127(?:\.\d+){3}|0\.0\.0\.0|::1?|\[::1?\]|\*|/.*")
# the kernel's names of devices and links, and words that are in every output
_WORD = re.compile(
    rb"sd[a-z]{1,3}|hd[a-z]|[sx]?vd[a-z]|nvme\w*|dm|md\d*|loop\d*|zd\d*|sr\d*|ram\d*|zram\d*|(?:ata|port|target|usb|pci|cpu)\d*"
    rb"|[a-z]|\d+|ext[234]|xfs|nfs4?|tmpfs|proc|sys\w*|dev|etc|run|srv|var|lib|usr|opt|mnt|home|zfs|spl|zil|zed|zpool|zdb"
    rb"|fs|io|id|ip|on|off|no|yes|ok|to|in|at|of|or|is|it|as|by|an|up|the|and|not|may|write|was|log|logs|raidz\w*|draid\w*|arc|txg"
    rb"|scsi|sas|fc|iscsi|path|uuid|wwn|eui|nqn|iqn|lun|sn|fw|vg|lv|pv|lvm2?|raid|swap|vfat|luks\d?|crypto?|mpath|part\d*|type|true|false"
    rb"|postgres\w*|mysqld?|mariadbd?|mongod?|etcd|redis|valkey|pg|wal|xlog|tblspc|auto|conf|cnf|base|global|main|member|cwd|exe|comm|environ|maps|cmdline|mountinfo|stat|self|ro|rw|soft|hard|overlay|lower\w*|upper\w*|ereport|sysevent|config|delay|checksum|deadman|com|org|net"
)
_NAME_KEYS = rb"(?!DM_|MD_|ID_FS_LABEL|ID_PART_ENTRY_NAME|PARTNAME|ID_NET)[A-Z][A-Z0-9_]*"
_MADE_IN = (  # names that people make with the name of the host
    re.compile(rb"^E: (?:DM_NAME|DM_VG_NAME|DM_LV_NAME|MD_DEVNAME|ID_FS_LABEL(?:_ENC)?)=(?P<id>[^\n]+)", re.M),
    re.compile(rb"/dev/mapper/(?P<id>[^\s/\"',]+)"),
    re.compile(rb"\bdm-name-(?P<id>[^\s/\"'=]+)"),
)
_DMSETUP = re.compile(rb"(?:^|;)(?P<id>[^,;\s]+),")
_NAMING = re.compile(  # files that hold names which people gave
    r"/proc/(?:\d+|self)/(?!stat$).*|/etc/(?:exports|samba|machine-id|cron|modprobe).*|/var/.*"
    r"|/sys/block/[^/]+/(?:dm|loop)/.*|/sys/.*/(?:serial|wwid|subsysnqn|address)|" + re.escape(HOST_FILE)
)
_PLACES = re.compile(r"/(?:proc/(?:\d+|self)/|dev/|srv|var/(?!lib/nfs/)|home|mnt)")  # paths in which people name things
_SYSTEM = re.compile(r"/proc/(?:\d+|self)/root/(?:etc|usr|opt|var/lib)/")
# a word by itself, or a part of a key of JSON (not the host in /srv/db1 or db1-vg); anywhere; in udev's records
_ORDINARY = (
    rb"(?<![^\s\"'(\[,;:=])%s(?![^\s\"')\],;:=])|(?<=_)%s(?=[a-z0-9_]{0,40}+\"\s{0,9}+:)|(?<=\")%s(?=_[a-z0-9_]{0,40}+\"\s{0,9}+:)",
    rb"(?<![0-9a-z])%s(?![0-9a-z])",
    rb"^E: %s=%%s(?=\n)|(?<=/)%%s(?=[/\n])" % _NAME_KEYS,
)
_GIVEN = re.compile(HOSTNAME.pattern + rb"|\bdataset_name\b.*")
_MOUNT = re.compile(r"(?m)^(?:\S+ ){5}(\S+) .*?- (\S+) \S+ (\S+)$")
_SETTING = re.compile(r"(?m)^[ \t!]*([A-Za-z][\w.-]*)[ \t]*(?:[=:]|$| )|(?:^|\0)--?([A-Za-z][\w-]*)")
_KEY = re.compile(rb"(?m)^(?:E: |[ \t]*)([A-Za-z][\w.:@-]*)(?:=|: |:$)|\"([a-z][a-z0-9]*(?:_[a-z0-9]+)+)\"")
_RECORDS = re.compile(rb"^(?:P|N|E: DEVPATH|E: DEVNAME|E: %s)[:=].*" % _NAME_KEYS, re.M)
_NAMED_IN = {*NUMBERED, *_LISTS, ("zpool", "get")}  # whose output names devices and datasets, as people called them
_TOOLS = {"dmsetup"}  # whose output is not made of words of their own


def hosts(recording: Recording, texts: Iterable[tuple[tuple[str, ...], bytes]]) -> set[bytes]:
    """Every name and address of a host; of a full name its first label and its domain, too."""
    found: set[str] = set()
    for files in recording.files.values():
        for path, content in files.text.items():
            if path == HOST_FILE:
                found.add(content.strip())
            elif path.endswith("/mountinfo"):
                for source, options in _NETWORK.findall(content):
                    found.update((*_SERVER.findall(source), *_AT.findall(options)))
    names = {each.strip("[]").encode("utf-8", "surrogateescape") for each in found if not _HERE.fullmatch(each)}
    for argv, text in texts:
        names.update(HOSTNAME.findall(text))
        listed = (each for found in _STANDBYS.findall(text) for value in found for each in _STANDBY.findall(value))
        names.update(each for each in listed if not each.isdigit() and each.lower() not in (b"first", b"any"))
        if argv[:2] == ("zfs", "get"):
            names.update(_HOST_KEYS.findall(text))
    return {each for name in names for each in _parts(name) if len(each) >= SHORTEST_NAME}


def _parts(name: bytes) -> Iterator[bytes]:
    yield name
    first, dot, domain = name.partition(b".")
    if dot and not re.fullmatch(rb"[\d.]+", name):
        yield first
        if b"." in domain:
            yield domain


def ordinary(
    names: Iterable[bytes], taken: set[bytes], recording: Recording, texts: Iterable[tuple[tuple[str, ...], bytes]]
) -> set[bytes]:
    """Those that are words of pools, datasets, devices or tools in this recording. taken: parts of names of datasets."""
    names = set(names)
    found = names & taken | {each for each in names if each.lower() in COMMON or _WORD.fullmatch(each.lower())}
    short = {each for each in names if len(each) < 4}
    found |= short & {word for each in taken for word in re.split(rb"[^0-9A-Za-z]+", each)}
    rest = {each.lower() for each in names - found}
    if not rest:
        return found
    seen = _asked(recording)
    word = any_of(rest)
    tools, files, records = (re.compile(rb"(?im)" + each.replace(rb"%s", word)) for each in _ORDINARY)
    for argv, text in texts:
        if argv[0] in ("udevadm", "zdb", "sql"):
            keys = (part for pair in _KEY.findall(text) for part in pair)
            seen.update(word for key in set(keys) for word in re.split(rb"[^0-9a-z]+", key.lower()))
        if argv[0] == "udevadm":
            seen.update(part for each in set(PARTITION_TYPE.findall(text)) for part in each.lower().split(b"-"))
            text = b"\n".join(_RECORDS.findall(text)) + b"\n"
            seen.update(each.lower().rpartition(b"=")[2] for each in records.findall(text))
        elif argv[0] == "file" and _NAMING.fullmatch(argv[1]):
            continue
        elif argv[0] not in _TOOLS and not (argv[0] == "stderr" and argv[:2] in NUMBERED):
            named = argv[0] in ("zdb", "paths", "sql") or argv[:2] in _NAMED_IN
            seen.update(each.lower() for each in (tools if named else files).findall(_GIVEN.sub(b"", text)))
    return found | {each for each in names if each.lower() in seen}


def _asked(recording: Recording) -> set[bytes]:
    """The words of all commands, of all paths of the kernel, and of the settings of databases and mounts."""
    asked = [word for argv in recording.commands for word in (argv[:2] if argv[0] == "sql" else argv)]
    found: list[str] = []
    for patterns, files in recording.files.items():
        paths = (*patterns, *files.text, *(part for pair in files.links.items() for part in pair))
        asked += paths
        found += (word for path in paths if _SYSTEM.match(path) for word in re.findall(r"[A-Za-z]+", path))
        for path, content in files.text.items():
            if path.endswith("/mountinfo"):
                found += (word for each in _MOUNT.findall(content) for word in re.split(r"=[^,]*|,", ",".join(each)))
            elif _SETTINGS.fullmatch(path):
                found += (word for pair in _SETTING.findall(content) for word in pair)
    text = "\n".join((*found, *(each for each in asked if "*" in each or not _PLACES.match(each)))).lower()
    parts = text.encode("utf-8", "surrogateescape")
    return {*re.split(rb"[^0-9a-z]+", parts), *(each.strip(b"-") for each in re.split(rb"[\s/,=:@*_.]+", parts))}


def datasets(recording: Recording) -> set[bytes]:
    """The parts of all names of pools and datasets: a host is often called like one of them."""
    lists = (each.stdout for argv, each in recording.commands.items() if argv[:2] in _LISTS)
    names = {line.partition(b"\t")[0] for text in lists for line in text.split(b"\n")}
    return {part for name in names for part in name.split(b"/")}


def words(names: set[bytes], stand_ins: StandIns) -> dict[bytes, bytes]:
    """Each way to write a name -> the same way to write its stand-in. LVM doubles the dash in names of device-mapper."""
    return {
        way.replace(b"-", dash): stand_ins.name(way).replace(b"-", dash)
        for name in names
        for way in (name, name.lower(), name.upper(), name.capitalize())
        for dash in (b"-", b"--")
    }


def made_with(
    names: set[bytes], taken: set[bytes], texts: Iterable[tuple[tuple[str, ...], bytes]], stand_ins: StandIns
) -> dict[bytes, bytes]:
    """Names of volumes and labels that hold one of these names as a word -> the same with its stand-in."""
    if not names:
        return {}
    ways = words(names, stand_ins)
    word = re.compile(rb"(?<![0-9A-Za-z])%s(?![0-9A-Za-z])" % any_of(ways))
    found = {
        each["id"]
        for argv, text in texts
        for pattern in ((_DMSETUP,) if argv[:1] == ("dmsetup",) else _MADE_IN)
        for each in pattern.finditer(text)
    }
    return {
        each: word.sub(lambda name: ways[name[0]], each)
        for each in found - taken
        if word.search(each) and each not in ways and not _WORD.fullmatch(each)
    }


_BUILDER = re.compile(rb"(Linux version \S+) .*")  # who built the kernel, and on which host
# names of devices in which a short serial may stand
_ID = re.compile(rb"\b(?:ata|nvme|scsi|usb|mmc)-[^\s\"'/=,]+|\bID_SERIAL=[^\n]+")
# people call volumes of pods, containers and backstores of targets as what they are for; as parts of a path
_USER = re.compile(
    rb"(/pods/[0-9a-f-]{36}/(?:volumes|volumeDevices)/[^/\s]+/|/pods/[0-9a-f-]{36}/volume-subpaths/"
    rb"|/kubernetes\.io/csi/volumeDevices/(?:publish|staging)/|/(?:lxd|incus)/storage-pools/[^/\s]+/(?:containers|virtual-machines|custom)(?:-snapshots)?/"
    rb"|/kubernetes\.io/csi/pv/|/kubernetes\.io/local-volume/mounts/|/docker/volumes/|/containers/storage/volumes/"
    rb"|/sys/kernel/config/target/core/[^/\s]+/|/sys/kernel/scst_tgt/devices/|/sys/kernel/config/nvmet/subsystems/)([^/\s*]+)"
)
LONG = 8  # from here on an identity is known again inside of a word


def replacement(
    recording: Recording, texts: Sequence[tuple[tuple[str, ...], bytes]], key: bytes
) -> Callable[[bytes], bytes]:
    """What replaces all identities of this recording in a text. texts: all in it, once; (command or nothing, text)."""
    found, short, patterns = identities(texts)
    named, taken = hosts(recording, texts), datasets(recording)
    common = ordinary(named, taken, recording, texts)
    found -= taken | named
    stand_ins = StandIns(key, taken | named | found | short)
    names = words(named - common, stand_ins)
    names |= made_with(named & common, taken, texts, stand_ins)
    parts: dict[bytes, bytes] = {}
    for each in found:
        (parts if len(each) >= LONG else names).update(zip(ways(each), ways(stand_ins.of(each)), strict=True))
    in_words = replacer(names, parts)
    long_enough = {each for each in short if len(each) > 1}
    in_ids = re.compile(rb"(?<![0-9A-Za-z])%s(?![0-9A-Za-z])" % any_of(long_enough)) if long_enough else None

    def local(match: re.Match[bytes]) -> bytes:
        value = match["id"]
        if value.strip() not in short:
            return match[0]
        start, end = (each - match.start() for each in match.span("id"))
        return match[0][:start] + stand_ins.of(value) + match[0][end:]

    def replace_all(data: bytes) -> bytes:
        data = _USER.sub(lambda found: found[1] + stand_ins.of(found[2]), data)
        data = _BUILDER.sub(rb"\1 (redacted)", data)
        if b'"oui"' in data:
            data = with_parts(data, stand_ins.of)
        for pattern in patterns:
            data = pattern.sub(local, data)
        if in_ids:
            data = _ID.sub(lambda each: in_ids.sub(lambda part: stand_ins.of(part[0]), each[0]), data)
        # once more where only a host is meant: there its name is replaced although it is a common word, and the result of
        # the other pass is not touched
        parts = HOSTNAME.split(data)
        spelt = HOSTNAME.findall(data)
        made = [in_words(part) for part in parts]
        return made[0] + b"".join(stand_ins.name(name) + rest for name, rest in zip(spelt, made[1:], strict=True))

    return replace_all
