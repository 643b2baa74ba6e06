"""LIO (``/sys/kernel/config/target``) and SCST (``/sys/kernel/scst_tgt``): what this host offers to initiators, and whether it
tells them of the cache that it has.

A LIO fileio backstore that is buffered ("Buffered-WCE") writes into memory. It sets emulate_write_cache=1, so that initiators
flush; where that was set to 0 afterwards they are told that there is no cache, and send none. Without "Buffered" the file is
open with O_DSYNC. Of a block device (iblock) LIO passes on what its queue says, whatever the attribute. (Linux
drivers/target/target_core_file.c fd_configure_device, fd_show_configfs_dev_params; target_core_device.c target_check_wce)

SCST says "no cache" with nv_cache=1, and does not write through then; with write_through=1 alone it says the same, and each
write is FUA or O_DSYNC. (SCST scst/src/dev_handlers/scst_vdisk.c vdisk_caching_pg, vdev_open_fd, blockio_exec_write)

tgt is a process; whether one was started its lock file tells (tgt usr/mgmt.c ipc_init), what it offers its own tool
(``tgt_targets``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, known, words
from auditor.host.request import WITNESS, Files, Read
from auditor.text import argument

PER = "host"
SUBJECT = "host"
FACTS = {
    "block_targets": words("NAME HOW PATH of each backstore of a target on this host: keeps or drops flushes"),
    "tgt_daemons": words("lock file of each daemon of tgt that was started since the host was"),
}
LIO, SCST = "/sys/kernel/config/target/core/", "/sys/kernel/scst_tgt/devices/"
_FILES = (
    *(f"{LIO}*/*/{name}" for name in ("info", "udev_path", "enable", "attrib/emulate_write_cache")),
    *(f"{SCST}*/{name}" for name in ("filename", "nv_cache")),
)
TGT = "/run/tgtd/*.lock"
_FILE, _SIZE, _MODE = "        File: ", "  Size: ", "  Mode: "
_FOLDER = re.compile(rf"({LIO}[^/]+/[^/]+|{SCST}[^/]+)/")
_NAME = re.compile(r"[\w.:-]{1,64}", re.ASCII)


def request(host: Subject, facts: Facts) -> Read:
    return Read((*_FILES, TGT, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where one of these files could not be read."""
    reply.witness()
    if reply.complete(TGT):
        locks = tuple(sorted(each for each in reply.text if each.startswith("/run/tgtd/")))
        yield Fact(HOST, "tgt_daemons", known(locks, f"{len(locks)} daemons of tgt", f"ls {TGT}"))
    for path, error in reply.errors.items():
        if path.startswith((LIO, SCST)) and not error.startswith("no such"):
            raise ValueError(f"{path}: {error}")
    if not all(any(each.startswith(root) for each in (*reply.text, *reply.errors)) for root in (LIO, SCST)):
        return
    folders = {match[1]: None for path in reply.text if (match := _FOLDER.match(path))}
    if unread := [each for each in folders if not {f"{each}/info", f"{each}/filename"} & {*reply.text}]:
        raise ValueError(f"{unread[0]} was read in part")
    found = {**dict(_lio(reply)), **dict(_scst(reply))}
    none = Evidence("no target of LIO or SCST", f"ls {LIO} {SCST}")
    yield Fact(HOST, "block_targets", Known(tuple(found), tuple(found.values()) or (none,)))


def _lio(reply: Files) -> Iterator[tuple[str, Evidence]]:
    for path, info in sorted(reply.text.items()):
        folder = path.removesuffix("/info")
        if not path.startswith(LIO) or folder == path or reply.text.get(f"{folder}/enable", "1\n") == "0\n":
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
            yield f"LIO-{name} {how} {file}", Evidence(text, f"cat {argument(path)}")
        elif (device := reply.text.get(f"{folder}/udev_path", "").strip()).startswith("/"):
            yield (
                f"LIO-{name} keeps {device}",
                Evidence(f"LIO {name}: {device}", f"cat {argument(f'{folder}/udev_path')}"),
            )


def _scst(reply: Files) -> Iterator[tuple[str, Evidence]]:
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
                yield f"SCST-{name} {how} {file}", seen


def _plain(name: str) -> str:
    return name if _NAME.fullmatch(name) else "unnamed"
