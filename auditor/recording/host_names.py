"""The names and addresses of this host and of others, and which of them are words that stand for something else, too.

A host may be called "db", "sda" or "tank". Where its name is also a word of a pool, a dataset or a tool it stays there, and
goes where only a host can be meant, and out of names that were made with it (the volume group db-vg).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from auditor.recording.identities import COMMON, NUMBERED, PARTITION_TYPE
from auditor.recording.recording import Recording
from auditor.recording.stand_ins import StandIns, any_of

HOST_FILE = "/proc/sys/kernel/hostname"
SHORTEST = 2
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
_KEYS = re.compile(rb"(?<=https://)(?:[^@/\s]*@)?([^/:@\s]+)")  # keylocation
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
        if argv[:2] == ("zfs", "get"):
            names.update(_KEYS.findall(text))
    return {each for name in names for each in _parts(name) if len(each) >= SHORTEST}


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
    parts = _encoded("\n".join((*found, *(each for each in asked if "*" in each or not _PLACES.match(each)))).lower())
    return {*re.split(rb"[^0-9a-z]+", parts), *(each.strip(b"-") for each in re.split(rb"[\s/,=:@*_.]+", parts))}


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


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
