"""The zfs module: parameters now and at the next boot, and which kernel has which."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator

from auditor.data import releases
from auditor.data.platforms import HOSTID, OPTIONS, initrd_paths
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Spec, Subject, known
from auditor.host.request import WITNESS, Command, Files, Output, Read, Run, Skip
from auditor.sources import mounts
from auditor.sources.source import is_integer, source
from auditor.text import argument

LIST = "/modules.dep"
PATTERN = f"/usr/lib/modules/*{LIST}"
IMAGES = f"/ostree/deploy/*/deploy/*{PATTERN}"  # of the deployment that starts next, too (man 1 ostree-admin-deploy)
OWN = "kernel/"  # where modules of the kernel itself are (Linux scripts/Makefile.modinst)
_ZFS = re.compile(r"[\w./+-]{0,200}\bzfs\.ko(?:\.(?:gz|xz|zst))?", re.ASCII)


def keep_module_list(text: str) -> str:
    """``kernel/:`` where there are any below it, and the path of each zfs with a colon."""
    paths = [line.partition(":")[0] for line in text.split("\n") if ":" in line]
    own = [OWN] if any(each.startswith(OWN) for each in paths) else []
    zfs = [each for each in paths if _ZFS.fullmatch(each) and each.rpartition("/")[2].startswith("zfs.ko")]
    return "".join(f"{each}:\n" for each in (*own, *zfs))


TEXTS = ("zfs_deadman_failmode",)
COMPUTED = {  # without a default that a release has: not in tunables.toml
    "zfs_vdev_disk_classic": "1: the old way to submit I/O to disks",
    "spl_hostid": "the host id when set by hand",
    "zfs_wrlog_data_max": "most log data of unwritten TXGs, bytes",
    "zfs_dirty_data_max": "most dirty data, bytes",
    "zfs_dirty_data_max_max": "bound of zfs_dirty_data_max, bytes",
    "zfs_slow_io_events_per_second": "slow I/O events that are reported a second",
    "zfs_resilver_min_time_ms": "time of a TXG for a resilver, ms",
    "zfs_scrub_min_time_ms": "time of a TXG for a scrub, ms",
    "zfs_max_recordsize": "largest recordsize that can be set, bytes",
}


@source(
    "module_params",
    "host",
    ask=Read(("/sys/module/zfs/parameters/*", "/sys/module/spl/parameters/*")),
    facts={
        **{name: Spec.number(text) for name, text in COMPUTED.items()},
        **{
            name: Spec.word(each.means) if name in TEXTS else Spec.number(each.means)
            for name, each in releases.load_tunables().items()
        },
    },
)
def parameters(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/sys/module/{zfs,spl}/parameters``: the tunables as they are now. (man 4 zfs, man 4 spl)

    A number that is none is left out."""
    for path, text in sorted(reply.text.items()):
        name = path.rpartition("/")[2]
        value = text.strip()
        if name in parameters.facts and text.endswith("\n") and (name in TEXTS or is_integer(value)):
            typed = value if name in TEXTS else int(value)
            yield Fact(HOST, name, known(typed, f"{name}={value}", f"cat {argument(path)}"))


FOLDERS = ("/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d")
PATTERNS = tuple(f"{folder}/*.conf" for folder in FOLDERS)
CMDLINE = "/proc/cmdline"
COMMANDS = frozenset({"alias", "blacklist", "install", "options", "remove", "softdep", "weakdep"})
_NOT_UTF8 = re.compile("[\ud800-\udfff]")
_MODPROBE_PATH = re.compile(r"/[\w./+~-]{1,300}", re.ASCII)
_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')


@source(
    "modprobe",
    "host",
    ask=Read((*PATTERNS, CMDLINE)),
    facts={
        "zfs_boot_options": Spec.words(
            "NAME=VALUE of each option that the zfs module is loaded with; where there are any, one evidence each"
        ),
        "modprobe_files": Spec.words("the paths of those files that are in /etc, whatever they are about"),
    },
)
def modprobe(reply: Files, host: Subject) -> Iterator[Fact]:
    """modprobe.d and ``/proc/cmdline``: the options with which the zfs module is loaded at the next boot.

    A file hides those of its name in later folders; files are read in the order of their names, the command line last; the
    last value counts. (man 5 modprobe.d; kmod libkmod/libkmod-config.c kmod_config_new, kmod_config_parse_kcmdline) Only
    where all could be read. An initramfs may hold an older copy."""
    line = reply.text.get(CMDLINE, "")
    if not reply.complete(*PATTERNS, CMDLINE) or CMDLINE not in reply.text:
        return
    own = tuple(path for path in sorted({**reply.text, **reply.links}) if path.startswith(f"{FOLDERS[0]}/"))
    if all(map(_MODPROBE_PATH.fullmatch, own)):
        yield Fact(HOST, "modprobe_files", known(own, ", ".join(own) or "none", f"ls {PATTERNS[0]}"))
    found: dict[str, tuple[str, Evidence]] = {}  # the last of each parameter
    for path in _in_order({**dict.fromkeys(reply.links, ""), **reply.text}):
        for command in _commands(reply.text.get(path, ""), path):
            match command:
                case ["install", "zfs", *_]:
                    raise ValueError(f"{path}: a command loads the module ({' '.join(command)[:80]})")
                case ["options", "zfs", *options]:
                    for name, value in map(_option, options):
                        found[name] = value, Evidence(f"options zfs {name}={value} in {path}", f"cat {argument(path)}")
    if not line.endswith("\n"):
        raise ValueError(f"{CMDLINE} is cut off")
    from_kernel = (each.strip('"') for each in _WORD.findall(line))  # a boot loader may quote the whole option
    for name, value in (_option(each[4:]) for each in from_kernel if each.startswith("zfs.")):
        found[name] = value, Evidence(f"zfs.{name}={value} on the kernel's command line", f"cat {CMDLINE}")
    chosen = tuple(f"{name}={found[name][0]}" for name in sorted(found))
    none = Evidence("no option for the zfs module", "modprobe -c | grep 'options zfs'")
    yield Fact(HOST, "zfs_boot_options", Known(chosen, tuple(found[name][1] for name in sorted(found)) or (none,)))


def _option(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name.strip('"').replace("-", "_"), value.strip('"')


def _in_order(paths: Iterable[str]) -> list[str]:
    """The files that count, in the order in which they are read. A link that leads nowhere hides what has its name."""
    first: dict[str, str] = {}
    for folder in FOLDERS:
        for path in paths:
            where, _, name = path.rpartition("/")
            if where == folder:
                first.setdefault(name, path)
    return [first[name] for name in sorted(first)]


def _commands(text: str, path: str) -> Iterator[list[str]]:
    if text and not text.endswith("\n"):
        raise ValueError(f"{path} ends within a line")
    for line in text.replace("\\\n", " ").splitlines():
        found: list[str] = _WORD.findall(line)
        if found and not found[0].startswith("#"):
            if found[0] not in COMMANDS or _NOT_UTF8.search(line):
                raise ValueError(f"{path}: not a line of modprobe.d: {line[:80]}")
            yield [*found[:1], *(word.replace("-", "_") for word in found[1:2]), *found[2:]]


STATE = (
    "/sys/module/zfs/initstate"  # of a module that was loaded; one that is built in has none (kernel/module/sysfs.c)
)
BOOTED = "/run/ostree-booted"  # made by ostree where an image of it has started
_NAME = re.compile(r"[\w.+~-]{1,100}", re.ASCII)
_MODULE = re.compile(r"(?:/usr)?/lib/modules/[\w./+~-]{1,300}", re.ASCII)


@source(
    "module_lists",
    "host",
    ask=Read((PATTERN, IMAGES, BOOTED, STATE, WITNESS)),
    keeps=dict.fromkeys((PATTERN, IMAGES), keep_module_list),
    facts={
        "kernels_listed": Spec.words("releases of the installed kernels whose modules depmod has listed"),
        "kernels_with_zfs": Spec.words("those of them with a zfs module among these"),
        "kernels_removed_with_zfs": Spec.words(
            "releases of which depmod's list has a zfs module, and none of the kernel itself"
        ),
        "zfs_is_module": Spec.flag("the OpenZFS that runs was loaded as a module, and is not built into the kernel"),
        "zfs_modules": Spec.words("KERNEL PATH of each zfs module that modprobe finds for an installed kernel"),
    },
)
def installed(reply: Files, host: Subject) -> Iterator[Fact]:
    """``modules.dep``: which kernels are installed with their modules, and which of them have a zfs module.

    Whoever brings a module, a package, an image or dkms, runs depmod after it; modprobe finds what is listed there, whichever
    folder it is in: kernel, extra, updates, weak-updates (man 5 modules.dep, man 8 depmod). A folder whose list names no module
    of the kernel itself is what is left of a kernel that was removed. Both, where every list was read. Raises ValueError for a
    name that is no kernel's."""
    reply.witness()
    if STATE in reply.text or reply.absent(STATE):
        seen = reply.text.get(STATE, "").strip() or "it is not there"
        yield Fact(HOST, "zfs_is_module", known(STATE in reply.text, seen[:20], f"cat {STATE}"))
    lists = {path: text.splitlines() for path, text in sorted(reply.text.items()) if path.endswith(LIST)}
    images = any(path.startswith(IMAGES.partition("*")[0]) for path in lists)
    if not reply.complete(PATTERN, IMAGES, BOOTED) or (BOOTED in reply.text and not images):
        return
    found: dict[str, bool] = {}
    modules: list[str] = []
    # any of the images may start; the folder in use comes last, and counts for its own kernels
    for path, lines in lists.items():
        if f"{OWN}:" in lines:
            kernel = path.removesuffix(LIST).rpartition("/")[2]
            found[kernel] = len(lines) > 1 and (found.get(kernel, True) or path.startswith("/usr/"))
            paths = [each.removesuffix(":") for each in lines if each != f"{OWN}:" and path.startswith("/usr/")]
            modules += (f"{kernel} {posixpath.join(posixpath.dirname(path), each)}" for each in paths)
    if wrong := [each for each in found if not _NAME.fullmatch(each)]:
        raise ValueError(f"{wrong[0][:40]!r} is no release of a kernel")
    with_zfs = tuple(each for each in found if found[each])
    yield Fact(HOST, "kernels_listed", known(tuple(found), ", ".join(found) or "none", f"ls {PATTERN}"))
    left = tuple(
        path.removesuffix(LIST).rpartition("/")[2]
        for path, lines in lists.items()
        if path.startswith("/usr/") and lines and f"{OWN}:" not in lines
    )
    text = f"zfs alone is left of {', '.join(left)}" if left else "no kernel of which zfs alone is left"
    yield Fact(HOST, "kernels_removed_with_zfs", known(left, text, f"grep -L '^kernel/' {PATTERN}"))
    text = f"zfs among the modules of {', '.join(with_zfs) or 'none'}"
    yield Fact(HOST, "kernels_with_zfs", known(with_zfs, text, f"grep -l '/zfs[.]ko' {PATTERN}"))
    yield Fact(HOST, "zfs_modules", known(tuple(modules), ", ".join(modules) or "none", f"grep '/zfs[.]ko' {PATTERN}"))


def paths(facts: Facts) -> list[tuple[str, str]] | Skip:
    """(kernel, path) of each zfs module, where all of them are below folders of modules."""
    pairs = [
        (kernel, path) for kernel, _, path in (each.partition(" ") for each in facts.get(HOST, "zfs_modules").words())
    ]
    strange = [path for _, path in pairs if not _MODULE.fullmatch(path) or ".." in path]
    return Skip(f"{strange[0]}: no place for a module") if strange else pairs


_UNDER_MODULES = re.compile(r"(?:/usr)?/lib/modules/[\w./+~-]+", re.ASCII)
KEEP = r"^(?:filename|version|vermagic):"
MOST = 50  # modules that are asked for
_LINE = re.compile(r"(filename|version|vermagic): +([!-~]{1,300})(?: .*)?", re.ASCII)


def _ask_modinfo(host: Subject, facts: Facts) -> Run | Skip:
    if not isinstance(facts.get(HOST, "zfs_modules"), Known):
        return Skip("which zfs modules are installed is not known")
    found = paths(facts)
    if isinstance(found, Skip):
        return found
    modules = tuple(dict.fromkeys(path for _, path in found))
    if not modules:
        return Skip("depmod has listed no zfs module", applies=False)
    if len(modules) > MOST:
        return Skip(f"{len(modules)} zfs modules are installed")
    return Run(("modinfo", *modules), package="kmod", keep=KEEP)


@source(
    "module_versions",
    "host",
    ask=_ask_modinfo,
    runs=(Command(("modinfo",), others=_UNDER_MODULES),),
    facts={"zfs_module_versions": Spec.words("PATH VERSION KERNEL of each zfs module, as it reports them")},
)
def modinfo(reply: Output, host: Subject) -> Iterator[Fact]:
    """``modinfo``: of which release the zfs module of each installed kernel is, and for which kernel it was built.

    The last line, ``vermagic``, begins with the release of that kernel. A module that tracks a stable interface of kernels is
    built once and linked to from the folders of others. (man 8 modinfo; kmod tools/modinfo.c) Raises ValueError where a module
    says one of the three twice or not at all, and where it is cut off."""
    modules: list[dict[str, str]] = []
    if not reply.text.endswith("\n"):
        raise ValueError("cut off")
    for line in reply.text.splitlines():
        found = _LINE.fullmatch(line)
        if not found:
            raise ValueError(f"no line of modinfo: {line[:80]!r}")
        if found[1] == "filename":
            modules.append({})
        if not modules or found[1] in modules[-1]:
            raise ValueError(f"{found[1]} where none should be")
        modules[-1][found[1]] = found[2]
    if not modules or any(len(each) < 3 for each in modules):
        raise ValueError("a module without filename, version and vermagic")
    rows = tuple(f"{each['filename']} {each['version']} {each['vermagic']}" for each in modules)
    text = ", ".join(f"{each['filename']}: {each['version']}" for each in modules)
    yield Fact(HOST, "zfs_module_versions", known(rows, text, "modinfo PATHS | grep -E '^(filename|version|vermagic)'"))


BUILT, HEADERS = "/var/lib/dkms/zfs/kernel-*", "/usr/lib/modules/*/build"


@source(
    "dkms_kernels",
    "host",
    ask=Read((BUILT, HEADERS, WITNESS)),
    facts={
        "dkms_zfs_kernels": Spec.words("KERNEL-ARCHITECTURE of each kernel that dkms has installed the zfs module for"),
        "kernels_with_headers": Spec.words("releases of the installed kernels that modules can be built for"),
    },
)
def dkms(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/var/lib/dkms/zfs``, ``/usr/lib/modules``: for which kernels dkms has installed the zfs module, and for which one could
    be.

    dkms keeps a link ``kernel-KERNEL-ARCHITECTURE`` for each kernel that it has installed a module for (dkms(8); dkms.in
    do_install). A kernel for which modules can be built has a link ``build`` to its headers, as Debian, Ubuntu and Fedora
    package them (Linux scripts/package/builddeb, Makefile modules_install). Only links are looked at. What there is; that there
    is none, where it could have been seen. Raises ValueError for a name that is no kernel's."""
    reply.witness()
    for fact, pattern in (("dkms_zfs_kernels", BUILT), ("kernels_with_headers", HEADERS)):
        before, after = pattern.split("*")
        found = sorted(
            path.removeprefix(before).removesuffix(after)
            for path in reply.links
            if path.startswith(before) and path.endswith(after)
        )
        if wrong := [each for each in found if not _NAME.fullmatch(each)]:
            raise ValueError(f"{wrong[0][:40]!r} is no release of a kernel")
        if found or reply.complete(pattern):
            yield Fact(HOST, fact, known(tuple(found), ", ".join(found) or "none", f"ls -d {pattern}"))


STAT = ("stat", "-L", "-c", "%Y %Z %n")
_STATED = re.compile(r"/boot/init[\w.+~-]+|(?:/usr)?/lib/modules/[\w./+~-]+|/etc/(?:hostid|modprobe\.d(?:/[\w.+~-]+)?)")
MOST_FILES = 200  # files that are asked for
_TIMES = re.compile(r"(\d{1,12}) (\d{1,12}) (/[\w./+~-]{1,300})", re.ASCII)


def _ask_initrds(host: Subject, facts: Facts) -> Run | Skip:
    """Only where the root file system is on ZFS, so that the module is loaded from an initrd."""
    needed = [facts.get(HOST, name) for name in ("mount_table", "zfs_modules", "modprobe_files")]
    if not all(isinstance(each, Known) for each in needed):
        return Skip("which modules and options an initrd has to hold is not known")
    table, _, options = (each.words() for each in needed)
    mounted = mounts.mounts("".join(f"{line}\n" for line in table))
    if not any(each.mount_point == "/" and each.fstype == "zfs" for each in mounted):
        return Skip("the root file system is not on ZFS", applies=False)
    if [each.fstype for each in mounted.at.get("/boot", [])][-1:] == ["autofs"]:
        return Skip("/boot is not mounted, and reading it would mount it")
    pairs = paths(facts)
    if isinstance(pairs, Skip):
        return pairs
    initrds = [name for kernel, _ in pairs for name in initrd_paths(kernel)]
    asked = dict.fromkeys((*initrds, *(path for _, path in pairs), OPTIONS, *options, HOSTID))
    if not pairs or len(asked) > MOST_FILES:
        return Skip(f"{len(pairs)} kernels with a zfs module and {len(options)} files of options were found")
    return Run((*STAT, *asked), accept=frozenset({0, 1}), package="coreutils")


@source(
    "initrd_times",
    "host",
    ask=_ask_initrds,
    runs=(Command(STAT, others=_STATED),),
    facts={
        "initrd_times": Spec.words(
            "CONTENT CHANGED PATH of each initrd that was found and of what it holds copies of: seconds since 1970"
        )
    },
)
def initrds(reply: Output, host: Subject) -> Iterator[Fact]:
    """``stat``: when the initrds of the kernels that start next were written, and what they hold copies of.

    ``%Y`` is when the content was changed last, ``%Z`` when anything of the file was: a package gives its files the times at
    which they were made elsewhere, and only the second tells when they came. (man 1 stat, man 7 inode) What is there; what is
    not has a line on stderr. Raises ValueError where a file could not be looked at, and where one is in neither."""
    if why := next((line for line in reply.stderr.splitlines() if not line.endswith("No such file or directory")), ""):
        raise ValueError(why[:200])
    lines = reply.text.splitlines()
    wrong = [line for line in lines if not _TIMES.fullmatch(line)]
    if wrong or not reply.text.endswith("\n"):
        raise ValueError(f"not times and a path: {wrong[0][:80] if wrong else 'cut off'}")
    asked = len(shlex.split(reply.command)) - len(STAT)
    if len(lines) + len(reply.stderr.splitlines()) != asked:
        raise ValueError(f"{len(lines)} lines of {asked} files: cut off")
    yield Fact(HOST, "initrd_times", known(tuple(lines), f"{len(lines)} files", "stat -L -c '%y %z %n' PATHS"))
