"""modprobe.d and ``/proc/cmdline``: the options with which the zfs module is loaded at the next boot.

Folders stand in order of precedence: a file hides those of its name in later ones; all files are read in the order of
their names, the kernel's command line after them; of several values of one parameter the last counts. (man 5 modprobe.d;
kmod libkmod/libkmod-config.c kmod_config_new, kmod_config_parse_kcmdline)

An initramfs may hold an older copy of these files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, known, words
from auditor.host.request import Files, Read, Request
from auditor.text import argument

PER = "host"
SUBJECT = "host"
FACTS = {
    "zfs_boot_options": words(
        "NAME=VALUE of each option that the zfs module is loaded with; where there are any, one evidence each"
    ),
    "modprobe_files": words("the paths of those files that are in /etc, whatever they are about"),
}
FOLDERS = (
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
)
PATTERNS = tuple(f"{folder}/*.conf" for folder in FOLDERS)
CMDLINE = "/proc/cmdline"
COMMANDS = frozenset({"alias", "blacklist", "install", "options", "remove", "softdep", "weakdep"})
_NOT_UTF8 = re.compile("[\ud800-\udfff]")
_PATH = re.compile(r"/[\w./+~-]{1,300}", re.ASCII)
_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')


def request(host: Subject, facts: Facts) -> Request:
    """All of them, and the command line of the kernel that runs now."""
    return Read((*PATTERNS, CMDLINE))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Of the options only when nothing was kept from us: a file that cannot be read may hold any option."""
    line = reply.text.get(CMDLINE, "")
    if not reply.complete(*PATTERNS, CMDLINE) or CMDLINE not in reply.text:
        return
    own = tuple(path for path in sorted({**reply.text, **reply.links}) if path.startswith(f"{FOLDERS[0]}/"))
    if all(map(_PATH.fullmatch, own)):
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
    """The words of each line that is no comment; a backslash at its end goes on in the next line."""
    if text and not text.endswith("\n"):
        raise ValueError(f"{path} ends within a line")
    for line in text.replace("\\\n", " ").splitlines():
        found: list[str] = _WORD.findall(line)
        if found and not found[0].startswith("#"):
            if found[0] not in COMMANDS or _NOT_UTF8.search(line):
                raise ValueError(f"{path}: not a line of modprobe.d: {line[:80]}")
            yield [*found[:1], *(word.replace("-", "_") for word in found[1:2]), *found[2:]]
