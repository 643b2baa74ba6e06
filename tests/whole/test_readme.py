"""The README says what the program says, and every command in it exists."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from auditor import EXIT_NOTHING, EXIT_USAGE, rulebook
from auditor import selftest as law
from auditor.cli import main
from auditor.judge.finding import EXIT_CODES, EXIT_UNDECIDED
from auditor.registry import registry
from auditor.report import rule_page
from tests import rule_pages, shared
from tests.golden import CANONICAL, HOSTS, QUESTIONS, README, blocks, filled

ROOT = README.parent
DOCUMENTS = sorted(str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")))
ALL = shared.rules()
POWER = "tests/lab/power/README.md"
LINK = re.compile(r"\]\((\.\./[^)]+)\)")


def text_of(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize("document", blocks(), ids=lambda path: str(path.name))
def test_the_report_and_the_help_text_are_the_programs(document: Path) -> None:
    assert filled(document) == document.read_text(), "run: python -m tests.golden"


def test_the_questions_are_those_of_the_program() -> None:
    assert QUESTIONS.read_text() == rule_pages.questions(), "run: python -m tests.golden"


def test_every_zaudit_command_and_option_in_it_exists() -> None:
    texts = [text_of(name) for name in DOCUMENTS if name != "CHANGELOG.md"]  # which names what was, too
    shell = "\n".join(each for text in texts for each in re.findall(r"```(?:sh|ini)\n(.*?)```", text, re.DOTALL))
    for text in texts:
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        spans = [" ".join(each.split()) for each in re.findall(r"`([^`]+)`", prose)]
        shell += "".join(f"\n{each}" for each in spans if re.search(r"(^|[ /])zaudit(\.pyz)? [a-z]", each))
    used = re.findall(r"zaudit(?:\.pyz)? (check|record|rules|explain|[a-z]+)\b([^#\n']*)", shell.replace("\\\n", " "))
    assert len(used) >= 80
    for name, rest in used:
        command = main.get_command(click.Context(main), name)
        if isinstance(command, click.Group) and rest.split():
            command = command.get_command(click.Context(command), rest.split()[0])
        assert command is not None, name
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        if isinstance(command, click.Group):
            continue
        for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", rest):
            assert option in options, f"zaudit {name} {option}"


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_every_make_target_in_it_exists(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"(?:^|`)make ([a-z-]+)\b", text_of(name), re.MULTILINE)
    assert len(targets) >= 1
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_exit_codes_are_those_of_the_program() -> None:
    text = text_of("docs/exit-codes.md")
    for code in (EXIT_USAGE, EXIT_NOTHING, EXIT_UNDECIDED):
        assert f"| {code} |" in text
    assert f"| {', '.join(str(EXIT_CODES[severity]) for severity in EXIT_CODES)} |" in text


def test_each_promise_stands_once_and_names_tests_that_exist() -> None:
    rows = [
        line.split(" | ")
        for line in text_of("SECURITY.md").partition("| promise | test |")[2].splitlines()
        if " | " in line
    ]
    assert len(rows) >= 30
    promises = [promise[:60] for promise, *_ in rows]
    assert [each for each in promises if promises.count(each) > 1] == []
    for promise, tests in rows:
        named = re.findall(r"`(?:[\w./]*/)?(\w+(?:\.py)?)`", tests)
        assert [each for each in named if any((ROOT / "tests").rglob(each))], promise
        assert [each for each in named if each.endswith(".py") and not any((ROOT / "tests").rglob(each))] == [], promise


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_path_in_it_exists(name: str) -> None:
    text = text_of(name)
    for path in re.findall(r"`((?:auditor|contrib|fixtures|rules|tests)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path
    links = [link for link in re.findall(r"\]\(([^)#:]+)\)", text) if not link.startswith("http")]
    assert [link for link in links if not ((ROOT / name).parent / link).exists()] == []


def test_its_figures_are_those_of_the_tables() -> None:
    """Of power cuts, of public incidents, and of the promises of SECURITY.md."""
    text = " ".join(README.read_text().split())
    lines = re.findall(
        r"^\| 2\.\d \| [^|]+ \| \d+ \| (\d+) \| ([\d,]+) \| .+\| (\d+) \| (\d+) \|$", text_of(POWER), re.MULTILINE
    )
    cuts, acknowledged, *wrong = (
        sum(int(each.replace(",", "")) for each in column) for column in zip(*lines, strict=True)
    )
    assert f"**{cuts} power cuts**" in text
    assert f"{acknowledged:,} acknowledged commits: no loss" in text
    assert wrong == [0, 0], "misses, false alarms"
    found = re.search(r"^\| all \| \d+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| ", text_of("docs/proof.md"), re.MULTILINE)
    assert found
    signs, caught, hidden, examples = map(int, found.groups())
    assert f"**{caught + hidden + examples} of {signs} public incidents**" in text
    assert f"For {caught} of them a host shows it" in text
    assert f"for {hidden} further down. For {examples} only" in text
    promises = [line for line in text_of("SECURITY.md").splitlines() if line.startswith("| ") and "`tests/" in line]
    assert f"**{len(promises)} promises**" in text


def test_its_picture_is_small() -> None:
    """contrib/screenshot.sh makes it; a clone should not grow by it."""
    assert 10_000 < (ROOT / "docs/report.png").stat().st_size < 150_000


def test_each_document_is_found_from_the_readme() -> None:
    """In one step, or in two."""
    links = {name: set(re.findall(r"\]\(([^)#:]+)\)", text_of(name))) for name in DOCUMENTS}
    near = {"README.md", *(link for link in links["README.md"] if link in DOCUMENTS)}
    found = {Path(link).name for name in near for link in links[name]} | {"README.md"}
    assert {Path(name).name for name in DOCUMENTS} - found == set()


def test_the_first_rule_of_a_contributor_is_one(tmp_path: Path) -> None:
    """As CONTRIBUTING.md has it, whether or not somebody has sent it: it loads, its examples give their verdicts, and it judges
    a recorded host."""
    text = (README.parent / "CONTRIBUTING.md").read_text()
    found = re.search(r"`my/([\w-]+)\.toml`.*?```toml\n(.*?)```", text, re.DOTALL)
    assert found
    assert f"--rules my --rule {found[1]}`" in text
    mine = f"my-{found[1]}"
    (tmp_path / f"{mine}.toml").write_text(found[2])
    rule = next(rule for rule in rulebook.load([tmp_path]) if rule.id == mine)
    assert [law.run_example(rule, each, registry()).outcome for each in rule.examples] == ["pass", "fail", "unknown"]
    arguments = [
        "check",
        "--replay",
        str(HOSTS / CANONICAL),
        "--rules",
        str(tmp_path),
        "--rule",
        mine,
        "--format",
        "json",
    ]
    done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, json.loads(done.output)["coverage"]["passed"]) == (0, 1)


def pages() -> dict[str, str]:
    """Rule -> its page; not made before a test looks at them, for all recorded hosts are judged for it."""
    return {rule.id: text for rule in ALL if (text := rule_pages.pages().get(rule.page))}


def test_each_rule_has_a_page_that_the_index_links_once() -> None:
    linked = re.findall(r"\(\.\./(docs/rules/[a-z0-9-]+\.md)\)", rule_pages.pages()[rule_pages.INDEX])
    assert sorted(linked) == sorted(rule.page for rule in ALL) == sorted(rule_pages.pages().keys() - {rule_pages.INDEX})


def test_every_link_of_the_pages_leads_somewhere() -> None:
    there = {str(ROOT / path) for path in rule_pages.pages()}
    links = [os.path.normpath(ROOT / "docs/rules" / link) for text in pages().values() for link in LINK.findall(text)]
    assert len(links) > 50
    assert [link for link in {*links} - there if not Path(link).exists()] == []


def test_a_page_says_everything_of_its_rule() -> None:
    pages_of = pages()
    for rule in ALL:
        page = pages_of[rule.id]
        labels = re.findall(r"^- \*([\w ]+):\*", page, re.MULTILINE)
        needed = {"Severity", "About", "Must hold", "Impact", "Why", "Fix", "Sources", "Examples", "Lab"}
        assert needed <= set(labels), rule.id
        assert "nothing says why not" not in page


def test_explain_prints_what_the_page_says() -> None:
    """Word by word, for every rule: what one of them has the other has, too, but for the lab."""
    pages_of = pages()
    marks = re.compile(r"(?<!\\)`|^- \*([\w ]+):\*|^    - |\*\*(?!\*)", re.MULTILINE)
    for rule in ALL:
        shown = rule_page.page(rule, 100).removeprefix(f"{rule.id}:")
        said = pages_of[rule.id].removeprefix(f"# {rule.id}").partition("\n- *Lab:*")[0]
        page = re.sub(r"\\(.)", r"\1", marks.sub(r"\1 ", said))
        assert "".join(shown.replace("**", "").split()) == "".join(page.replace("**", "").split()), rule.id


def test_a_rule_of_somebody_else_has_no_page(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text((README.parent / "rules" / "atime-on.toml").read_text())
    pages = {rule.id: rule.page for rule in rulebook.load([tmp_path])}
    assert pages["mine"] == ""
    assert pages["atime-on"] == "docs/rules/atime-on.md"
