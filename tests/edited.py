"""Recorded hosts of the lab as physical ones; ``python -m tests.composed FOLDER`` writes them.

A guest has no drives of its own, so no recording of one can show what a healthy host looks like. These differ from the
recording that they come from in the identity of drives and machine, in what such drives say of their caches, and in what no
guest of the lab can answer; sizes and times stay those of the lab. Each says so of itself. What is asked since,
it answers as tests/answered.py says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from auditor.databases import sqlite
from auditor.databases.engine import WITHHELD
from auditor.facts import HOST, Fact, Facts, Subject, known
from auditor.host.request import WITNESS, Capture, Files, Run, Skip
from auditor.recording.recording import Recording
from auditor.sources import guests, kernel_module, mounts, shares, zpool
from auditor.sources import machine as machine_source
from auditor.sources import units as unit_source
from tests import incidents, question, second_looks
from tests.answered import answered
from tests.question import patterns, run
from tests.shared import HOSTS, name_of

BASE = HOSTS / "2.4-healthy-mirrored-slog"
KERNEL = "6.12.107+deb13-cloud-amd64"  # of the guest
GUEST, SERIAL = "QEMU NVMe Ctrl", "LABNVME"


class Drive(NamedTuple):
    """Model, firmware and vendor as NVMe says them; serial: of the drives, with ? for their number; cache: VWC is not 0."""

    model: str
    firmware: str
    vendor: int
    serial: str
    cache: bool


class Machine(NamedTuple):
    """Maker and model, as its firmware says; virt: what systemd-detect-virt says."""

    vendor: str
    product: str
    bios: str
    virt: str = "none"


HOSTS_OF: Mapping[str, tuple[Drive, Machine]] = {
    "2.4-healthy-physical-no-cache": (
        Drive("INTEL SSDPE2KX010T8", "VDV10184", 0x8086, "PHLJ91230?XQ1P0FGN", cache=False),
        Machine("Dell Inc.", "PowerEdge R640", "Dell Inc."),
    ),
    "2.4-healthy-physical-protected-cache": (
        Drive("Micron_7300_MTFDHBE960TDF", "95420260", 0x1344, "2118E5AA1F?", cache=True),
        Machine("Supermicro", "SYS-1029U-TR4", "American Megatrends Inc."),
    ),
}
VIRTUAL = (
    Drive(GUEST, "10.0.13", 0x1B36, f"{SERIAL}?", cache=True),
    Machine("QEMU", "Standard PC (Q35 + ICH9, 2009)", "SeaBIOS", "kvm"),
)
MOUNTS = "/proc/1/mountinfo", "/proc/self/mountinfo", "/proc/1/ns/mnt", "/proc/self/ns/mnt"
TABLE = (
    "22 28 0:20 / /sys rw,nosuid - sysfs sysfs rw\n"
    "28 1 259:18 / / rw,relatime - ext4 /dev/nvme4n1p2 rw\n"
    "40 28 0:50 / /tank rw,relatime - zfs tank rw,xattr,noacl\n"
    "41 40 0:51 / /tank/db rw,relatime - zfs tank/db rw,xattr,noacl\n"
)


def edited(past: Recording, drive: Drive, machine: Machine, name: str) -> Recording:
    """The recording with these drives, in this machine."""
    past = answered(second_looks.added(past))

    def text(content: str) -> str:
        content = content.replace(f"{GUEST:40}", f"{drive.model:40}").replace(GUEST, drive.model)
        content = content.replace(GUEST.replace(" ", "_"), drive.model.replace(" ", "_"))
        content = content.replace(GUEST.replace(" ", "\\x20"), drive.model.replace(" ", "\\x20"))
        content = content.replace(GUEST.encode().hex(), drive.model.encode().hex())
        for number in range(8):
            own = drive.serial.replace("?", str(number))
            content = content.replace(f"{SERIAL}{number:<{20 - len(SERIAL)}}", f"{own:20}")
            content = content.replace(f"{SERIAL}{number}", own).replace(
                f"{SERIAL}{number}".encode().hex(), own.encode().hex()
            )
        content = content.replace("nqn.2019-08.org.qemu:", "nqn.2014.08.org.nvmexpress:uuid:").replace(
            "10.0.13 ", f"{drive.firmware:8}"
        )
        content = content.replace('"10.0.13"', f'"{drive.firmware}"').replace("nvme.1b36-", f"nvme.{drive.vendor:04x}-")
        content = content.replace('"vid":6966', f'"vid":{drive.vendor}').replace("zlab", "db1")
        content = content.replace('"available_spare": 0', '"available_spare": 100').replace(
            '"avail_spare":0', '"avail_spare":100'
        )
        return content if drive.cache else content.replace('"vwc":7', '"vwc":0')

    def capture(argv: tuple[str, ...], each: Capture) -> Capture:
        said = _said(argv, machine)
        out = each.stdout if said is None else said
        return (each if said is None else Capture(1 if said == b"none\n" else 0))._replace(
            stdout=text(out.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape"), seconds=each.seconds
        )

    commands = {tuple(map(text, argv)): capture(argv, each) for argv, each in past.commands.items()}
    booted = b"[    0.000000] Linux version 6.12.57+deb13-amd64 (debian-kernel@lists.debian.org)\n"
    commands |= {argv: Capture(0, booted, keep=keep) for argv, keep in incidents.KEEP.items()}
    commands |= {run(each).argv: Capture(0) for each in (unit_source.failed, unit_source.failed_upkeep)}
    if not drive.cache:  # such a controller does not know the feature
        refused = Capture(
            1, b"NVMe status: Invalid Field in Command: A reserved coded value or an unsupported value (0x4002)\n"
        )
        commands = {argv: refused if argv[:2] == ("nvme", "get-feature") else each for argv, each in commands.items()}
    none = Capture(1, b"", b"NVMe status: Invalid Log Page: The log page indicated is invalid (0x4109)\n")
    nodes = [argv[2] for argv in commands if argv[:2] == ("nvme", "id-ctrl")]
    commands |= {("nvme", "ocp", "smart-add-log", node, "-o", "json"): none for node in nodes}
    commands = dict(_asked_more(argv, each) for argv, each in commands.items())
    files = {patterns: _files(each, text, drive, machine) for patterns, each in past.files.items()}
    files |= _mounted()
    stacked = tuple(f"/sys/block/*/{file}" for file in ("md/degraded", "bcache/cache_mode", "bcache/state"))
    files[stacked] = Files({}, errors=dict.fromkeys(stacked, "no such file"))
    files |= _around()
    commands |= told_of_modules(files, "2.4.4-1~bpo13+1")
    folder = "/sys/devices/system/edac/mc/mc"
    memory = next(patterns for patterns in files if patterns[0].startswith(folder))
    counts = {f"{folder}{i}/{kind}_count": "0\n" for i in range(2) for kind in ("ue", "ce")}
    modes = {f"{folder}{i}/dimm0/dimm_edac_mode": "S4ECD4ED\n" for i in range(2)}
    files[memory] = Files(counts | modes, errors={each: "no such file" for each in memory if "/rank" in each})
    how = f"{name} is {name_of(BASE)} of the lab with drives {drive.model} in a {machine.vendor} {machine.product}"
    return answered(replace(past, commands=commands, files=files, edited=how))


def _asked_more(argv: tuple[str, ...], each: Capture) -> tuple[tuple[str, ...], Capture]:
    """A pool's properties with those that are asked for since."""
    if argv[:2] != ("zpool", "get") or not argv[-2].startswith("size,"):
        return argv, each
    facts = Facts()
    facts.put_all([Fact(HOST, "zfs_version", known((2, 4, 4), ""))])
    now = zpool.properties.request(Subject("pool", argv[-1]), facts)
    assert isinstance(now, Run)
    return now.argv, each._replace(stdout=each.stdout + f"{argv[-1]}\tcachefile\t-\tdefault\n".encode())


def unused(past: Recording) -> Recording:
    """The same host as a zaudit of today sees it, which asks who uses its datasets: no guests, and no targets."""
    around = _around()
    asked = (
        patterns(guests.running),
        patterns(shares.block_targets),
        patterns(shares.nvme_targets),
        (machine_source.OWN,),
    )
    return replace(past, files={**past.files, **{each: around[each] for each in asked}, **_mounted()})


def _mounted() -> dict[tuple[str, ...], Files]:
    """The table of mounts, of the host itself."""
    tables = dict.fromkeys(MOUNTS[:2], TABLE)
    return {
        (sqlite.LOCKS, *mounts.TABLES): Files({sqlite.LOCKS: ""} | tables),
        MOUNTS: Files(tables, dict.fromkeys(MOUNTS[2:], "mnt:[4026531841]")),
    }


def _around() -> dict[tuple[str, ...], Files]:
    """Debian as it is installed: the pool is in the cache file, all units of ZFS are enabled; no resume, no guests,
    no targets."""
    filesystems = {WITNESS: "nodev\tsysfs\n\text4\n"}
    units = (
        *(
            "multi-user.target.wants/zfs.target",
            "zfs.target.wants/zfs-import.target",
            "zfs.target.wants/zfs-mount.service",
        ),
        "zfs-import.target.wants/zfs-import-cache.service",
    )
    links = {f"/etc/systemd/system/{each}": f"/usr/lib/systemd/system/{each.partition('/')[2]}" for each in units}
    texts = filesystems | dict.fromkeys(links, "") | {unit_source.FIRST: "systemd\n", unit_source.PATH: "tank\n"}
    none = dict.fromkeys((*unit_source.LINKS[1:], unit_source.OWN, unit_source.LISTS), "no such file")
    power = {machine_source.STATE: "freeze mem disk\n", machine_source.RESUME: "0:0\n"}
    targets = patterns(shares.block_targets)
    no_targets = dict.fromkeys(targets[:-1], "no such file")
    configs = patterns(guests.configs)
    built = f"{kernel_module.BUILT.removesuffix('*')}{KERNEL}-x86_64"
    kernels = {
        built: f"2.4.4/{KERNEL}/x86_64",
        kernel_module.HEADERS.replace("*", KERNEL): f"/usr/src/linux-headers-{KERNEL}",
    }
    heading = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    return {
        patterns(unit_source.boot): Files(texts, links, none),
        patterns(unit_source.changes): Files(
            filesystems, errors=dict.fromkeys((unit_source.UNITS, unit_source.PARTS), "no such file")
        ),
        patterns(machine_source.hibernation): Files(filesystems | power),
        (machine_source.TAINT_PATH,): Files({machine_source.TAINT_PATH: "12289\n"}),  # P, O and E: of zfs.ko
        patterns(guests.running): Files({guests.FIRST: f"{WITHHELD}\0"}),
        configs: Files(filesystems, errors=dict.fromkeys(configs[:-1], "no such file")),
        targets: Files(filesystems, errors=no_targets),
        (offered := patterns(shares.nvme_targets)): Files(
            filesystems, errors=dict.fromkeys(offered[:-1], "no such file")
        ),
        patterns(unit_source.zed_rc): Files(
            filesystems | {f"{unit_source.ZED_FOLDER}statechange-notify.sh": "", unit_source.ZED_RC: "ZED_EMAIL_ADDR\n"}
        ),
        (machine_source.PATH,): Files({machine_source.PATH: heading}),
        patterns(mounts.fstab): Files(filesystems | {mounts.PATH: "- / - defaults\n"}),
        patterns(kernel_module.dkms): Files(filesystems, kernels),
        patterns(kernel_module.installed): modules(KERNEL),
        patterns(unit_source.key_mounts): Files(filesystems, errors={unit_source.MOUNT_UNITS: "no such file"}),
        (machine_source.OWN,): Files({}, {machine_source.OWN: f"pid:[{machine_source.FIRST}]"}),
    }


def modules(kernel: str, at: str = "updates/dkms/zfs.ko.xz") -> Files:
    """What depmod has listed for the only kernel there is, and where; without one, that there is no such folder."""
    own = kernel_module.PATTERN.replace("*", kernel)
    listed = {own: f"{kernel_module.OWN}:\n{at}:\n"} if kernel else {}
    gone = [kernel_module.IMAGES, kernel_module.BOOTED, *([] if kernel else [kernel_module.PATTERN])]
    loaded = {WITNESS: "nodev\tsysfs\n", kernel_module.STATE: "live\n"}
    return Files(loaded | listed, errors=dict.fromkeys(gone, "no such file"))


def told_of_modules(files: Mapping[tuple[str, ...], Files], version: str) -> dict[tuple[str, ...], Capture]:
    """What modinfo says of the modules that depmod has listed: all of one release, each built for its kernel."""
    facts = Facts()
    facts.put_all(kernel_module.installed.parse(files[question.patterns(kernel_module.installed, HOST, facts)], HOST))
    asked, found = kernel_module.modinfo.request(HOST, facts), kernel_module.paths(facts)
    if not isinstance(asked, Run) or isinstance(found, Skip):
        return {}
    lines = (
        f"filename:       {path}\nversion:        {version}\nvermagic:       {kernel} SMP preempt mod_unload modversions \n"
        for kernel, path in found
    )
    return {asked.argv: Capture(0, "".join(lines).encode(), keep=asked.keep)}


def _said(argv: tuple[str, ...], machine: Machine) -> bytes | None:
    """What a host with systemd says instead; None: what the guest said."""
    match argv:
        case ("systemd-detect-virt",):
            return f"{machine.virt}\n".encode()
        case ("systemctl", "show", *_):
            return b"LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
        case _:
            return None


def _files(each: Files, text: object, drive: Drive, machine: Machine) -> Files:
    assert callable(text)
    folder = "/sys/class/dmi/id/"
    dmi = {
        f"{folder}sys_vendor": machine.vendor,
        f"{folder}product_name": machine.product,
        f"{folder}bios_vendor": machine.bios,
    }

    def content(path: str, said: str) -> str:
        if path in dmi:
            return f"{dmi[path]}\n"
        if not drive.cache and re.fullmatch(r"/sys/block/nvme\dn1/queue/(?:write_cache|fua)", path):
            return "write through\n" if path.endswith("cache") else "0\n"
        return str(text(said))

    return Files(
        {str(text(path)): content(path, said) for path, said in each.text.items()},
        {str(text(path)): str(text(target)) for path, target in each.links.items()},
        {str(text(path)): str(text(error)) for path, error in each.errors.items()},
    )
