"""The README says what the program says, and every command in it exists."""

from __future__ import annotations

import re

import click

from auditor import rulebook
from auditor.cli import main
from auditor.errors import EXIT_NOTHING, EXIT_USAGE
from auditor.judge.finding import EXIT_CODES, EXIT_UNDECIDED
from auditor.report import rule_index, rule_page
from tests.golden import HOSTS, README, RULES, filled

TEXT = README.read_text()


def test_the_report_and_the_help_text_are_the_programs() -> None:
    assert filled(TEXT) == TEXT, "run: python -m tests.golden"


def test_every_zaudit_command_and_option_in_it_exists() -> None:
    shell = "\n".join(re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL))
    used = re.findall(r"zaudit(?:\.pyz)? (check|record|rules|explain|[a-z]+)\b([^#\n]*)", shell)
    assert len(used) >= 8
    for name, rest in used:
        command = main.get_command(click.Context(main), name)
        assert command is not None, name
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", rest):
            assert option in options, f"zaudit {name} {option}"


def test_every_make_target_in_it_exists() -> None:
    makefile = (README.parent / "Makefile").read_text()
    targets = re.findall(r"(?:^|`)make ([a-z-]+)\b", TEXT, re.MULTILINE)
    assert len(targets) >= 4
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_exit_codes_are_those_of_the_program() -> None:
    for code in (EXIT_USAGE, EXIT_NOTHING, EXIT_UNDECIDED):
        assert f"| {code} |" in TEXT
    assert f"| {', '.join(str(EXIT_CODES[severity]) for severity in EXIT_CODES)} |" in TEXT


def test_every_path_in_it_exists() -> None:
    for path in re.findall(r"`((?:auditor|fixtures|rules|tests)/[\w./-]+)`", TEXT):
        assert (README.parent / path).exists(), path
    assert HOSTS.is_dir()


def test_the_page_of_all_rules_is_the_programs() -> None:
    rules = rulebook.load()
    text = RULES.read_text()
    assert text == rule_index.markdown(rules), "run: python -m tests.golden"
    assert [text.count(f"\n### {rule.id}\n") for rule in rules] == [1] * len(rules)
    assert set(re.findall(r"\(#([a-z0-9-]+)\)", text)) == {rule.id for rule in rules}


def test_explain_prints_what_the_page_says() -> None:
    """Word by word, for every rule: what one of them has the other has, too."""
    pages = dict(re.findall(r"\n### (\S+)\n(.*?)(?=\n### |\n## |\Z)", RULES.read_text(), re.DOTALL))
    marks = re.compile(r"(?<!\\)`|^- \*([\w ]+):\*|^  - |\*\*(?!\*)", re.MULTILINE)
    for rule in rulebook.load():
        shown = rule_page.page(rule, 100).removeprefix(f"{rule.id}:")
        page = re.sub(r"\\(.)", r"\1", marks.sub(r"\1 ", pages[rule.id]))
        assert "".join(shown.replace("**", "").split()) == "".join(page.replace("**", "").split()), rule.id
