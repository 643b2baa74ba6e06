"""What the environment may say and what not, how much is said, and what is near a word that is misspelt."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from auditor import cli, data
from tests.fake import CommandLine
from tests.golden import CANONICAL, GREEN, HOSTS

REC = HOSTS / CANONICAL


def named_commands() -> Iterator[tuple[str, click.Command]]:
    """Every command, with those of groups, by its whole name."""
    for name in cli.COMMANDS:
        if found := cli.main.get_command(click.Context(cli.main), name):
            yield name, found
            if isinstance(found, click.Group):
                yield from ((f"{name} {each}", one) for each, one in found.commands.items())


def commands() -> list[click.Command]:
    return [each for _, each in named_commands()]


def test_the_environment_says_how_it_looks_and_how_long_it_takes_and_nothing_else() -> None:
    by_environment = {
        parameter.name: parameter.envvar for each in commands() for parameter in each.params if parameter.envvar
    }
    assert by_environment == {name: f"ZAUDIT_{name.upper()}" for name in cli.SET_BY_ENVIRONMENT}
    assert "auto_envvar_prefix" not in cli.CONTEXT


# every variable that zaudit reads itself, and where; click reads those of SET_BY_ENVIRONMENT
VARIABLES = {
    "cli.py": {"ZAUDIT_DEBUG"},
    "interrupt.py": {"TERM"},
    "screen.py": {"COLUMNS", "FORCE_COLOR", "LC_ALL", "NO_COLOR", "PYTHONIOENCODING", "TERM"},
    "host/sql.py": {"all of them"},  # HOME, KRB5CCNAME and PG*, which libpq is given
    "verify/ledger.py": {"HOME", "XDG_STATE_HOME"},  # of a user who is not root
    "verify/execution.py": {"all of them"},  # LD_PRELOAD and LD_LIBRARY_PATH, which fio is given
}
READERS = {"environ", "environb", "getenv", "getenvb", "expanduser", "expandvars", "home", "gettempdir", "tempfile"}


def variables(path: Path) -> Iterator[str]:
    """Those that a module reads, as far as they stand there as words; "all of them" where it goes through them."""
    text = path.read_text()
    if not any(name in text for name in READERS):
        return
    tree = ast.parse(text)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {each.name for each in node.names} | {getattr(node, "module", "")}
            assert not names & READERS, f"{path.name}: imports {names & READERS}"
        elif isinstance(node, ast.Attribute) and node.attr in READERS:
            if node.attr in ("home", "expanduser"):
                yield "HOME"
            elif node.attr == "environ" and isinstance(node.value, ast.Name) and node.value.id == "os":
                yield variable(parents, node)


def variable(parents: Mapping[ast.AST, ast.AST], node: ast.AST) -> str:
    above = parents[node]
    call = parents[above] if isinstance(above, ast.Attribute) and above.attr == "get" else above
    word: ast.AST | None = None
    match call:
        case ast.Call(args=[word, *_]) | ast.Subscript(slice=word) | ast.Compare(left=word):
            pass
    return str(word.value) if isinstance(word, ast.Constant) else "all of them"


def test_zaudit_reads_these_variables_and_no_other() -> None:
    root = Path(cli.__file__).parent
    found = {str(path.relative_to(root)): set(variables(path)) for path in sorted(root.rglob("*.py"))}
    assert {name: each for name, each in found.items() if each} == VARIABLES


@pytest.mark.parametrize(
    ("name", "value"),
    [("HELP", "1"), ("CHECK_HELP", "1"), ("VERSION", "1"), ("CHECK_SKIP", "sync-disabled"), ("SKIP", "sync-disabled"),
     ("CHECK_OUTPUT", "/dev/null"), ("FAIL_ON", "critical"), ("POLICY", "/dev/null"), ("CHECK_VERIFY", "1")],
)  # fmt: skip
def test_no_variable_makes_a_bad_night_look_good(
    name: str, value: str, zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = zaudit("check", "--replay", REC)
    monkeypatch.setenv(f"ZAUDIT_{name}", value)
    assert zaudit("check", "--replay", REC) == plain


def test_a_variable_and_an_option(zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZAUDIT_MIN_SEVERITY", "critical")
    monkeypatch.setenv("ZAUDIT_COLOR", "always")
    done = zaudit("check", "--replay", REC)
    assert "not shown" in done.out
    assert "\x1b[" in done.out
    done = zaudit("check", "--replay", REC, "--min-severity", "low", "--color", "never")
    assert "not shown" not in done.out
    assert "\x1b[" not in done.out
    monkeypatch.setenv("ZAUDIT_TIMEOUT", "soon")
    assert zaudit("check", "--replay", REC).code == 2


def test_quiet_says_nothing_beside_the_report(zaudit: CommandLine, tmp_path: Path) -> None:
    words = ("check", "--replay", REC, "-o", tmp_path / "report")
    assert zaudit(*words).err
    assert zaudit(*words, "--quiet") == (14, "", "")
    assert zaudit("check", "--replay", tmp_path / "none", "--quiet").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("chek",), "No such command 'chek'; similar: check, checklist, schema."),
        (("explain", "sync-disbled"), "no rule 'sync-disbled', and none speaks of it; similar: sync-disabled"),
        (("check", "--replay", REC, "--skip", "slog-no-redundncy"), "similar: slog-no-redundancy"),
        (("xyzzy",), "No such command 'xyzzy'."),
    ],
)
def test_what_is_near(words: tuple[object, ...], said: str, zaudit: CommandLine) -> None:
    done = zaudit(*words)
    assert done.code == 2
    assert said in done.err


def test_rules_in_a_pipe_and_in_part(zaudit: CommandLine) -> None:
    whole = zaudit("rules").out
    rules = {each["id"]: each for each in json.loads(zaudit("rules", "--format", "json").out)}
    for each in rules.values():
        assert each["title"] in whole, "whole, for grep"
    part = json.loads(zaudit("rules", "--severity", "critical", "--subject", "dataset", "--format", "json").out)
    assert {each["id"] for each in part} == {
        id for id, each in rules.items() if (each["severity"], each["subject"]) == ("critical", "dataset")
    }
    found = zaudit("rules", "SLOG", "mirror").out.splitlines()
    assert found[0].split()[1] == "slog-no-redundancy", "best first"
    assert zaudit("rules", "no such words").out == "0 rules; zaudit explain ID shows one of them\n"


def test_a_policy_is_checked_without_a_host(zaudit: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "zaudit.toml"
    over = datetime.now(UTC).date() - timedelta(days=2)
    path.write_text(
        f'[rules]\n"advisory-*" = "off"\n[[waiver]]\nrule = "slog-*"\nclass = "virtual machine"\nowner = "ann"\n'
        f'reason = "lab"\nexpires = {over}\n'
    )
    done = zaudit("policy", "check", path)
    assert (done.code, done.err) == (0, "")
    assert "advisory-" in done.out
    assert f"slog-* of class virtual machine: waived until {over}, which is over, by ann" in done.out
    path.write_text('[rules]\natime-onn = "off"\n')
    done = zaudit("policy", "check", path)
    assert (done.code, done.out) == (2, "")
    assert "line 2: no rule 'atime-onn'; similar: atime-on" in done.err
    assert zaudit("policy", "check", tmp_path / "none").code == 2


def test_a_retired_rule_is_explained(zaudit: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "disk-tired is retired: use smartctl -x"
    monkeypatch.setattr(data, "retired", lambda: {"disk-tired": sentence})
    done = zaudit("explain", "disk-tired")
    assert (done.code, done.out, done.err) == (0, f"{sentence}\n", "")
    path = tmp_path / "zaudit.toml"
    path.write_text('[rules]\ndisk-tired = "off"\n')
    done = zaudit("policy", "check", path)
    assert (done.code, done.out.splitlines()[0]) == (0, f"{path}, line 2: no effect, {sentence}")
    check = ("check", "--replay", REC, "--rule", "atime-on", "--policy", path)
    assert f"line 2: no effect, {sentence}" in zaudit(*check).err
    assert zaudit(*check, "--quiet").err == ""


@pytest.mark.parametrize(
    "words",
    [("record", "-o"), ("check", "--record"), ("check", "--replay"), ("show",), ("diff",), ("check", "-o"),
     ("fleet", "judge", "x", "--inventory"), ("fleet", "judge", "x", "--policy"), ("fleet", "report", "x", "-o")],
)  # fmt: skip
def test_a_url_is_no_folder_of_that_name(words: tuple[str, ...], zaudit: CommandLine, tmp_path: Path) -> None:
    done = zaudit(*words, "s3://zaudit/db1.tar.gz")
    assert done.code == 2
    assert "s3://zaudit/db1.tar.gz is a URL" in done.err


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("check", "--replay", REC, "--replay", HOSTS / GREEN), "--replay"),
        (("check", "--replay", REC, "-o", "-", "--output=/dev/null"), "-o"),
        (("fleet", "judge", "a", "-o", "x", "--timeout", "4", "-o", "y"), "-o"),
        (("check", "--policy", "a", "--policy", "b"), "--policy"),
    ],
)
def test_no_second_value_takes_the_place_of_the_first(
    words: tuple[object, ...], option: str, zaudit: CommandLine
) -> None:
    done = zaudit(*words)
    assert done.code == 2
    assert f"{option} appears more than once; it takes one value." in done.err


def test_options_that_take_several_values_take_them(zaudit: CommandLine) -> None:
    words = ("-v", "-v", "--skip", "sync-always", "--skip", "atime-on", "--format", "json")
    document = json.loads(zaudit("check", "--replay", REC, *words).out)
    assert {each["rule"] for each in document["left_out"]} == {"sync-always", "atime-on"}


def test_the_last_of_two_choices_or_times_counts(zaudit: CommandLine) -> None:
    done = zaudit("check", "--color", "always", "--color", "never", "--timeout", 1, "--timeout", 9, "--replay", REC)
    assert "more than once" not in done.err
    assert "\x1b" not in done.out
