"""zaudit-record.py: the same questions and the same recordings as zaudit's, on any Python from 3.6 on."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from auditor import __version__
from auditor.host import sql
from auditor.recording import recording
from tests.recorder import asked_again, build, lower, older
from tests.security import namespaces, prove
from tests.security.fakes import USER
from tests.security.namespaces import FakeHost
from tests.shared import HOSTS, ROOT

AGAIN = asked_again.__file__
FEW = ("2.3-db-postgres-fsync-off",)
ALL = tuple(HOSTS.names())
MINORS = range(6, 15)
JUDGING = {each.__name__ for each in sql.JUDGING}
# functions whose text another Python is given
GIVEN = {"read_properties", "answer", "postgres", "postgres_at", "bounded", "mysql", "mysql_at", *JUDGING}


def python_of(minor: int) -> str | None:
    """A Python 3.MINOR of this machine."""
    if sys.version_info[:2] == (3, minor):
        return sys.executable
    home = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    folders = os.environ.get("PATH", "").split(":")
    for each in (*home.glob(f"3.{minor}.*/bin/python3"), *(Path(folder) / f"python3.{minor}" for folder in folders)):
        asked = [str(each), "-I", "-c", "import sys; sys.exit(sys.version_info[1])"]
        if os.access(each, os.X_OK) and subprocess.run(asked, check=False).returncode == minor:
            return str(each)
    return None


EACH = [pytest.param(each, marks=() if each == 6 else pytest.mark.slow) for each in MINORS]


@pytest.fixture(params=EACH, ids=lambda minor: f"3.{minor}")
def python(request: pytest.FixtureRequest) -> str:
    return python_of(request.param) or pytest.skip(f"no Python 3.{request.param} here")


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorder") / "zaudit-record.py"
    build.main(path)
    return path


def said(python: str, what: str, recorder: str | Path, *words: str | Path) -> Any:
    path = {"PYTHONPATH": str(ROOT)} if recorder == "-" else {}
    done = subprocess.run(
        [python, "-s", AGAIN, what, str(recorder), *map(str, words)],
        env={**os.environ, **path}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@cache
def own(names: tuple[str, ...]) -> Any:
    """What zaudit itself makes of these hosts."""
    return said(sys.executable, "hosts", "-", *(HOSTS / name for name in names))


def share(minor: int) -> tuple[str, ...]:
    """All hosts for the oldest Python, for which most is rewritten; an eighth for each of the others, together all."""
    return ALL if minor == MINORS[0] else ALL[minor % (len(MINORS) - 1) :: len(MINORS) - 1]


def of(names: tuple[str, ...], found: Any) -> Any:
    return {key: digest for key, digest in found.items() if key.partition(" ")[0] in names}


@pytest.mark.slow
def test_every_python_records_the_same_bytes(python: str, recorder: Path) -> None:
    assert said(python, "hosts", recorder, *(HOSTS / name for name in FEW)) == own(FEW)
    assert len(own(FEW)) == 2 * len(FEW)


@pytest.mark.slow
def test_of_every_host(request: pytest.FixtureRequest, python: str, recorder: Path) -> None:
    names = share(request.node.callspec.params["python"])
    found = said(python, "hosts", recorder, *(HOSTS / name for name in names))
    assert found == of(names, own(ALL))
    assert len(found) == 2 * len(names)


def test_every_host_is_for_two_pythons() -> None:
    shares = [share(minor) for minor in MINORS]
    assert sorted(ALL) == sorted(shares[0]) == sorted(name for each in shares[1:] for name in each)


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[int]:
    """A process of a user without rights, in whose folder lie two configurations: one that he may read, and one of root."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    for name, mode in (("his", 0o644), ("ours", 0o600)):
        (tmp_path / name).mkdir(mode=0o755)
        path = tmp_path / name / "postgresql.conf"
        path.write_text("fsync = off\npassword = SECRET\n")
        path.chmod(mode)
    process = subprocess.Popen(["sleep", "600"], user=USER, group=USER, extra_groups=[])
    yield process.pid
    process.kill()
    process.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of two users")
def test_every_python_reads_files_of_others_as_their_owners(
    python: str, recorder: Path, stranger: int, tmp_path: Path
) -> None:
    root = f"/proc/{stranger}/root"
    patterns = [
        f"{root}{tmp_path}/{name}" for name in ("his/*.conf", "ours/postgresql.conf", "none/*.conf", "his", "his/*")
    ]
    patterns += ["/etc/os-release", "/proc/filesystems", "/proc/sys/kernel/random/pool*", f"/proc/{stranger}/cmdline"]
    found = said(python, "read", recorder, *patterns)
    assert found == said(sys.executable, "read", "-", *patterns)
    assert "fsync = off" in found["text"][f"{root}{tmp_path}/his/postgresql.conf"]
    assert "permission denied" in found["errors"][f"{root}{tmp_path}/ours/postgresql.conf"]
    assert "SECRET" not in json.dumps(found)


def answers(path: Path) -> tuple[Any, ...]:
    """What a recording of a fake host holds that is the same at every look: no times, no numbers of processes."""
    past = recording.load(path)

    def plain(each: str) -> str:
        return re.sub(r"/proc/[0-9]+", "/proc/N", each)

    commands = {argv: each._replace(seconds=0) for argv, each in past.commands.items()}
    files = {
        plain(" ".join(patterns)): (
            {plain(name): "" if name.startswith("/proc/") else text for name, text in each.text.items()},
            {plain(name): plain(why) for name, why in each.errors.items()},
            {*map(plain, each.links)},
        )
        for patterns, each in past.files.items()
        if patterns[0] != "/proc/*/cmdline"  # of whatever runs at that moment
    }
    return commands, files, past.euid, past.targets, past.options, past.zaudit, past.rules, past.kept, past.paths


def seen(host: FakeHost, path: Path, *words: str | Path) -> tuple[Any, ...]:
    done = host.run([*map(str, words), "-o", str(path)], database=True)
    assert done.returncode == 0, done.stderr
    return answers(path)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> tuple[FakeHost, tuple[Any, ...]]:
    """A host, and what zaudit itself records of it."""
    folder = tmp_path_factory.mktemp("usual")
    host = namespaces.lay_out(prove.RECORDED, folder / "host")
    return host, seen(host, folder / "own", *namespaces.ZAUDIT, "record")


@pytest.mark.slow
@pytest.mark.skipif(bool(namespaces.missing()), reason=namespaces.missing() or "-")
def test_every_python_sees_the_same_host(
    python: str, recorder: Path, usual: tuple[FakeHost, tuple[Any, ...]], tmp_path: Path
) -> None:
    """As root, with commands, files and a database server of another user."""
    host, own = usual
    older = seen(host, tmp_path / "older", python, "-I", recorder)
    assert older == own
    assert len(own[0]) > 40
    assert any(name.endswith("/root/run/pg/postgresql.conf") for texts, _, _ in older[1].values() for name in texts)


@pytest.mark.slow
def test_what_it_says_and_where_it_writes(python: str, recorder: Path, tmp_path: Path) -> None:
    def run(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [python, "-I", str(recorder), *words], stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        return done.returncode, (done.stdout + done.stderr).decode()

    assert run()[0] == 2
    mine = tmp_path / "mine.tar.gz"
    mine.write_text("not a recording")
    code, text = run("-o", str(mine))
    assert (code, text.count("\n")) == (2, 1)
    assert "zaudit does not overwrite it" in text
    assert mine.read_text() == "not a recording"
    code, text = run("tank", "-o", str(tmp_path / "new"), "--db", "postgres=postgres://user:secret@host/db")
    assert code == 2
    assert "no password here" in text
    assert "secret" not in text
    if not Path("/sys/module/zfs").exists():
        code, text = run("tank", "-o", str(tmp_path / "new"))
        assert (code, text.count("\n")) == (3, 1)
        assert "OpenZFS is not loaded here" in text
    assert not (tmp_path / "new").exists() or Path("/sys/module/zfs").exists()


def test_nothing_of_the_folder_in_which_it_lies_is_imported(python: str, recorder: Path, tmp_path: Path) -> None:
    """Which may be everybody's: somebody copies it to /tmp and forgets -I."""
    copied = shutil.copy(recorder, tmp_path)
    parts = set(re.findall(r"^\s*(?:from|import) (\w+)", recorder.read_text(), re.MULTILINE))
    planted = parts & {*sys.stdlib_module_names} - {*sys.builtin_module_names, "__future__"}
    assert {"importlib", "argparse", "json"} <= planted
    for name in planted:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('of somebody else')\n")
    done = subprocess.run([python, copied, "--version"], capture_output=True, text=True, cwd="/", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"zaudit-record {__version__}\n", "")


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 5, 3)])
def test_an_older_python_is_told_what_is_needed(
    version: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    with pytest.raises(SystemExit) as ended:
        exec(compile(build.HEAD, "zaudit-record.py", "exec"), {})
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(
        f"needs Python 3.6 or later, and {sys.executable} is {version[0]}.{version[1]}\n"
    )


def test_python_2_reads_as_far_as_what_is_needed(recorder: Path) -> None:
    """It compiles all of a file before it runs any of it."""
    found = sorted(Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/2.7.*/bin/python2.7"))
    python = str(found[0]) if found else shutil.which("python2.7") or pytest.skip("no Python 2.7 here")
    done = subprocess.run([python, str(recorder), "--version"], capture_output=True, check=False)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), done.stderr
    assert b"needs Python 3.6 or later" in done.stderr


@pytest.mark.slow
def test_it_can_be_read_and_is_the_same_every_time(recorder: Path) -> None:
    whole = recorder.read_text()
    assert whole == build.built()
    assert not any("click" in name or name.startswith(("auditor.judge", "auditor.model")) for name in build.modules())
    parts: dict[str, str] = {}
    for node in ast.parse(whole).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            parts[ast.literal_eval(node.targets[0].slice)] = ast.literal_eval(node.value)
    assert {f"{name.replace('.', '/')}.py" for name in build.ALONE} < set(parts)
    for name in build.ALONE:
        assert "import auditor" not in parts[f"{name.replace('.', '/')}.py"].replace("auditor.host.children.reader", "")
    for name in ("builtin", "sql"):  # whose functions other Pythons are given
        functions = ast.parse(parts[f"auditor/host/{name}.py"]).body
        ours = {each.name for one in functions if isinstance(one, ast.ImportFrom) for each in one.names}
        given = [each for each in functions if getattr(each, "name", "") in GIVEN]
        assert given
        assert not {each.id for one in given for each in ast.walk(one) if isinstance(each, ast.Name)} & ours - {
            "Any",
            *JUDGING,
        }


# -- what is rewritten means the same --------------------------------------------------------------------------------------

MEANINGS = {
    "match": """
from typing import NamedTuple
class P(NamedTuple):
    x: object
    y: object = 2
def f(v):
    match v:
        case P(1, y) if y == 2: return "guard", y
        case P(x=int() as a, y=P(str(b))): return a, b
        case P(): return "other P"
        case [1, *rest, 9]: return rest
        case ("a" | "b") as which: return which
        case None | True: return "single"
        case (x, P(y=z)), w: return x, z, w
        case [_, _]: return "two"
    return "none"
found = [f(v) for v in (P(1), P(3, P("s")), P(0), [1, 2, 3, 9], (1, 9), "a", "ab", None, True, ((4, P(5)), 6), [7, 8], 1)]
""",
    "walrus": """
def f(items, total=0):
    seen = [y for x in items if (y := x * 2) > 2]
    while (total := total + 1) < 3:
        pass
    def inner():
        return y + total
    def own(y):
        return [y for y in range(y)]
    if not (n := len(seen)) or (m := n - 1) < 0:
        m = -1
    k = lambda z: (q := z + 1) * q
    for n in (7, 8):
        pass
    return seen, total, inner(), own(2), n, m, k(2), [total for total in "ab"], total
found = [f([1, 2, 3]), f([]) if False else None]
""",
    "texts": """
a, width = 3.14159, 9
found = [f"{a:.2f}|{a!r:>{width}}|{{}}|{'x' * 2}|{width:,}", f"", f"{a}", rf"{width}\\d{{2}}"]
""",
    "operators": """
d = {"a": 1} | {"b": 2}
d |= {"c": 3}
s = {1} | {2}
s |= {3}
found = [d, s, 1 | 4, isinstance(1, int | str), isinstance(1.0, int | str), "abc".removeprefix("ab"), "abc".removesuffix(""),
         b"abc".removesuffix(b"c"), "a".isascii(), "\\u00e4".isascii()]
found += [list(zip("ab", "cd", strict=True)), list(zip("ab", "c"))]
try:
    list(zip("ab", "c", strict=True))
except ValueError:
    found.append("strict")
""",
    "types": """
from __future__ import annotations
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, Protocol, TypeVar
T = TypeVar("T")
Kind = Literal["a", "b"]
Call = Callable[[int], Mapping[str, int] | None]
class Box(Generic[T]):
    size: int
    def __init__(self, value: T) -> None:
        self.value: T = value
class Host(Protocol):
    def run(self) -> int: ...
@dataclass(frozen=True, slots=True)
class D:
    a: int
    b: dict[str, int] = field(default_factory=dict)
    c: str = "c"
def f(a: int, /, b: int = 2, *, c: int | None = None) -> tuple[int, ...]:
    counted = defaultdict[str, list[int]](list)
    counted["x"].append(a)
    empty = dict[str, int]()
    return a, b, c, counted["x"], empty
one = D(1)
two = replace(one, c="d")
found = [f(1, c=3), Box(4).value, one.a, one.b, one.c, two.c, D(1).b is one.b]
""",
}


@pytest.mark.parametrize("case", MEANINGS)
def test_what_is_rewritten_means_the_same(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, lower.OLDER, older)
    as_written: dict[str, Any] = {"__name__": __name__}
    exec(compile(MEANINGS[case], case, "exec", dont_inherit=True), as_written)
    for alone in (False, True):
        rewritten: dict[str, Any] = {"__name__": "rewritten"}
        exec(compile(lower.lowered(MEANINGS[case], case, alone=alone), case, "exec", dont_inherit=True), rewritten)
        assert list(map(repr, rewritten["found"])) == list(map(repr, as_written["found"])), case
        assert as_written["found"]


POSSESSIVE = (
    r'"(?:[^"\\]++|\\.)*+"?|[^"]++',
    r"(?:\[[^]@]*+\]|[^][:,/?#@]*+)(?::[0-9]{0,5}+)?+",
    r"(?P<id>\S++(?:[^\S\n]++\S++)*+)",
    r"(a*+)(b|ab)",
    r"(?i:A)++b",
    r"x(?=y*+z)(y)++",
)
TEXTS = ("", '"a\\"b"c', '"', "ab", "aab", "aaab b", "[::1]:65536,x", "xyyz xyz", "AaAb\n b", "a:1/b@c")


@pytest.mark.parametrize("pattern", POSSESSIVE)
def test_possessive_quantifiers_give_back_as_little(pattern: str) -> None:
    theirs, ours = re.compile(pattern), older.re.compile(pattern)
    assert type(ours) is not type(theirs)
    for each in TEXTS:
        assert [(m.span(), m.groups(), m[0]) for m in ours.finditer(each)] == [
            (m.span(), m.groups(), m[0]) for m in theirs.finditer(each)
        ]
        assert ours.findall(each) == theirs.findall(each)
        assert bool(ours.fullmatch(each)) == bool(theirs.fullmatch(each))
        assert ours.sub(r"<\g<0>>", each) == theirs.sub(r"<\g<0>>", each)
        assert older.re.sub(pattern.encode(), rb"-", each.encode()) == re.sub(pattern.encode(), rb"-", each.encode())


def test_names_that_hide_what_is_taken_from_elsewhere_are_refused() -> None:
    with pytest.raises(ValueError, match="its own cache would hide"):
        lower.lowered("from functools import cache\ndef f(cache): return cache\n", "module")


def test_groups_that_are_named_by_number_are_refused() -> None:
    with pytest.raises(ValueError, match="counted anew"):
        older.atomic(r"(a)b++\1")
