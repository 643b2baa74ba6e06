"""Hosts of platforms that the lab does not boot, composed of a recorded host. No file of them is kept: tests make them again
(tests/shared.py), and ``python -m tests.composed FOLDER`` writes them and those of :mod:`tests.edited`.

Each is the healthy physical host of :mod:`tests.edited` with what the platform is known to differ in: what os-release and
the releases say, which datasets of the system lie on its pools, how they are mounted, and which tools there are. Nothing of
a database differs, and all that OpenZFS answers is of 2.4.4. Each says of itself that it is composed.

A healthy host has the fixes that concern it. So the changelogs of Proxmox VE and Ubuntu are composed, too: they name all fixes
that their releases lack, as these distributions write it. Whether the real ones do, nobody has read. TrueNAS has no such
changelog: its release is the newest of its line.

Sources: os-release and packages of the platforms; releases that people run together: zfs-2.4.3-pve1 on 7.0.14-12-pve, OpenZFS
2.3.9, which follows the 2.3.8 of TrueNAS 25.10.7 (truenas/zfs#426), on 6.12.105, 2.4.1-1ubuntu5 on 7.0.0-28-generic; Proxmox
VE Administration Guide,
"ZFS on Linux"; TrueNAS (truenas/middleware, plugins/boot.py: boot-pool/ROOT/VERSION; truenas/scale-build, fhs.py: the
datasets below it, read-only and noexec; boot-pool/grub); Ubuntu zsys (ubiquity's zsys-setup: rpool/ROOT/ubuntu_ID,
rpool/USERDATA, bpool); NixOS manual, "ZFS".
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from auditor.data import releases
from auditor.facts import HOST, Facts
from auditor.host.live import allowed_part
from auditor.host.request import NOTHING, WITNESS, Capture, Files, Run
from auditor.model.release import BUGS, commits
from auditor.recording import recording
from auditor.recording.recording import Recording
from auditor.sources import kernel_module, units
from auditor.sources import mounts as mount_source
from auditor.sources import zfs as zfs_source
from tests import question
from tests.answered import answered
from tests.bench import synthetic
from tests.edited import BASE, HOSTS_OF, Drive, Machine, edited, modules, told_of_modules

OS_RELEASE, HOSTNAME, RELEASE = "/etc/os-release", "/proc/sys/kernel/hostname", "/proc/sys/kernel/osrelease"
LOCAL = "local"
Set = Mapping[str, tuple[str, str]]  # property -> value, source
AS_IT_IS: Set = MappingProxyType({})
LIKE = "2.4-healthy-physical-protected-cache"  # whose drives and machine all of them have


class Dataset(NamedTuple):
    """One of the system, a copy of the pool's first; at: where it is mounted, or empty. set: what differs."""

    name: str
    at: str = ""
    set: Set = AS_IT_IS


class Platform(NamedTuple):
    """system: os-release. pool: what tank is called. datasets: of the system on that pool. boot: the name of a second pool, of
    the system alone, with these datasets in the place of tank/db and tank/db/wal, and those of boot_system. cron: whether
    Debian's cron job is there; jobs: files that start trims. below: where pools are mounted, in place of /. autotrim: whether
    pools trim by themselves. changelog: how that of the zfs package names
    a fix."""

    system: str
    zfs: str
    kernel: str
    pool: str = "tank"
    datasets: tuple[Dataset, ...] = ()
    boot: str = ""
    boot_datasets: tuple[str, str] = ("", "")
    boot_system: tuple[Dataset, ...] = ()
    jobs: Mapping[str, str] = NOTHING
    below: str = ""
    autotrim: bool = False
    cron: bool = True
    changelog: str = ""


def _legacy(at: str) -> Set:
    return {"mountpoint": (at, LOCAL), "canmount": ("noauto", LOCAL)}


ROOT: Set = {"mountpoint": ("/", LOCAL), "canmount": ("noauto", LOCAL)}  # the initramfs mounts the one that boots
READ_ONLY: Set = {"readonly": ("on", LOCAL)}
NOEXEC: Set = {"exec": ("off", LOCAL)}
PLATFORMS: Mapping[str, Platform] = {
    "proxmox-ve-9": Platform(
        'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nNAME="Debian GNU/Linux"\nVERSION_ID="13"\nID=debian\n',
        "2.4.3-pve1", "7.0.14-12-pve", "rpool",
        (
            Dataset("ROOT", "/rpool/ROOT"), Dataset("ROOT/pve-1", "/", ROOT),
            Dataset("data", "/rpool/data"), Dataset("var-lib-vz", "/var/lib/vz", {"mountpoint": ("/var/lib/vz", LOCAL)}),
        ),
        changelog="cherry-pick '{subject}'",
    ),
    "truenas-25.10": Platform(
        'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n',
        "2.3.9-1", "6.12.105-production+truenas",
        boot="boot-pool", boot_datasets=("boot-pool/ROOT", "boot-pool/grub"), cron=False,
        boot_system=(
            Dataset("ROOT/25.10.7", "/", {**ROOT, **READ_ONLY}),
            *(
                Dataset(f"ROOT/25.10.7/{each}", f"/{each}", {**ROOT, "mountpoint": (f"/{each}", LOCAL), **how})
                for each, how in (("conf", {**READ_ONLY, **NOEXEC}), ("usr", READ_ONLY), ("etc", NOEXEC), ("var", {}))
            ),
        ),
        below="/mnt", autotrim=True,
    ),
    "ubuntu-zsys-26.04": Platform(
        'PRETTY_NAME="Ubuntu 26.04 LTS"\nNAME="Ubuntu"\nVERSION_ID="26.04"\nID=ubuntu\nID_LIKE=debian\n',
        "2.4.1-1ubuntu5", "7.0.0-28-generic", "rpool",
        (
            Dataset("ROOT", "", {"canmount": ("off", LOCAL), "mountpoint": ("none", LOCAL)}),
            Dataset("ROOT/ubuntu_7x1k2p", "/", ROOT),
            *(
                Dataset(f"ROOT/ubuntu_7x1k2p/{each}", f"/{each}", {"mountpoint": (f"/{each}", LOCAL)})
                for each in ("var/log", "var/lib", "srv", "usr/local")
            ),
            Dataset("ROOT/ubuntu_0lder1", "", ROOT),
            Dataset("ROOT/ubuntu_7x1k2p/var", "", {"canmount": ("off", LOCAL), "mountpoint": ("/var", LOCAL)}),
            Dataset("ROOT/ubuntu_7x1k2p/usr", "", {"canmount": ("off", LOCAL), "mountpoint": ("/usr", LOCAL)}),
            Dataset("USERDATA", "", {"canmount": ("off", LOCAL), "mountpoint": ("/", LOCAL)}),
            Dataset("USERDATA/root_9q3f0c", "/root", {"mountpoint": ("/root", LOCAL)}),
        ),
        changelog="SAUCE: d/p/u/{patch}.patch",
    ),
    "rocky-9": Platform(
        'NAME="Rocky Linux"\nVERSION="9.6 (Blue Onyx)"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\n',
        "2.4.4-1", "5.14.0-570.12.1.el9_6.x86_64", cron=False,
        jobs={"/etc/systemd/system/timers.target.wants/zfs-trim-weekly@tank.timer": ""},
    ),
    "nixos-25.11": Platform(
        'NAME=NixOS\nID=nixos\nPRETTY_NAME="NixOS 25.11 (Xantusia)"\nVERSION_ID="25.11"\n',
        "2.4.4-1", "6.12.57", "rpool",
        (
            Dataset("root", "/", _legacy("legacy")), Dataset("nix", "/nix", {**_legacy("legacy"), "atime": ("off", LOCAL)}),
            Dataset("var", "/var", _legacy("legacy")), Dataset("home", "/home", _legacy("legacy")),
        ),
        jobs={units.TIMER: ""}, cron=False,
    ),
}  # fmt: skip


# whose kernels bring the module along: where in their folder it is
OWN_MODULE = {"ubuntu": "kernel/zfs/zfs.ko.zst", "proxmox": "zfs/zfs.ko"}


def composed(base: Recording, name: str, zfs: str = "", like: tuple[Drive, Machine] = HOSTS_OF[LIKE]) -> Recording:
    """The host of one platform; zfs: with another release than its own; like: with such drives in such a machine."""
    platform = PLATFORMS[name]
    platform = platform._replace(zfs=zfs or platform.zfs)
    made = edited(with_boot_pool(base, platform) if platform.boot else base, *like, f"composed-{name}")
    made = with_datasets(made, platform.datasets)
    if platform.boot:
        made = with_datasets(made, platform.boot_system, platform.boot)
    made = renamed(made, platform.pool)
    pools = [platform.pool, *([platform.boot] if platform.boot else [])]
    texts = {OS_RELEASE: platform.system, HOSTNAME: "db1\n", RELEASE: f"{platform.kernel}\n"}
    texts |= {units.PATH: "".join(f"{each}\n" for each in pools)}
    if name.startswith("nixos"):  # which mounts all of it by fstab
        rows = (f"- {each.at} zfs defaults\n" for each in platform.datasets)
        texts[mount_source.PATH] = "".join(rows)
    versions = {f"/sys/module/{each}/version": f"{platform.zfs}\n" for each in ("zfs", "spl")}
    files = {patterns: _files(each, texts | versions, platform) for patterns, each in made.files.items()}
    at = OWN_MODULE.get(name.partition("-")[0], "updates/dkms/zfs.ko.xz")
    files[question.patterns(kernel_module.installed)] = modules("" if name.startswith("nixos") else platform.kernel, at)
    if platform.changelog and not releases.as_tagged(platform.zfs):
        said = dict.fromkeys(zfs_source.DEBIAN, changelog(platform))
        files[*zfs_source.CHANGELOGS, WITNESS] = Files({WITNESS: "nodev\tsysfs\n", **said})
    path = units.TIMER
    kept = {path: str(allowed_part(path, platform.jobs[path]))} if path in platform.jobs else {}
    files[path, WITNESS] = Files(
        {WITNESS: "nodev\tsysfs\n", **kept}, errors={} if kept else {path: "no such file or directory"}
    )
    commands = dict(_commands(made, platform)) | dict(_initrd(files)) | told_of_modules(files, platform.zfs)
    return answered(replace(made, commands=commands, files=files, edited=f"{made.edited}, composed as {name}"))


def changelog(platform: Platform) -> str:
    """Of the zfs package, which names each fix that a release after its own has, and the kernel that it was made to fit."""
    release = releases.of(platform.zfs) or ()
    ranges = {name: releases.ranges(bug["affected"]) for name, bug in BUGS.items()}
    bugs = [name for name, each in ranges.items() if any(releases.within(one, release) for one in each)]
    subjects = [commit.subject for bug in bugs for commit in commits(bug)[0]]
    subjects += [fix.subject for fix in releases.load_fixes() if fix.fixed_in_line(release)]
    changes = [f"Linux {'.'.join(platform.kernel.split('.')[:2])} compat: META"]
    changes += [platform.changelog.format(subject=each, patch=re.sub(r"[^\w.]+", "-", each)[:52]) for each in subjects]
    entry = f"zfs-linux ({platform.zfs}) x; urgency=medium\n\n" + "".join(f"  * {each}\n" for each in changes)
    return zfs_source.keep_changelog(entry)


def _initrd(files: Mapping[tuple[str, ...], Files]) -> Iterator[tuple[tuple[str, ...], Capture]]:
    """Where the root file system is on ZFS: of the initrd of Debian and Ubuntu that it was written last."""
    facts = Facts()
    for module in (mount_source.zfs_mounts, kernel_module.installed, kernel_module.modprobe):
        facts.put_all(module.parse(files[question.patterns(module, HOST, facts)], HOST))
    asked = kernel_module.initrds.request(HOST, facts)
    if isinstance(asked, Run):
        there = [path for path in asked.argv[4:] if not path.startswith("/boot/") or "initrd.img-" in path]
        times = {
            path: "1763700000 1763700000" if path.startswith("/boot/") else "1763600000 1763600000" for path in there
        }
        missing = "".join(
            f"stat: cannot statx '{each}': No such file or directory\n" for each in asked.argv[4:] if each not in there
        )
        yield asked.argv, Capture(1, "".join(f"{times[each]} {each}\n" for each in there).encode(), missing.encode())


def _commands(made: Recording, platform: Platform) -> Iterator[tuple[tuple[str, ...], Capture]]:
    for argv, each in made.commands.items():
        text = each.stdout.decode("utf-8", "surrogateescape")
        match argv:
            case ("zfs", "version"):
                text = f"zfs-{platform.zfs}\nzfs-kmod-{platform.zfs}\n"
            case ("zfs", "get", *_):
                text = re.sub(rf"(?m)^({platform.pool}\S*\tmountpoint\t)(/.*)$", rf"\g<1>{platform.below}\2", text)
                text = re.sub(r"(?m)^(boot-pool(?:/ROOT)?\tmountpoint\t).*$", r"\g<1>none\tlocal", text)
                text = re.sub(r"(?m)^(boot-pool/grub\tmountpoint\t).*$", r"\g<1>legacy\tlocal", text)
                text = re.sub(r"(?m)^(boot-pool(?:/ROOT|/grub)?\tmounted\t).*$", r"\g<1>no\t-", text)
            case ("zpool", "get", *_) if platform.autotrim:
                text = text.replace("\tautotrim\toff\tdefault", "\tautotrim\ton\tlocal")
        yield argv, each._replace(stdout=text.encode("utf-8", "surrogateescape"))


def _files(each: Files, texts: Mapping[str, str], platform: Platform) -> Files:
    """With what the platform has, and without Debian's jobs of cron where it has none."""
    gone = {path for path in each.text if path.startswith("/etc/cron.d/") and not platform.cron}
    text = {path: texts.get(path, content) for path, content in each.text.items() if path not in gone}
    text = {
        path: re.sub(rf"(?m)^(\d+ \d+ \S+ \S+ )(/.*) - zfs (?={platform.pool})", rf"\g<1>{platform.below}\2 - zfs ", content)
        if path.endswith("/mountinfo") else content
        for path, content in text.items()
    }  # fmt: skip
    errors = {**each.errors, **dict.fromkeys(gone, "no such file")}
    if units.TRIM_TIMERS in errors:
        timers = {path: "" for path in platform.jobs if fnmatchcase(path, units.TRIM_TIMERS)}
        text |= timers
        errors = {path: why for path, why in errors.items() if not (timers and path == units.TRIM_TIMERS)}
    return each._replace(text=text, errors=errors)


def with_datasets(past: Recording, datasets: tuple[Dataset, ...], pool: str = "tank") -> Recording:
    """Of a host with this pool: with more datasets, each a copy of the pool's own."""
    names = {f"{pool}/{each.name}": each for each in datasets}
    commands = dict(past.commands)
    for argv, capture in past.commands.items():
        text = capture.stdout.decode()
        if argv[-1] != pool:
            continue
        if argv[:2] == ("zfs", "list") and "bookmark" not in argv:
            whole = sorted({*text.splitlines(), *names})
            commands[argv] = capture._replace(stdout="".join(f"{each}\n" for each in whole).encode())
        elif argv[:2] == ("zfs", "get"):
            own = "".join(line for line in text.splitlines(keepends=True) if line.startswith(f"{pool}\t"))
            more = "".join(_rows(own, pool, name, each) for name, each in names.items())
            commands[argv] = capture._replace(stdout=(text + more).encode())
    mounts = "".join(
        f"{28 if each.at == '/' else 60 + number} {_above(each)} 0:{70 + number} / {each.at} "
        f"{_options(each)},relatime - zfs {name} {_options(each)},xattr,posixacl\n"
        for number, (name, each) in enumerate(names.items())
        if each.at
    )
    files = {patterns: _more(each, names, mounts, pool) for patterns, each in past.files.items()}
    return replace(past, commands=commands, files=files)


def _above(dataset: Dataset) -> int:
    """The number of the mount on which it is mounted: the pool's own, where it inherits its mount point; none of the root."""
    return 1 if dataset.at == "/" else 28 if "mountpoint" in dataset.set else 40


def _options(dataset: Dataset) -> str:
    """Of its mount."""
    access = "ro" if READ_ONLY.items() <= dataset.set.items() else "rw"
    return f"{access},noexec" if NOEXEC.items() <= dataset.set.items() else access


def _rows(own: str, pool: str, name: str, dataset: Dataset) -> str:
    """What ``zfs get`` says of one more dataset."""
    text = re.sub(rf"(?m)^{pool}\t", f"{name}\t", own).replace(
        f"\tmountpoint\t/{pool}\tdefault", f"\tmountpoint\t/{name}\tdefault"
    )
    for what, (value, source) in {**dataset.set, "mounted": ("yes" if dataset.at else "no", "-")}.items():
        text = re.sub(rf"(?m)^({re.escape(name)}\t{what}\t).*$", rf"\g<1>{value}\t{source}", text)
    return text


def _table(table: str, mounts: str) -> str:
    """With these mounts; the one that is the root stands in the place of the other, below all the rest."""
    root = re.search(r"(?m)^28 1 .*\n", mounts)
    if root:
        table, mounts = re.sub(r"(?m)^28 1 .*\n", root[0], table), mounts.replace(root[0], "")
    return table + mounts


def _more(files: Files, names: Mapping[str, Dataset], mounts: str, pool: str) -> Files:
    text = {
        path: _table(each, mounts) if path.endswith("/mountinfo") and "- zfs tank " in each else each
        for path, each in files.text.items()
    }
    first = next((path for path, each in files.text.items() if "objset-" in path and f" {pool}\n" in each), "")
    for number, name in enumerate(names if first else ()):
        at = f"{first.rpartition('/')[0]}/objset-0x{0x1000 + number:x}"
        text[at] = files.text[first].replace(f" {pool}\n", f" {name}\n")
    return files._replace(text=text)


def with_boot_pool(past: Recording, platform: Platform) -> Recording:
    """A second pool like the first, on four more drives, in which the system lies."""
    listed = _drives(past)
    copies = [[(drive, drive.node + len(listed)) for drive in listed]]
    commands: dict[tuple[str, ...], Capture] = {}
    for argv, capture in past.commands.items():
        text = capture.stdout.decode()
        about_all = argv[:2] in (("nvme", "list"), ("udevadm", "info"))
        commands[argv] = (
            capture._replace(stdout=synthetic._output(argv, text, copies).encode()) if about_all else capture
        )
        if argv[:2] == ("zpool", "list"):
            commands[argv] = capture._replace(stdout=(text + _other(text, platform)).encode())
        elif any(re.search(r"nvme\d+n1|^tank$", word) for word in argv):
            for drives in [[leg] for leg in copies[0]] if "tank" not in argv else [copies[0]]:
                words, out = argv, text
                for drive, number in drives:
                    words, out = tuple(drive.renamed(word, number) for word in words), drive.renamed(out, number)
                if words != argv or "tank" in argv:
                    other = tuple(_other(word, platform) if word == "tank" else word for word in words)
                    commands[other] = capture._replace(stdout=_other(out, platform).encode())
    files: dict[tuple[str, ...], Files] = {}
    for patterns, each in past.files.items():
        files[patterns] = each = synthetic._files(each, copies)
        texts, links, errors = (
            {_other(path, platform): _other(content, platform) for path, content in table.items()}
            for table in (each.text, each.links, each.errors)
        )
        theirs = Files(texts, links, errors)
        if any("/zfs/tank/" in one for one in patterns):
            files[tuple(_other(one, platform) for one in patterns)] = theirs
        elif any("/kstat/zfs/tank/" in one for one in each.text):
            files[patterns] = each._replace(text={**each.text, **theirs.text})
    return replace(past, commands=commands, files=files)


def _drives(past: Recording) -> list[synthetic.Drive]:
    """All NVMe drives of the recording."""
    slots = {path: text.strip() for files in past.files.values() for path, text in files.text.items()}
    udev = next(each.stdout.decode() for argv, each in past.commands.items() if argv[0] == "udevadm")
    serials = dict(re.findall(r"N: nvme(\d)n1\n(?:.+\n)*?E: ID_SERIAL_SHORT=LABNVME(\d)\n", udev))
    return [
        synthetic.Drive(int(n), int(s), slots[f"/sys/block/nvme{n}n1/device/address"])
        for n, s in sorted(serials.items())
    ]


def _other(text: str, platform: Platform) -> str:
    """What is said of tank as said of the pool of the system; tank/db and what is below it are its datasets."""
    top, below = platform.boot_datasets
    for old, new in (("tank/db/wal", below), ("tank/db", top), ("tank", platform.boot)):
        text = re.sub(rf"(?<![\w-]){old}(?![\w-])", new, text)
    return text


def renamed(past: Recording, pool: str) -> Recording:
    """The pool tank by another name."""

    def text(each: str) -> str:
        return re.sub(r"(?<![\w-])tank(?![\w-])", pool, each)

    def names(table: Mapping[str, str]) -> dict[str, str]:
        return {text(key): text(value) for key, value in table.items()}

    commands = {
        tuple(map(text, argv)): each._replace(
            stdout=text(each.stdout.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        )
        for argv, each in past.commands.items()
    }
    files = {
        tuple(map(text, patterns)): each._replace(
            text=names(each.text), links=names(each.links), errors=names(each.errors)
        )
        for patterns, each in past.files.items()
    }
    return replace(past, commands=commands, files=files)


NAMES = (*HOSTS_OF, *(f"composed-{each}" for each in PLATFORMS))


def host(name: str) -> Recording:
    """One of NAMES."""
    base = recording.load(BASE)
    return edited(base, *HOSTS_OF[name], name) if name in HOSTS_OF else composed(base, name.removeprefix("composed-"))


def main(folder: Path) -> None:
    for name in NAMES:
        recording.write(host(name), folder / f"{name}.zaudit")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
