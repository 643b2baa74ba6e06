"""Virtual machines of this host and their disks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from auditor.databases.engine import WITHHELD, place
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Spec, Subject, Unknown, known
from auditor.host.children.reader import BLOCK, FILE, GENERIC, NEITHER, UNMOUNTED
from auditor.host.request import UNANSWERED, UNASKED, WITNESS, Files, Read, Skip
from auditor.sources.source import Keep, keep_nothing, source


class Guest(NamedTuple):
    """A virtual machine. process: its number; name: as it calls itself."""

    process: str
    name: str


class GuestStarter(NamedTuple):
    """who: proxmox or libvirt."""

    process: str
    who: str


class GuestDisk(NamedTuple):
    """how: keeps or drops flushes; unsure, with an empty path, where not all disks of a guest are known."""

    process: str
    how: str
    path: str = ""


class GuestFile(NamedTuple):
    """What a virtual machine has open. how: r (to read only) or w. where: /dev/NODE of a block device of this host, else
    the number of the file system, with its device behind a comma where the host knows it. path: its name, as that process
    sees it."""

    process: str
    how: str
    where: str
    path: str

    @property
    def what(self) -> str:
        """The same for all names of a device; of a file with its name, as others lie there, too."""
        return self.where if self.where.startswith("/dev/") else f"{self.where} {self.path}"


class ClosedGuest(NamedTuple):
    """A virtual machine of which not all that it has open was seen."""

    process: str
    reason: str


class GuestSetting(NamedTuple):
    """A disk that drops flushes from its guest's next start on. who: proxmox or libvirt; place: path, dataset or lvm:VG."""

    who: str
    guest: str
    place: str


# NixOS starts programs through wrappers
# distributions put something before and behind the name, and NixOS starts programs through wrappers. Those of other makers, and
# servers of disks, have their settings elsewhere
PROGRAM = re.compile(
    r"(?:.*/)?\.?(?:kvm|qemu-kvm|qemu-dm|(?:[a-z0-9]+-)?qemu-system-[a-z0-9_]+|(?P<serves>qemu-(?:nbd|storage-daemon)"
    r"|firecracker|cloud-hypervisor|crosvm|nbdkit|nbd-server|spdk_tgt))(?:-[\w.]{1,20}){0,3}",
    re.DOTALL | re.ASCII,
)
NBD, SAME = "qemu-nbd", "qemu-storage-daemon"
GUEST, KEEPS, DROPS, UNSURE = "guest ", "keeps ", "drops ", "unsure"
BY, PROXMOX, LIBVIRT = "by ", "proxmox", "libvirt"
CHARACTERS, DEPTH, DISKS = 1 << 17, 16, 256
_NAME = re.compile(r"[\w.+:@-]{1,64}", re.ASCII)
_KEPT = re.compile(r"(?:keeps|drops) (.+)|unsure|by (?:proxmox|libvirt)|guest (\S+)")
_ON = ("on", "yes", "true", "y")
# how QEMU spells that what follows is a path of this host. (block/file-posix.c, protocol_name)
_PROTOCOL = re.compile(r"^(?:file|host_device|host_cdrom):")
_JSON = "json:"


def keep_command_line(text: str) -> str | None:
    """A line ``guest NAME``, one ``by WHO`` where it shows who started it, then one for each disk; None where it is no
    virtual machine. What was kept is kept again."""
    if text.startswith(GUEST):
        return text if all(map(_is_kept_form, text.splitlines())) else f"{GUEST}{WITHHELD}\n{UNSURE}\n"
    words = text[:CHARACTERS].rstrip("\0").split("\0")
    if not (program := PROGRAM.fullmatch(words[0])):
        return None
    given = list(zip(words[1:], [*words[2:], ""], strict=False))
    disks = [UNSURE] if len(text) > CHARACTERS else []
    if (serves := program["serves"]) and serves != SAME:
        disks += _served(words[1:]) if serves == NBD else [UNSURE]
        given = []
    for option, value in given:
        try:
            disks += _disks(option.lstrip("-") if option.startswith("-") else "", value)
        except (ValueError, RecursionError):
            disks.append(UNSURE)
    found = [*dict.fromkeys(disks)]
    if len(found) > DISKS:  # nobody has so many
        found[DISKS:] = [UNSURE]
    name = serves or _name(given)
    return "".join(f"{each}\n" for each in (GUEST + name, *_starter(given), *found))


def _is_kept_form(line: str) -> bool:
    found = _KEPT.fullmatch(line)
    if not found:
        return False
    return place(found[1]) if found[1] else not found[2] or found[2] == WITHHELD or bool(_NAME.fullmatch(found[2]))


def _name(given: Sequence[tuple[str, str]]) -> str:
    for option, value in given:
        if option in ("-name", "--name"):
            keys = _pairs(value)
            name = keys.get("guest") or value.partition(",")[0]
            return name if _NAME.fullmatch(name) else WITHHELD
    return WITHHELD


def _served(words: Sequence[str]) -> Iterator[str]:
    """Of qemu-nbd: its image comes last, as everybody writes it; what it has open tells where it does not."""
    shortened = any(word.startswith("--ca") and word.partition("=")[0] != "--cache" for word in words)
    if "--image-opts" in words or shortened or not words or words[-1].startswith("-"):
        yield UNSURE
        return
    said = [after or "" for word, after in zip(words, [*words[1:], None], strict=True) if word == "--cache"]
    said += [word.partition("=")[2] for word in words if word.startswith("--cache=")]
    yield from _disk(words[-1], drops="unsafe" in said)


def _starter(given: Sequence[tuple[str, str]]) -> Iterator[str]:
    if any(option == "-id" and value.isdecimal() for option, value in given):
        yield BY + PROXMOX
    elif any(option == "-name" and value.startswith("guest=") for option, value in given):
        yield BY + LIBVIRT


def _disks(option: str, value: str) -> Iterator[str]:
    """Raises ValueError for what is not understood."""
    match option:
        case "drive" | "blockdev":
            tree = _tree(json.loads(value) if value.startswith("{") else _pairs(value))
            if isinstance(tree.get("file"), str) and option == "drive":
                tree["filename"] = tree.pop("file")
            yield from _nodes(tree, drops=False, depth=0)
        case "hda" | "hdb" | "hdc" | "hdd" | "cdrom" | "fda" | "fdb" | "sd" | "pflash" | "mtdblock":
            yield from _disk(value, drops=False)
        case "readconfig":
            yield UNSURE
        case "set" if value.startswith("drive."):
            yield UNSURE


def _pairs(value: str) -> dict[str, str]:
    """``key=value`` between commas; two commas stand for one, and a key alone is on."""
    parts = (each.replace("\0", ",").partition("=") for each in value.replace(",,", "\0").split(","))
    return {key: text if equals else "on" for key, equals, text in parts}


def _tree(pairs: Any, depth: int = 0) -> dict[str, Any]:
    """``file.cache.no-flush=on`` as a tree of nodes; JSON may spell its keys so, too."""
    if not isinstance(pairs, Mapping) or depth > DEPTH:
        raise ValueError("no node")
    tree: dict[str, Any] = {}
    for key, value in pairs.items():
        *above, last = key.split(".")
        node = tree
        for each in above[:DEPTH]:
            below = node.setdefault(each, {})
            node = below if isinstance(below, dict) else node.setdefault(f"{each}.", {})
        if isinstance(value, Mapping):
            value = {**(there if isinstance(there := node.get(last), dict) else {}), **_tree(value, depth + 1)}
        if isinstance(there := node.get(last), dict) and not isinstance(
            value, Mapping
        ):  # cache=WORD next to cache.no-flush
            node[f"{last}."] = there
        node[last] = value
    return tree


def _nodes(node: Mapping[str, Any], *, drops: bool, depth: int) -> Iterator[str]:
    """The files and devices of a node and those below it."""
    if depth > DEPTH:
        raise ValueError("nested too deeply")
    cache = node.get("cache")
    if isinstance(cache, str):
        drops, cache = cache == "unsafe", node.get("cache.")
    if isinstance(cache, Mapping) and "no-flush" in cache:  # before the word (blockdev.c drive_new)
        drops = cache["no-flush"] in (True, *_ON)
    if isinstance(path := node.get("filename"), str):
        yield from _disk(path, drops=drops and not _reads_only(node), depth=depth)
    for name, below in node.items():
        if isinstance(below, Mapping) and name not in ("cache", "cache."):
            yield from _nodes(below, drops=drops, depth=depth + 1)


def _reads_only(node: Mapping[str, Any]) -> bool:
    return node.get("media") == "cdrom" or any(node.get(each) in (True, *_ON) for each in ("read-only", "readonly"))


def _disk(path: str, *, drops: bool, depth: int = 0) -> Iterator[str]:
    """What is no path of this host (a server, a pool of another storage) is none of its disks."""
    if path.startswith(_JSON):
        yield from _nodes(_tree(json.loads(path.removeprefix(_JSON))), drops=drops, depth=depth + 1)
        return
    path = _PROTOCOL.sub("", path)
    if place(path):
        yield (DROPS if drops else KEEPS) + path
    elif path.startswith(("/", ".")) or ":" not in path:
        yield UNSURE


PROXMOX_CONFIGS, STORAGES, LIBVIRT_CONFIGS = (
    "/etc/pve/qemu-server/*.conf",
    "/etc/pve/storage.cfg",
    "/etc/libvirt/qemu/*.xml",
)
GUEST_FILE = re.compile(r"/etc/(?:pve/qemu-server/[^/]+\.conf|libvirt/qemu/[^/]+\.xml)")
# of storages that lie on this host, and what says where. (Proxmox VE, man 1 pvesm)
KINDS = {"zfspool": "pool", "dir": "path", "lvm": "vgname", "lvmthin": "vgname"}
_CONFIG_LINES = re.compile(r"drops .+|unsure|(?:zfspool|dir|lvm|lvmthin) [\w.-]+ .+")
_DISK = re.compile(r"((?:ide|sata|scsi|virtio)\d{1,2}):\s*(.*)")
_STORAGE = re.compile(r"([a-z]+):\s+([\w.-]{1,100})")
LONGEST, NAME = 1 << 17, 1000  # of a file, and of what it calls a disk or a place


# no options behind it, as of rbd:POOL/IMAGE:password=WORD
_NAMED = re.compile(r"/[^?=]*|[A-Za-z][\w.-]*:[\w./-]+")


def _keep(find: Callable[[list[str]], Iterable[str]]) -> Keep:
    """Lines ``drops DISK`` and ``unsure``, or ``KIND NAME PLACE`` of a storage. What was kept is kept again."""

    def keep(text: str) -> str:
        lines = (
            text.removesuffix("\n").split("\n") if text else []
        )  # no other line ends here: Proxmox reads lines of Perl
        if all(map(_CONFIG_LINES.fullmatch, lines)):
            return text
        return "".join(f"{each}\n" for each in dict.fromkeys(find(lines)))

    return keep


def _proxmox(lines: list[str]) -> Iterator[str]:
    """What is set, and what is pending, which the next start takes; snapshots have sections of their own."""
    disks: dict[str, str] = {}
    section = ""
    for line in lines:
        if line.startswith("["):
            section = line.strip()
        elif section in ("", "[PENDING]") and (found := _DISK.match(line)):
            disks[found[1]] = found[2]
    for options in disks.values():
        volume, *given = options.strip().split(",")
        if "cache=unsafe" in given and "media=cdrom" not in given:
            yield _config_disk(volume.removeprefix("file="))


def _libvirt(lines: list[str]) -> Iterator[str]:
    from xml.etree import ElementTree

    text = "\n".join(lines)
    # entities of a document type could grow without bound
    if len(text) > LONGEST or "<!DOCTYPE" in text or "<!ENTITY" in text:
        yield UNSURE
        return
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError):
        yield UNSURE
        return
    for disk in root.findall("./devices/disk"):
        driver, source = disk.find("driver"), disk.find("source")
        if driver is None or driver.get("cache") != "unsafe" or disk.find("readonly") is not None:
            continue
        if disk.get("device", "disk") in ("disk", "lun"):
            place = source is not None and (source.get("dev") or source.get("file"))
            yield _config_disk(place or "")


def _plain(name: str) -> bool:
    return bool(name) and name.isprintable() and len(name) <= NAME


def _config_disk(volume: str) -> str:
    """A path of this host, or a volume of a storage."""
    return f"{DROPS}{volume}" if _plain(volume) and _NAMED.fullmatch(volume) else UNSURE


def _storages(lines: list[str]) -> Iterator[str]:
    kind = name = ""
    for line in lines:
        if head := _STORAGE.fullmatch(line.rstrip()):
            kind, name = head[1], head[2]
        key, _, value = line.strip().partition(" ")
        if line[:1].isspace() and KINDS.get(kind) == key and _plain(value.strip()):
            yield f"{kind} {name} {value.strip()}"


LINES = "/proc/*/cmdline"
FIRST = "/proc/1/cmdline"  # readable by everybody, unless processes of others are hidden (hidepid)
_PATH = re.compile(r"/proc/(\d+)/cmdline")
NAMED = 20  # by name in the evidence
NOT_READ = "(unread)"  # in place of a name
UNREAD = (*UNANSWERED, "more than ")
ENDED = ("no such file", "no such process")
COMMAND = "pgrep -a 'qemu|kvm'"


@source(
    "guests",
    "host",
    ask=Read((LINES, FIRST)),
    facts={"guests": Spec.rows(Guest, "each process that is a virtual machine")},
)
def running(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/proc/*/cmdline``: the virtual machines that run on this host under QEMU, and their disks. (QEMU invocation; man 5
    proc_pid_cmdline)

    ``keep_command_line`` says what is kept. Anybody may give a process any name and arguments: what it has open
    (``guest_files``) decides. Their number has no bound but the share of a user in what is read (``host/owner.py``): else a
    user with a thousand such processes would hide the guests of others. Raises ValueError where processes are hidden or one
    may not be read; one that lets its reader wait, or has an endless line, may be a virtual machine."""
    if FIRST not in reply.text:
        raise ValueError(f"{FIRST}: {reply.errors.get(FIRST, 'was not read')}")
    guests = command_lines(reply).guests
    text = ", ".join(each.name for each in guests[:NAMED]) or "no virtual machine runs"
    text += f" and {len(guests) - NAMED:,} more" if len(guests) > NAMED else ""
    yield Fact(HOST, "guests", known(tuple(guests), text, COMMAND))


class CommandLines(NamedTuple):
    """none: numbers of those that are no virtual machine, or have ended."""

    guests: list[Guest]
    starters: list[GuestStarter]
    disks: list[GuestDisk]
    none: set[str]


def command_lines(reply: Files) -> CommandLines:
    """What the command lines say. Raises ValueError where one of them may not be read."""
    found = CommandLines([], [], [], set())
    for path, error in sorted(reply.errors.items()):
        if not (process := _PATH.fullmatch(path)):
            continue
        if error.startswith(ENDED):
            found.none.add(process[1])
        elif path == FIRST or not error.startswith(UNREAD):
            raise ValueError(f"{path}: {error}")
        else:
            # if it is one: what it has open decides what depends on that
            found.guests.append(Guest(process[1], NOT_READ))
            found.disks.append(GuestDisk(process[1], UNSURE))
    for path, text in sorted(reply.text.items()):
        if not (process := _PATH.fullmatch(path)):
            continue
        number = process[1]
        if not text.startswith(GUEST):
            found.none.add(number)
            continue
        first, *rest = text.splitlines()
        found.guests.append(Guest(number, first.removeprefix(GUEST)))
        found.starters.extend(GuestStarter(number, each.removeprefix(BY)) for each in rest if each.startswith(BY))
        for each in rest:
            how = next((one for one in (KEEPS, DROPS) if each.startswith(one)), "")
            if how or each == UNSURE:
                found.disks.append(GuestDisk(number, how.strip() or UNSURE, each.removeprefix(how) if how else ""))
    return found


NUMBERS = "/sys/dev/block/"
# file systems in memory and those of the kernel itself: what is written there is nobody's data
ELSEWHERE = re.compile(
    "tmpfs|ramfs|devtmpfs|hugetlbfs|proc|sysfs|debugfs|tracefs|securityfs|cgroup2?|bpf|configfs|pstore|efivarfs|selinuxfs|devpts"
    "|nsfs|mqueue|binder|fusectl"
)
# memory without a name, which shows as /memfd:NAME (deleted) and the like, where no mount that anybody made holds it
MEMORY = re.compile(r"/(?:dmabuf:[^/]*|[^/]* \(deleted\))", re.DOTALL)
NAMELESS = "-"
BTRFS = "btrfs"  # whose subvolumes have numbers that no table of mounts names (man 2 stat, st_dev)
_DESCRIPTOR = re.compile(r"/proc/(\d+)/fd/\d+")
_ASKED = re.compile(r"/proc/(\d+)/fd/.+")
_OPEN = re.compile(rf"(?P<how>[rw]) (?:{BLOCK} (?P<node>\d+:\d+)|{FILE} (?P<on>\d+:\d+) (?P<kind>[\w.-]+))", re.ASCII)


def _ask_open_files(host: Subject, facts: Facts) -> Read | Skip:
    """Of those that were found. What each says of its disks is asked once more, in a row with what it has open: the number of
    one that ended meanwhile may be that of another process."""
    found = facts.get(HOST, "guests")
    if isinstance(found, Unknown):
        return Skip("which virtual machines run here is not known")
    if not found.value:
        return Skip("no virtual machine runs here", applies=False)
    each = [f"/proc/{guest.process}/" for guest in found.rows(Guest)]
    return Read((*(f"{process}{name}" for process in each for name in ("fd/*", "cmdline")), f"{NUMBERS}*"))


@source(
    "guest_files",
    "host",
    ask=_ask_open_files,
    keeps={f"{NUMBERS}*": keep_nothing},
    facts={
        "guest_files": Spec.rows(
            GuestFile,
            "each file and block device that a virtual machine has open; where a file lies: MAJOR:MINOR or MAJOR:MINOR,NODE (-"
            " of memory without a name), or btrfs",
        ),
        "closed_guests": Spec.rows(ClosedGuest, "each virtual machine with open files that were not all seen"),
        "generic_guests": Spec.words(
            "NUMBER of each virtual machine that has a generic SCSI device open, and with it a drive"
        ),
        "open_guests": Spec.rows(Guest, "each virtual machine: its name and what it has open"),
        "guest_starters": Spec.rows(GuestStarter, "who started each that shows it"),
        "guest_disks": Spec.rows(GuestDisk, "each of their disks, as their command lines name them"),
    },
)
def open_files(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/proc/PID/fd``: what each virtual machine of this host has open; for root and the user that it runs as. (man 5
    proc_pid_fd)

    Any process may be called QEMU and be hard to read, which says nothing of the others. Nor does a name say what is open:
    in mounts of his own a user can call any file ``/dev/zd0``. The number of the device counts. (man 7 user_namespaces;
    Linux Documentation/ABI/testing/sysfs-dev) Raises ValueError where none could be looked into, or block devices have no
    numbers. An older recording has names alone, and says nothing of what is open."""
    nodes = {
        path.removeprefix(NUMBERS): target.rpartition("/")[2]
        for path, target in reply.links.items()
        if path.startswith(NUMBERS)
    }
    if (why := reply.errors.get(f"{NUMBERS}*", "")) and why != UNASKED:
        raise ValueError(f"{NUMBERS}*: {why}")
    lines = command_lines(reply)
    closed: dict[str, str] = {}
    for path, error in sorted(reply.errors.items()):
        if (match := _ASKED.fullmatch(path)) and not error.startswith(ENDED) and error != UNASKED:
            closed.setdefault(match[1], f"{path}: {error}")
    named = {
        path: target for path, target in reply.links.items() if _DESCRIPTOR.fullmatch(path) and target.startswith("/")
    }
    if closed and not named:
        raise ValueError(next(iter(closed.values())))
    found: dict[GuestFile, None] = {}
    for path, target in sorted(named.items()):
        where = _where(reply.devices.get(path, ""), target, nodes)
        if where and (match := _DESCRIPTOR.fullmatch(path)) and match[1] not in lines.none:
            found[GuestFile(match[1], *where, target)] = None
    generic = {path.split("/")[2]: None for path in named if reply.devices.get(path) == GENERIC}
    generic = {number: None for number in generic if number not in lines.none}
    text = f"{len(generic)} have a generic SCSI device open"
    yield Fact(HOST, "generic_guests", known(tuple(generic), text, "ls -l /proc/PID/fd"))
    if all(path in reply.devices or path in reply.errors for path in named):
        yield Fact(HOST, "guest_files", known(tuple(found), f"{len(found)} files are open", "ls -l /proc/PID/fd"))
    text = f"{len(closed)} of them could not be looked into"
    unseen = tuple(ClosedGuest(number, why) for number, why in closed.items() if number not in lines.none)
    yield Fact(HOST, "closed_guests", known(unseen, text, "ls -l /proc/PID/fd"))
    for name, those in (
        ("open_guests", lines.guests),
        ("guest_starters", lines.starters),
        ("guest_disks", lines.disks),
    ):
        yield Fact(HOST, name, known(tuple(those), f"{len(those)} of virtual machines", COMMAND))


def _where(said: str, target: str, nodes: dict[str, str]) -> tuple[str, str] | None:
    """How it is open, and where it lies. None of what was closed meanwhile, and of what keeps no data. Raises ValueError."""
    if said in ("", NEITHER, GENERIC):
        return None
    if not (found := _OPEN.fullmatch(said)):
        raise ValueError("what is open is not understood")
    if node := found["node"]:
        return found["how"], f"/dev/{nodes.get(node, f'block/{node}')}"
    if ELSEWHERE.fullmatch(kind := found["kind"]):
        return None
    if kind == UNMOUNTED and MEMORY.fullmatch(target):  # unless that number is mounted on this host
        return found["how"], f"{found['on']},{NAMELESS}"
    on = BTRFS if kind == BTRFS else found["on"]
    return found["how"], f"{on},{nodes[on]}" if on in nodes else on


_VOLUME = re.compile(r"([\w.-]+):(.+)")
MOST, LVM = 1000, "lvm:"


@source(
    "guest_configs",
    "host",
    ask=Read((PROXMOX_CONFIGS, STORAGES, LIBVIRT_CONFIGS, WITNESS)),
    keeps={PROXMOX_CONFIGS: _keep(_proxmox), STORAGES: _keep(_storages), LIBVIRT_CONFIGS: _keep(_libvirt)},
    facts={
        "guests_set_to_drop": Spec.rows(GuestSetting, "each disk that drops flushes from its guest's next start on")
    },
)
def configs(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/etc/pve/qemu-server``, ``/etc/libvirt/qemu``: disks that drop flushes from the next start of their guest on.
    (Proxmox VE, man 5 qm.conf, pvesm: ``STORAGE:VOLUME``; libvirt, Domain XML format) /etc/pve shows the guests of this
    node; other hypervisors are not seen. Raises ValueError where a file could not be read or is not understood."""
    reply.witness()
    for path, error in reply.errors.items():
        asked = path in (PROXMOX_CONFIGS, STORAGES, LIBVIRT_CONFIGS) or GUEST_FILE.fullmatch(path)
        if asked and not error.startswith("no such"):
            raise ValueError(f"{path}: {error}")
    if not all(reply.complete(each) for each in (PROXMOX_CONFIGS, LIBVIRT_CONFIGS)):
        return
    rows = (line.split(" ", 2) for line in _lines(reply, STORAGES))
    storages = {name: (kind, place) for kind, name, place in rows}
    found = dict[GuestSetting, Evidence]()
    for path in sorted(each for each in reply.text if GUEST_FILE.fullmatch(each)):
        guest = path.rpartition("/")[2].rpartition(".")[0]
        for line in _lines(reply, path):
            if line == UNSURE or not line.startswith(DROPS):
                raise ValueError(f"{path}: not all of its disks are understood")
            volume = line.removeprefix(DROPS)
            text = f"guest {guest}: {volume} is set to cache=unsafe"
            who = LIBVIRT if path.endswith(".xml") else PROXMOX
            found[GuestSetting(who, guest, _place(volume, storages))] = Evidence(text, f"grep unsafe {path}")
    if len(found) > MOST:
        raise ValueError(f"more than {MOST} disks")
    none = Evidence(
        "no guest that Proxmox VE or libvirt knows is set to drop flushes",
        f"grep unsafe {PROXMOX_CONFIGS} {LIBVIRT_CONFIGS}",
    )
    yield Fact(HOST, "guests_set_to_drop", Known(tuple(found), tuple(found.values()) or (none,)))


def _lines(reply: Files, path: str) -> list[str]:
    return reply.text.get(path, "").splitlines()


def _place(volume: str, storages: Mapping[str, tuple[str, str]]) -> str:
    """A path, a dataset or a volume group. Raises ValueError for a volume of a storage that is not known: where it lies was
    not seen."""
    if volume.startswith("/"):
        return volume
    named = _VOLUME.fullmatch(volume)
    kind, place = storages.get(named[1] if named else "", ("", ""))
    if not named or not kind:
        raise ValueError(f"{volume}: its storage is not known")
    if kind.startswith("lvm"):
        return LVM + place
    parts = named[2].split("/")  # of a linked clone that of its origin comes first
    return f"{place}/{parts[-1]}" if kind == "zfspool" else "/".join((place, "images", *parts[-2:]))
