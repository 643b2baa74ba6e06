"""Rules and questions are found by the names that people know: settings, properties, parameters, commands, symptoms, jargon."""

from __future__ import annotations

import re

import pytest

from auditor import rulebook
from auditor.databases import ENGINES
from auditor.judge.rule import SEVERITIES
from auditor.report import rule_page
from auditor.text import near
from tests.fake import CommandLine
from tests.folded import for_each
from tests.whole.test_readme import ROOT

RULES = rulebook.load(examples=False)
BY_ID = {rule.id: rule for rule in RULES}


def ids(*words: str) -> list[str]:
    return [rule.id for rule in rule_page.find(RULES, words)]


# what is typed -> a rule that must be among the first three
ASKED = {
    "full_page_writes": "torn-page-guard-off",
    "doublewrite": "torn-page-guard-off",
    "innodb_doublewrite": "torn-page-guard-off",
    "torn page": "torn-page-guard-off",
    "logbias": "logbias-throughput-log",
    "sync": "sync-disabled",
    "sync=disabled": "sync-disabled",
    "slog": "slog-unused",
    "plp": "no-power-loss-protection",
    "supercap": "no-power-loss-protection",
    "snapshot": "snapshots-fill-the-pool",
    "w:1": "mongodb-acknowledges-early",
    "innodb_flush_log_at_trx_commit": "innodb-flush-log",
    "synchronous_commit": "pg-synchronous-commit",
    "appendfsync": "redis-appendfsync",
    "sync_binlog": "innodb-sync-binlog",
    "zfs_nocacheflush": "zfs-nocacheflush",
    "zfs_arc_max": "arc-vs-db-memory",
    "failmode": "failmode-continue",
    "recordsize": "recordsize-vs-page",
    "zpool reopen": "flush-latched-off",
    "nobarrier": "volume-flushes-lost",
    "smr": "disk-shingled",
    "cache=unsafe": "guest-ignores-flushes",
    "ENOSPC": "space-refused",
    "split brain": "multihost-off-shared",
    "bbu": "raid-writeback-no-bbu",
    "libeatmydata": "libeatmydata",
    "battery": "raid-writeback-no-bbu",
    "suspended": "pool-suspended",
    "corruption": "pool-data-errors",
    "wal": "sync-mixed-log-data",
    "zstd": "compression-off",
    "relatime": "atime-on",
    "l2arc": "arc-over-limit",
    "raid card": "raid-volume-hides-disks",
    "optane": "no-power-loss-protection",
    "gcp": "volatile-vdev",
    "mount order": "fstab-before-mounts",
}


@for_each("asked", list(ASKED.items()), ids=lambda pair: pair[0])
def test_a_word_leads_to_its_rule(asked: tuple[str, str]) -> None:
    word, rule = asked
    assert rule in ids(word)[:3]
    assert rule in ids(*word.split())[:3], "also as several words"


def test_the_best_comes_first() -> None:
    assert ids("sync")[0] == "sync-disabled"
    assert ids("full_page_writes")[0] == "torn-page-guard-off"
    assert "sync-disabled" in ids("sync-disable")[:3], "the beginning of an id"
    assert ids("slog", "mirror")[0] == "slog-no-redundancy"


def test_what_rules_set_and_read_is_found_without_a_list_of_it() -> None:
    """Nothing is kept by hand: each thing that a fix sets, and each fact that a condition reads, leads to its rule."""
    for rule in RULES:
        if rule.head:
            continue
        sets = [each.source.split("=")[0].split()[-1] for each in rule.fix.sets if "=" in each.source]
        read = re.findall(rf"\b{rule.subject}\.(\w+)", rule.expect.source)
        for name in (*sets, *read):
            assert rule_page.find([rule], (name,)) == [rule], name
    of_rules = {name for rule in RULES for name in re.findall(r"database\.(\w+)", rule.expect.source)}
    for engine in ENGINES.values():
        for setting in engine.settings:
            if setting.fact in of_rules:
                assert ids(setting.name), setting.name


def test_each_synonym_finds_something() -> None:
    index = " ".join(each.text for rule in RULES for each in rule_page.texts_of(rule))
    for word, means in rule_page.load_synonyms().items():
        assert word == word.lower()
        for phrase in means:
            assert rule_page._plain(phrase) in index, f"{word}: no rule speaks of {phrase}"


def test_a_question_is_found_by_each_of_its_words() -> None:
    for question in rule_page.load_questions():
        for word in question.words:
            assert question in rule_page.questions((word,)), word
            assert question in rule_page.questions(tuple(word.upper().split())), word
    assert rule_page.questions(("frobnicate",)) == []


@for_each("question", rule_page.load_questions(), ids=lambda each: each.ask)
def test_a_question_is_short_and_whole(question: rule_page.Question) -> None:
    assert question.ask.endswith("?")
    assert len(question.answer.split()) <= 70
    assert question.command.startswith("zaudit ")
    for path in re.findall(r"\b(?:docs|tests|auditor)/[\w./-]+\w", " ".join((question.answer, *question.sources))):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("word", ["full_page_writes", "doublewrite", "logbias", "sync", "slog", "plp", "snapshot"])
def test_explain_answers_with_a_question_and_rules(word: str, zaudit: CommandLine) -> None:
    done = zaudit("explain", word)
    assert (done.code, done.err) == (0, "")
    assert rule_page.questions((word,))[0].ask in done.out
    listed = [line.split()[1] for line in done.out.splitlines() if line.startswith(SEVERITIES)]
    assert listed == ids(word)[:10]
    more = len(ids(word)) - 10
    assert (f"{more} more: zaudit rules {word}\n" in done.out) == (more > 0)
    of_check = [id for id in ids(word) if not BY_ID[id].of_verify]
    assert [line.split()[1] for line in zaudit("rules", word).out.splitlines()][: len(of_check)] == of_check


def test_explain_of_a_word_that_one_rule_speaks_of_is_its_page(zaudit: CommandLine) -> None:
    assert zaudit("explain", "zpool reopen").out == zaudit("explain", "flush-latched-off").out


def test_explain_of_an_id_is_its_page_whatever_else_speaks_of_it(zaudit: CommandLine) -> None:
    assert zaudit("explain", "sync-disabled").out.startswith("sync-disabled: ")
    assert rule_page.questions(("sync-disabled",))


def test_explain_of_an_event_names_its_page(zaudit: CommandLine) -> None:
    assert "zaudit explain --event power: what this event costs" in zaudit("explain", "power").out


def test_the_public_report_about_throughput_is_told_consistently() -> None:
    """Wherever the project speaks of openzfs/zfs issue 18996 at length: what was lost, and that no cause is known."""
    for path in ("rules/innodb-logbias-throughput.toml", "auditor/data/questions.toml", "auditor/data/durability.toml",
                 "auditor/data/advice.toml", "tests/lab/power/README.md"):  # fmt: skip
        text = " ".join((ROOT / path).read_text().split())
        for said in (r"18996", r"two of two (?:power )?cuts", r"none of 29", r"[Nn]o mechanism is known"):
            assert re.search(said, text), (path, said)


def test_all_questions_are_listed(zaudit: CommandLine) -> None:
    out = zaudit("explain", "--questions").out
    assert all(each.command in out for each in rule_page.load_questions())
    assert len(rule_page.load_questions()) == 13


@pytest.mark.parametrize(
    "words", [("explain",), ("explain", "--questions", "sync"), ("explain", "--questions", "--event", "power")]
)
def test_one_thing_is_asked_at_a_time(words: tuple[str, ...], zaudit: CommandLine) -> None:
    assert zaudit(*words).code == 2


def test_what_is_misspelt_is_offered_by_its_names(zaudit: CommandLine) -> None:
    for wrong, right in (("logbais", "logbias"), ("snpashot", "snapshot"), ("zfs_nocacheflsh", "zfs_nocacheflush")):
        done = zaudit("explain", wrong)
        assert (done.code, done.out) == (2, "")
        assert re.search(rf"similar: .*\b{right}\b", done.err), done.err


def test_a_name_that_holds_the_word_counts_before_one_that_is_spelt_alike() -> None:
    assert near("logbias", ["slog-virtual", "logbias-throughput-log"]).startswith("; similar: logbias-throughput-log")
    assert near("slog", ["slow-leg", "slog-no-redundancy", "slog-unused"]).startswith(
        "; similar: slog-unused, slog-no-"
    )
