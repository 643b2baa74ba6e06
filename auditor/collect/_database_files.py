"""The configuration files of database servers, as text: what each says of a setting, includes followed.

All raise ValueError where a file that counts was not read: a setting that may be overridden elsewhere is not known.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from auditor.facts import Evidence, Known, Subject
from auditor.host.request import Files

Settings = dict[str, tuple[str, str]]  # name -> (value, the path of the file that says so)
Found = Iterator[tuple[str, Known]]  # names of facts with their values
ELSEWHERE = "connection"  # in place of a process or folder: a server that was not seen on this host
COMPARED = (
    *("fsync", "synchronous_commit", "torn_page_guard"),
    *("flush_log_at_commit", "flush_method", "doublewrite", "sync_binlog"),
)
DEPTH = 10
SKIPPED = "(skipped)"  # the value of what MySQL was told to do without (skip-log-bin)


def root_of(database: Subject) -> str:
    """Below which the files of a process are found, whatever container it is in."""
    process = database.name.partition(" ")[2]
    return f"/proc/{process if process.isdigit() else 'self'}/root"


def in_words(facts: Iterable[tuple[str, Known]]) -> Known:
    """What decides about durability among these facts, as ``NAME = VALUE``, to be set beside what another source says."""
    found = sorted((name, value) for name, value in facts if name in COMPARED)
    spelt = {True: "on", False: "off", "": "default"}
    text = tuple(
        f"{name} = {spelt.get(v, v) if isinstance(v := value.value, bool | str) else v}" for name, value in found
    )
    return Known(text, tuple(dict.fromkeys(each for _, value in found for each in value.evidence)))


def plain(path: str) -> bool:
    """Whether a path that a command line or a file names can be asked for as it is: absolute, no pattern, no way up, and
    nothing in it that means something else in a list of links or of mounts."""
    return path.startswith("/") and "*" not in path and ".." not in path.split("/") and printable(path)


def printable(path: str) -> bool:
    """Whether there is no control character in it (a NUL byte, a new line) and no arrow, which parts a link from its target."""
    return not re.search(r"[\x00-\x1f\x7f]| -> ", path)


class Tree:
    """The files of one process, by the paths that it knows them by. root: below which they were read."""

    def __init__(self, reply: Files, root: str) -> None:
        self._reply, self._root = reply, root

    def real(self, path: str) -> str:
        """The path without the symbolic links that were seen on the way."""
        done, rest, hops = "", [part for part in path.split("/") if part], 0
        while rest:
            part = rest.pop(0)
            done = posixpath.normpath(f"{done}/{part}")
            target = self._reply.links.get(self._root + done)
            if target is None:
                continue
            if (hops := hops + 1) > 40:
                raise ValueError(f"{path}: too many symbolic links")
            rest = [each for each in target.split("/") if each] + rest
            done = "" if target.startswith("/") else posixpath.dirname(done)
        return done or "/"

    def text(self, path: str, *, needed: bool = True) -> str | None:
        """What a file says; None where it is not there and need not be."""
        real = self._root + self.real(path)
        if real in self._reply.text:
            return self._reply.text[real]
        why = self._reply.errors.get(real) or self._reply.errors.get(self._root + path) or "was not read"
        if why.startswith("no such file") and not needed:
            return None
        raise ValueError(f"{path}: {why}")

    def folder(self, path: str, end: str) -> list[str]:
        """The files of a folder that was read as a whole (``path/*end``), in their order."""
        start = f"{self._root}{path.rstrip('/')}/"
        found = {
            each for each in (*self._reply.text, *self._reply.links) if each.startswith(start) and each.endswith(end)
        }
        broken = sorted(each for each in self._reply.errors if each.startswith(start) and each.endswith(end))
        for each in broken:
            if not (each == f"{start}*{end}" and self._reply.errors[each].startswith("no such file")):
                raise ValueError(f"{each.removeprefix(self._root)}: {self._reply.errors[each]}")
        if not found and not broken:
            raise ValueError(f"{path}: this folder of included files was not read")
        return sorted(each.removeprefix(self._root) for each in found)


def _included(tree: Tree, path: str, needed: bool, depth: int) -> str | None:
    """The text of a file that others may include, None where it need not be there. Raises ValueError."""
    text = tree.text(path, needed=needed)
    if text is not None and depth > DEPTH:
        raise ValueError(f"{path}: included too deep")
    return text


def postgres(tree: Tree, path: str, *, needed: bool = True, depth: int = 0) -> Settings:
    """postgresql.conf: ``name = value``, the last one counts. (PostgreSQL manual, Setting Parameters)"""
    text = _included(tree, path, needed, depth)
    if text is None:
        return {}
    found: Settings = {}
    for line in text.splitlines():
        entry = re.match(r"\s*([A-Za-z_][\w.]*)\s*(?:=\s*|\s)('(?:[^'\\]|''|\\.)*'|[^\s#']+)\s*(?:#.*)?$", line)
        if entry is None:
            if line.strip() and not line.strip().startswith("#"):
                raise ValueError(f"{path}: a line is no setting")
            continue
        name, value = entry[1].lower(), entry[2]
        if value.startswith("'"):
            value = re.sub(r"''|\\(.)", lambda each: each[1] or "'", value[1:-1])
        other = posixpath.join(posixpath.dirname(path), value)
        match name:
            case "include" | "include_if_exists":
                found |= postgres(tree, other, needed=name == "include", depth=depth + 1)
            case "include_dir":
                for each in tree.folder(posixpath.normpath(other), ".conf"):
                    found |= postgres(tree, each, depth=depth + 1)
            case _:
                found[name] = value, path
    return found


def mysql(tree: Tree, path: str, groups: Iterable[str], *, needed: bool = True, depth: int = 0) -> Settings:
    """my.cnf: the options of these groups, the last one counts. (MySQL manual, Using Option Files)"""
    text = _included(tree, path, needed, depth)
    if text is None:
        return {}
    found: Settings = {}
    groups = tuple(groups)
    here, versioned = False, ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("!"):
            word, _, other = line.partition(" ")
            files = tree.folder(other.strip(), ".cnf") if word == "!includedir" else [other.strip()]
            for each in files:
                found |= mysql(tree, each, groups, depth=depth + 1)
        elif line.startswith("["):
            name = line[1:].partition("]")[0].strip()
            here = name in groups
            base = re.sub(r"-\d+(\.\d+)*$", "", name)
            versioned = name if not here and base in groups else ""
        elif versioned and line.lower().startswith(("innodb", "sync", "log", "datadir", "skip")):
            raise ValueError(f"{path}: [{versioned}] sets {line[:40]}, and which version runs was not looked at")
        elif here and line and line[0] not in "#;":
            name, value = mysql_option(*line.partition("="))
            found[name] = value, path
    return found


def mysql_option(name: str, equals: str, value: str) -> tuple[str, str]:
    """(name, value) as the server takes them: ``loose-innodb-doublewrite = 0 # why``, ``skip-log-bin``, ``log_bin``."""
    name = name.strip().replace("-", "_").lower().removeprefix("loose_")
    value = re.sub(r"\s+#.*", "", value.strip()).strip("'\"") if equals else "ON"
    for prefix, means in (("skip_", SKIPPED), ("disable_", SKIPPED), ("enable_", "ON")):
        if name.startswith((f"{prefix}innodb", f"{prefix}log_bin")):
            return name.removeprefix(prefix), means
    return name, value


def setting(settings: Settings, name: str, default: str) -> tuple[str, Evidence]:
    """(value, how it is known)."""
    if name in settings:
        value, path = settings[name]
        return value, Evidence(f"{name} = {value} ({path})", f"grep {name} {path}" if path.startswith("/") else "")
    return default, Evidence(f"{name} = {default or 'default'} (not set: the default)")


def yaml(text: str, path: str) -> Iterator[tuple[str, str]]:
    """(dotted name, value) of the plain mappings of a YAML file; raises ValueError for what is more than that."""
    stack: list[tuple[int, str]] = []
    for raw in text.splitlines():
        line = re.sub(r"(?:^|\s)#.*", "", raw).rstrip()
        if not line.strip() or line.strip() == "---" or line.lstrip().startswith("- "):
            continue
        entry = re.fullmatch(r"( *)([\w.-]+):(?:\s+(\S.*))?", line)
        if entry is None or (entry[3] or "")[:1] in ("{", "|", ">", "&", "*") or entry[2] in ("__rest", "__exec"):
            raise ValueError(f"{path}: more than plain settings in it")
        indent = len(entry[1])
        stack = [each for each in stack if each[0] < indent]
        stack.append((indent, entry[2]))
        if entry[3]:
            yield ".".join(name for _, name in stack), entry[3].strip().strip("'\"")


def redis(tree: Tree, path: str) -> Settings:
    """redis.conf: ``name value``, the last one counts. (redis.conf of 7.0)"""
    found: Settings = {}
    for line in (tree.text(path) or "").splitlines():
        name, _, value = line.strip().partition(" ")
        if name.lower() == "include":
            raise ValueError(f"{path}: includes {value.strip()}, which was not read")
        if name and not name.startswith("#"):
            found[name.lower()] = value.strip().strip('"'), path
    return found


def boolean(value: str, name: str) -> bool:
    """As PostgreSQL and MySQL spell it; raises ValueError."""
    word: Mapping[str, bool] = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False,
                                "0": False}  # fmt: skip
    if value.lower() not in word:
        raise ValueError(f"{name} = {value[:40]!r} is neither on nor off")
    return word[value.lower()]
