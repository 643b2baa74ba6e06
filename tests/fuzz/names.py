"""A whole audit of a host on which something has a hostile name: a pool, a dataset, a device, a folder, a server.

The name is another one in every answer, as on a host where it is called so, or in one alone. Who gives a name may say
anything about what has it; zaudit neither crashes nor hangs, says nothing better about anything else, and prints nothing that
a terminal or a browser obeys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from random import Random
from typing import TypeVar

from auditor import audit
from auditor.facts import Kind
from auditor.host.request import Capture, Files
from auditor.judge.verdict import Verdict
from auditor.recording.recording import Recording
from auditor.report import audit_page, report_json
from tests import law
from tests.fuzz import mutate
from tests.fuzz.loss import audited, hosts, recorded
from tests.fuzz.target import Case, Flaw, printable, sound
from tests.law import Audited, Key

T = TypeVar("T")
KINDS: tuple[Kind, ...] = ("pool", "dataset", "disk", "leaf", "database")
NAMED = ("mountpoint", "hostname", "serial")
# of a path, and of what OpenZFS names itself
COMMON = re.compile(
    r"|dev|disk|by-\w+|\d+|(mirror|raidz\d|draid\S*|spare|replacing|indirect)-\d+|var|lib|mnt|data|none|legacy"
)
MARKUP = '<b id="zx">'
INSERTED = (
    *(" ", "  ", " x", " 1 2 3", "\t", "\n", "\n\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028"),
    *("'", '"', "`", "=", "=1=2", ",", ", ", ";", ":", ": ", "|", "&", "#", "%", "%s", "%41", "\\", "\\n", "\\040"),
    *("$(id)", "{subject}", "{0}", "*", "?", "[a", "]", "(", ")", "@", "@x", "..", "/../..", " (deleted)", " - "),
    *("é", "e\u0301", "\u200b", "\u202e", "\u2066", "\ufeff", "\U000e0041", "\udcff", "\u0663", "\u05d0", "\U0001f4a9"),
    *("\x1b[2J", "\x1b]0;x\x07", "\x9b2J", "\x08\x08", "\x7f", "\0", MARKUP, "<!--", "</script>", "&lt;", "]]>"),
    *("x" * 300, "x" * 70_000, " x" * 5000, "9" * 5000, "-o", "none", "unknown", "null", "::error::x"),
    *(
        "\tsync\tstandard\tlocal\n",
        "\ntank\tsync\tstandard\tlocal",
        "\ntank\tavailable\t-\t-\n",
        "  ONLINE       0     0     0\n",
    ),
)


class Names:
    """The target. A case names the host, the name, what comes into it and where, and of one answer the question (the words of a
    command, or patterns of files), of all of them nothing."""

    name = "names"

    def make(self, chance: Random) -> Case:
        host = chance.choice(hosts())
        name = chance.choice(names(host))
        case: Case = {
            "host": host,
            "name": name,
            "text": chance.choice(INSERTED),
            "at": chance.randrange(len(name) + 1),
        }
        if chance.random() < 0.4:
            case["asked"] = list(chance.choice(_naming(host, name)))
        return case

    def check(self, case: Case) -> str:
        before, name, at = audited(case["host"]), case["name"], case["at"]
        other = name[:at] + case["text"] + name[at:]
        only = tuple(case["asked"]) if "asked" in case else None
        try:
            after = Audited.of(renamed(recorded(case["host"]), name, other, only))
        except audit.NothingToAudit:
            return "refused"
        sound(after.facts)
        printable(audit_page.write_text(after.report, verbose=2))
        json.loads(report_json.render(after.report, passed=True))
        if MARKUP in audit_page.write_html(after.report, verbose=2):
            raise Flaw("printed: markup in a page")
        for key, change in law.improved(_others(before, name), after.verdicts):
            raise Flaw(f"improved: {key[0]} {change}, about something else than what has the name")
        return "read"

    def smaller(self, case: Case) -> Iterator[Case]:
        yield from ({**case, "text": text} for text in mutate.smaller(case["text"]))
        if "asked" not in case:
            yield from ({**case, "asked": list(each)} for each in _naming(case["host"], case["name"]))


def _others(before: Audited, name: str) -> dict[Key, Verdict]:
    """What was judged of subjects that have nothing to do with the name."""
    word = _word(name)
    return {
        key: each
        for key, each in before.verdicts.items()
        if not word.search(f"{key[1].name} {key[1].within}")
        and not any(map(word.search, [piece.text for piece in each.evidence] + [why.text for why in each.reasons]))
    }


@cache
def names(host: str) -> list[str]:
    """What was given a name, in a part of a path or as a whole, where an answer has it."""
    facts = audited(host).facts
    found = {part for kind in KINDS for subject in facts.subjects(kind) for part in subject.name.split("/")}
    for kind in ("host", *KINDS):
        for subject in facts.subjects(kind):
            for name in NAMED:
                found.update(str(facts.get(subject, name).or_none() or "").split("/"))
    return sorted(each for each in found if not COMMON.fullmatch(each) and _naming(host, each))


@cache
def _naming(host: str, name: str) -> list[tuple[str, ...]]:
    """The questions whose answers have the name."""
    past, word = recorded(host), _word(name)
    commands = {question: [each.stdout.decode("utf-8", "replace")] for question, each in past.commands.items()}
    files = {
        question: [*each.text, *each.text.values(), *each.links, *each.links.values()]
        for question, each in past.files.items()
    }
    return sorted(question for question, texts in (commands | files).items() if any(map(word.search, texts)))


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")


def renamed(past: Recording, name: str, other: str, only: tuple[str, ...] | None) -> Recording:
    """The host on which it has another name; only: in one answer, as of a tool that spells it in its own way."""
    word = _word(name)

    def plain(text: str) -> str:
        return word.sub(lambda _: other, text)

    def spelt(text: str, where: str = "") -> str:
        if text.lstrip()[:1] in ("{", "["):
            return word.sub(lambda _: json.dumps(other)[1:-1], text)
        if where.endswith(("/mountinfo", "/mounts", "/swaps", "/fstab")):
            return word.sub(lambda _: re.sub(r"[\s\\]", lambda match: f"\\{ord(match[0]) & 0o777:03o}", other), text)
        return plain(text)

    def capture(answer: Capture) -> Capture:
        text = spelt(answer.stdout.decode("utf-8", "surrogateescape"))
        return answer._replace(stdout=text.encode("utf-8", "surrogateescape"))

    def keys(table: Mapping[str, T]) -> dict[str, T]:
        return {plain(path): each for path, each in table.items()}

    def files(answer: Files) -> Files:
        return answer._replace(
            text={plain(path): spelt(text, path) for path, text in answer.text.items()},
            links={plain(path): plain(target) for path, target in answer.links.items()},
            errors=keys(answer.errors),
            devices=keys(answer.devices),
            changed=keys(answer.changed),
        )

    if only is not None:
        return replace(
            past,
            commands={each: capture(answer) if each == only else answer for each, answer in past.commands.items()},
            files={each: files(answer) if each == only else answer for each, answer in past.files.items()},
        )
    return replace(
        past,
        targets=tuple(map(plain, past.targets)),
        commands={tuple(map(plain, each)): capture(answer) for each, answer in past.commands.items()},
        files={tuple(map(plain, each)): files(answer) for each, answer in past.files.items()},
        paths={plain(path): plain(target) for path, target in past.paths.items()},
    )
