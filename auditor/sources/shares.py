"""Shares: what NFS and Samba servers do with the flushes of their clients."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from auditor.facts import HOST, Evidence, Fact, Facts, Known, Spec, Subject, known
from auditor.host.request import WITNESS, Files, Output, Read, Run, Skip, command
from auditor.sources.source import source
from auditor.text import argument, has_surrogates


class TargetUnit(NamedTuple):
    """A backstore, namespace or logical unit. name: with its kind before a hyphen; how: keeps or drops flushes, or unsure."""

    name: str
    how: str
    path: str


class NfsExport(NamedTuple):
    """path: escaped as in /etc/exports; client: with its options in brackets."""

    path: str
    client: str


class SmbShare(NamedTuple):
    name: str
    path: str


TABLES = ("/etc/exports", "/etc/exports.d/*.exports", "/var/lib/nfs/etab")


_TOKEN = re.compile(r'"[^"]*"|[^\s"]+')


@source(
    "nfs_exports", "host", ask=Read((*TABLES, WITNESS)), facts={"nfs_exports": Spec.rows(NfsExport, "every export")}
)
def nfs(reply: Files, host: Subject) -> Iterator[Fact]:
    """What the NFS server of the kernel exports: /etc/exports, /etc/exports.d and /var/lib/nfs/etab. (man 5 exports, man 8
    exportfs)

    etab is the table in force, with every option spelt out; the other files are what it is made of at the next start. OpenZFS
    writes the shares of its sharenfs property to /etc/exports.d/zfs.exports. That none of these files is there means that
    nothing is exported only where files could be read at all: /proc/filesystems is the witness. All exports where each of the
    tables could be read."""
    reply.witness()
    if not reply.complete(*TABLES):
        return
    found: dict[NfsExport, None] = {}
    for path, text in sorted(reply.text.items()):
        if path != WITNESS:
            found.update(dict.fromkeys(exports(text)))
    exported = tuple(found)
    text = f"{len(exported)} exports" if exported else "no NFS export"
    yield Fact(HOST, "nfs_exports", known(exported, text, "exportfs -v; cat /etc/exports /etc/exports.d/*.exports"))


def exports(text: str) -> Iterator[NfsExport]:
    if (text and not text.endswith("\n")) or has_surrogates(text):
        raise ValueError("a table of exports is cut off, or no text")
    for line in re.sub(r"\\\n", " ", text).split("\n"):
        tokens = _TOKEN.findall(line.partition("#")[0])
        if not tokens:
            continue
        if not tokens[0].strip('"').startswith("/"):
            raise ValueError(f"not a path: {tokens[0][:40]}")
        path, defaults = re.sub(r"\s", lambda found: f"\\{ord(found[0]):03o}", tokens[0].strip('"')), ""
        clients = 0
        for token in tokens[1:]:
            if token.startswith("-"):
                defaults = token[1:]
                continue
            client, _, options = token.partition("(")
            given = ",".join(each for each in (defaults, options.rstrip(")")) if each)
            clients += 1
            yield NfsExport(path, f"{client or '*'}({given})")
        if not clients:
            yield NfsExport(path, f"*({defaults})")


PATH = "/etc/samba/smb.conf"
NO, YES = ("no", "false", "0", "off"), ("yes", "true", "1", "on")
ELSEWHERE = ("include", "configbackend", "registryshares", "copy", "configfile")  # what these say is not in this file


@source(
    "samba_conf",
    "host",
    ask=Read((PATH, WITNESS)),
    facts={
        "smb_shares_without_sync": Spec.rows(SmbShare, "every share with strict sync = no"),
        "smb_global_without_sync": Spec.flag("strict sync = no holds for all shares that do not say otherwise"),
    },
)
def samba(reply: Files, host: Subject) -> Iterator[Fact]:
    """/etc/samba/smb.conf: shares that ignore the flushes of their clients. (man 5 smb.conf: strict sync)

    "yes" is the default since Samba 4.7.0; shares, and the usershares of OpenZFS, inherit [global]. Case and spaces of
    names do not matter. A missing file means no shares only where files could be read at all. Raises ValueError where the
    file is not all."""
    reply.witness()
    if PATH not in reply.text:
        if reply.absent(PATH):
            yield Fact(HOST, "smb_shares_without_sync", known((), f"no {PATH}", f"ls {PATH}"))
            yield Fact(HOST, "smb_global_without_sync", known(False, f"no {PATH}", f"ls {PATH}"))
        return
    sections = _sections(reply.text[PATH])
    others = sorted({name for section in sections.values() for name in section if name in ELSEWHERE})
    if others:
        raise ValueError(f"{PATH} leads elsewhere ({', '.join(others)}); ask testparm -sv")
    general = not _yes(sections.get("global", {}).get("strictsync", "yes"))
    command = f"grep -i 'strict sync' {PATH}"
    shares = tuple(
        SmbShare(name, section["path"])
        for name, section in sections.items()
        if name != "global" and "path" in section and not _yes(section.get("strictsync", "no" if general else "yes"))
    )
    yield Fact(
        HOST,
        "smb_shares_without_sync",
        known(shares, ", ".join(map("=".join, shares)) or "no share with strict sync = no", command),
    )
    text = "[global] strict sync = no" if general else "strict sync is yes by default"
    yield Fact(HOST, "smb_global_without_sync", known(general, text, command))


def _yes(value: str) -> bool:
    if value.lower() not in NO + YES:
        raise ValueError(f"{PATH}: strict sync = {value[:40]!r} is neither yes nor no")
    return value.lower() in YES


def _sections(text: str) -> dict[str, dict[str, str]]:
    if (text and not text.endswith("\n")) or has_surrogates(text):
        raise ValueError(f"{PATH} is cut off, or no text")
    found: dict[str, dict[str, str]] = {}
    here = found.setdefault("global", {})
    for raw in re.sub(r"\\\n", "", text).split("\n"):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            here = found.setdefault(line[1 : line.find("]")].strip().lower(), {})
        elif "=" in line:
            name, _, value = line.partition("=")
            here[re.sub(r"\s", "", name).lower()] = value.strip()
    return found


# What this host offers to initiators by iSCSI, Fibre Channel and NVMe over Fabrics.

LIO_CORE, SCST = "/sys/kernel/config/target/core/", "/sys/kernel/scst_tgt/devices/"
_FILES = (
    *(f"{LIO_CORE}*/*/{name}" for name in ("info", "udev_path", "enable", "attrib/emulate_write_cache")),
    *(f"{SCST}*/{name}" for name in ("filename", "nv_cache")),
)
TGT = "/run/tgtd/*.lock"
_FILE, _SIZE, _MODE = "        File: ", "  Size: ", "  Mode: "
_FOLDER = re.compile(rf"({LIO_CORE}[^/]+/[^/]+|{SCST}[^/]+)/")
_NAME = re.compile(r"[\w.:-]{1,64}", re.ASCII)


@source(
    "block_targets",
    "host",
    ask=Read((*_FILES, TGT, WITNESS)),
    facts={
        "block_targets": Spec.rows(TargetUnit, "each backstore of a target on this host"),
        "tgt_daemons": Spec.words("lock file of each daemon of tgt that was started since the host was"),
    },
)
def block_targets(reply: Files, host: Subject) -> Iterator[Fact]:
    """LIO (``/sys/kernel/config/target``) and SCST (``/sys/kernel/scst_tgt``): what this host offers to initiators, and
    whether it tells them of its cache.

    A buffered LIO fileio backstore ("Buffered-WCE") writes into memory, and with emulate_write_cache=0 tells initiators of
    no cache, so that they send no flush. Otherwise the file is open with O_DSYNC. Of a block device (iblock) LIO passes on
    what its queue says. (Linux drivers/target/target_core_file.c fd_configure_device, fd_show_configfs_dev_params;
    target_core_device.c target_check_wce)

    SCST says "no cache" with nv_cache=1, and does not write through; with write_through=1 alone each write is FUA or
    O_DSYNC. (SCST scst/src/dev_handlers/scst_vdisk.c vdisk_caching_pg, vdev_open_fd, blockio_exec_write)

    The lock file of tgt shows that it was started (tgt usr/mgmt.c ipc_init); ``tgt_targets`` asks it. Raises ValueError
    where one of these files could not be read."""
    reply.witness()
    if reply.complete(TGT):
        locks = tuple(sorted(each for each in reply.text if each.startswith("/run/tgtd/")))
        yield Fact(HOST, "tgt_daemons", known(locks, f"{len(locks)} daemons of tgt", f"ls {TGT}"))
    reply.check_below(LIO_CORE, SCST)
    if not all(any(each.startswith(root) for each in (*reply.text, *reply.errors)) for root in (LIO_CORE, SCST)):
        return
    folders = {match[1]: None for path in reply.text if (match := _FOLDER.match(path))}
    if unread := [each for each in folders if not {f"{each}/info", f"{each}/filename"} & {*reply.text}]:
        raise ValueError(f"{unread[0]} was read in part")
    found = {**dict(_lio(reply)), **dict(_scst(reply))}
    none = Evidence("no target of LIO or SCST", f"ls {LIO_CORE} {SCST}")
    yield Fact(HOST, "block_targets", Known(tuple(found), tuple(found.values()) or (none,)))


def _lio(reply: Files) -> Iterator[tuple[TargetUnit, Evidence]]:
    for path, info in sorted(reply.text.items()):
        folder = path.removesuffix("/info")
        if not path.startswith(LIO_CORE) or folder == path or reply.text.get(f"{folder}/enable", "1\n") == "0\n":
            continue
        name = _plain(folder.rpartition("/")[2])
        head, _, rest = info.partition(_FILE)
        file, sized, rest = rest.rpartition(_SIZE)
        if "TCM FILEIO ID: " in head and sized:
            mode = rest.partition(_MODE)[2].split(" ", 1)[0]
            wce = reply.text.get(f"{folder}/attrib/emulate_write_cache", "").strip()
            if wce not in ("0", "1"):
                raise ValueError(f"{folder}/attrib/emulate_write_cache is neither 0 nor 1")
            if mode not in ("Buffered-WCE", "O_DSYNC") or not file.startswith("/"):
                raise ValueError(f"{path}: its mode, or its file, is not understood")
            how = "drops" if mode == "Buffered-WCE" and wce == "0" else "keeps"
            text = f"LIO {name}: {file}, {mode}, emulate_write_cache={wce}"
            yield TargetUnit(f"LIO-{name}", how, file), Evidence(text, f"cat {argument(path)}")
        elif (device := reply.text.get(f"{folder}/udev_path", "").strip()).startswith("/"):
            yield (
                TargetUnit(f"LIO-{name}", "keeps", device),
                Evidence(f"LIO {name}: {device}", f"cat {argument(f'{folder}/udev_path')}"),
            )


def _scst(reply: Files) -> Iterator[tuple[TargetUnit, Evidence]]:
    for path, text in sorted(reply.text.items()):
        folder = path.removesuffix("/filename")
        if path.startswith(SCST) and folder != path:
            name, file = _plain(folder.rpartition("/")[2]), text.partition("\n")[0]
            cache = reply.text.get(f"{folder}/nv_cache", "").partition("\n")[0]
            if cache not in ("0", "1"):
                raise ValueError(f"{folder}/nv_cache is neither 0 nor 1")
            if file.startswith("/"):
                how = "drops" if cache == "1" else "keeps"
                seen = Evidence(f"SCST {name}: {file}, nv_cache={cache}", f"cat {argument(f'{folder}/nv_cache')}")
                yield TargetUnit(f"SCST-{name}", how, file), seen


def _plain(name: str) -> str:
    return name if _NAME.fullmatch(name) else "unnamed"


ROOT = "/sys/kernel/config/nvmet/subsystems/"
DEVICE_PATHS, ENABLED = (f"{ROOT}*/namespaces/*/{name}" for name in ("device_path", "enable"))
_DEVICE_PATH = re.compile(rf"({ROOT}([^/]+)/namespaces/(\d+))/device_path")
_NQN = re.compile(r"[\w.:-]{1,223}", re.ASCII)  # of an NQN (NVM Express Base Specification, 4.7 NVMe Qualified Names)


@source(
    "nvme_targets",
    "host",
    ask=Read((DEVICE_PATHS, ENABLED, WITNESS)),
    facts={"nvme_targets": Spec.rows(TargetUnit, "each namespace that is enabled")},
)
def nvme_targets(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/sys/kernel/config/nvmet``: namespaces that this host offers by NVMe over Fabrics. (Linux
    drivers/nvme/target/configfs.c)

    Initiators are always told of a volatile cache, and a flush of theirs becomes one of the block device or an fsync of the
    file, whatever buffered_io says: what lies on them is as stable as the dataset. (admin-cmd.c nvmet_execute_identify_ctrl
    vwc, io-cmd-bdev.c nvmet_bdev_execute_flush, io-cmd-file.c nvmet_file_flush) Raises ValueError where one of these files
    could not be read."""
    reply.witness()
    reply.check_below(ROOT)
    if not all(reply.complete(each) for each in (DEVICE_PATHS, ENABLED)):
        return
    found: dict[TargetUnit, Evidence] = {}
    for path, text in sorted(reply.text.items()):
        if (match := _DEVICE_PATH.fullmatch(path)) and reply.text.get(f"{match[1]}/enable", "1\n") == "1\n":
            name = f"NVMe-{match[2] if _NQN.fullmatch(match[2]) else 'unnamed'}/{match[3]}"
            if (file := text.removesuffix("\n")).startswith("/"):
                seen = Evidence(
                    f"namespace {match[3]} of {match[2]}: {file}", f"grep . {ROOT}*/namespaces/*/device_path"
                )
                found[TargetUnit(name, "keeps", file)] = seen
    none = Evidence("no namespace is offered by NVMe over Fabrics", f"ls {ROOT}")
    yield Fact(HOST, "nvme_targets", Known(tuple(found), tuple(found.values()) or (none,)))


COMMAND = "tgtadm --lld iscsi --mode target --op show"
# no account, initiator or serial number; where a target begins and ends, so that what is cut off does not look whole
KEEP = r"^Target \d+: |^ +LUN: \d+$|^ +Readonly: |^ +Backing store (type|path): |^ +ACL information:$"
PASSED_ON = frozenset({"null", "sg", "sheepdog", "rbd", "glfs"})
HOW = {"rdwr": "keeps", "aio": "drops"}
_LINE = re.compile(
    r"(?P<T>Target) \d+: .*| +(?P<L>LUN): \d+| +Readonly: (?P<R>Yes|No)| +Backing store type: (?P<S>\S+)"
    r"| +Backing store path: (?P<P>.*)| +(?P<E>ACL) information:"
)
_WHOLE = re.compile("(?:T(?:LRSP)+E)*")


def _ask_tgt(host: Subject, facts: Facts) -> Run | Skip:
    """Of the daemon that left its lock file; the tool speaks to that one, as root."""
    match facts.get(HOST, "tgt_daemons"):
        case Known(()):
            return Skip("tgt does not run here", applies=False)
        case Known((_,)):
            return Run(tuple(COMMAND.split()), package="tgt", keep=KEEP)
        case Known():
            return Skip("more than one daemon of tgt runs here")
    return Skip("whether tgt runs here is not known")


@source(
    "tgt_targets",
    "host",
    ask=_ask_tgt,
    runs=(command(COMMAND),),
    facts={"tgt_targets": Spec.rows(TargetUnit, "each logical unit of tgt")},
)
def tgt(reply: Output, host: Subject) -> Iterator[Fact]:
    """``tgtadm --op show``: the logical units of tgt, the target in user space, and whether it passes flushes on.

    Its default store "rdwr" answers SYNCHRONIZE CACHE with fdatasync, and syncs each write where write-cache is off. "aio"
    answers it and does nothing: stable data waits in the memory of OpenZFS. The others have no path here, or pass commands
    on. (tgt usr/bs_rdwr.c bs_rdwr_request; usr/bs_aio.c bs_aio_cmd_submit, bs_aio_open) Raises ValueError for no whole
    list."""
    lines = [_LINE.fullmatch(line) for line in reply.text.splitlines()]
    said = [(str(line.lastgroup), line[str(line.lastgroup)]) for line in lines if line]
    if len(said) < len(lines) or not _WHOLE.fullmatch("".join(kind for kind, _ in said)):
        raise ValueError("its logical units are not understood")
    values = ([value for kind, value in said if kind == each] for each in "RSP")
    found = {}
    for readonly, store, path in zip(*values, strict=True):
        if store not in PASSED_ON and path != "None":
            how = "keeps" if readonly == "Yes" else HOW.get(store, "unsure")
            found[TargetUnit(f"tgt-{store}", how, path)] = Evidence(f"tgt: {path}, backing store {store}", COMMAND)
    none = Evidence("tgt has no logical unit on a file or a block device", COMMAND)
    yield Fact(HOST, "tgt_targets", Known(tuple(found), tuple(found.values()) or (none,)))
