"""A whole audit with one answer damaged: a verdict may become undecided by it, and never better.

Only loss: an answer is cut, a row or a key of it is gone, it is refused, ends with another exit code, or is that of another
question. What an attacker or a broken tool could *add* is another matter: zaudit has to believe what it is told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

from auditor import audit
from auditor.facts import Facts, Subject
from auditor.host.request import Capture, Files
from auditor.judge import verdict
from auditor.judge.verdict import Verdict
from auditor.recording.recording import Recording, ReplayHost
from tests import second_looks, shared
from tests.fuzz.target import Case, Flaw

GONE = ("permission denied", "input/output error", "interrupted system call", "no answer within 30 s")
SAID = (  # exit code, standard output, standard error
    *((1, "", "permission denied\n"), (1, "", "cannot open: Zugriff verweigert\n"), (1, "keine Berechtigung\n", "")),
    *((0, "", ""), (0, "", "permission denied\n"), (0, "\n", ""), (127, "", "sh: not found\n"), (-9, "", "")),
    *(
        (0, "cannot open 'tank': no such pool\n", ""),
        (0, "no pools available\n", ""),
        (0, "no datasets available\n", ""),
    ),
    *((0, "{}\n", ""), (0, "[]\n", ""), (0, "null\n", ""), (0, '{"output_version":{}}\n', "")),
)
ONE_LOOK = {("dmesg", "--kernel"), ("systemctl", "list-units")}
ONE_LOOK_FILES = ("/etc/samba/", "/etc/exports", "modprobe", "/cron", "/root/", "/cmdline")
Key = tuple[str, Subject]


class Loss:
    """The target. A case names the host, the question (the words of a command, or patterns of files) and the damage, one
    step after the other: ["lines", PART, 3, 5], ["exit", 1]. PART is a file, or empty for standard output."""

    name = "loss"

    def make(self, chance: Random) -> Case:
        host = chance.choice(hosts())
        past = _past(host)
        question = chance.choice(sorted(past.commands) + sorted(past.files))
        return {"host": host, "asked": list(question), "damage": _damage(chance, past, question)}

    def check(self, case: Case) -> str:
        past = _past(case["host"])
        question = tuple(case["asked"])
        commands, files = dict(past.commands), dict(past.files)
        for step in case["damage"]:
            if question in commands:
                commands[question] = _capture(step, commands[question], past)
            elif question in files:
                files[question] = _files(step, files[question])
        try:
            after = judged(replace(past, commands=commands, files=files))
        except audit.NothingToAudit:
            return "refused"
        for key, change in improved(_before(case["host"]), after):
            if _one_look(question, past):
                return "read"
            raise Flaw(f"improved: {key[0]} {change}, {_called(question)}")
        return "read"

    def smaller(self, case: Case) -> Iterator[Case]:
        steps = case["damage"]
        if len(steps) > 1:
            yield from ({**case, "damage": steps[:i] + steps[i + 1 :]} for i in range(len(steps)))
        for i, step in enumerate(steps):
            match step:
                case ["lines", part, first, after] if after - first > 1:
                    middle = (first + after) // 2
                    for pair in ((first, middle), (middle, after), (first + 1, after), (first, after - 1)):
                        yield {**case, "damage": [*steps[:i], ["lines", part, *pair], *steps[i + 1 :]]}


@cache
def hosts() -> list[str]:
    """The names of all recorded hosts."""
    return shared.HOSTS.names()


@cache
def _past(host: str) -> Recording:
    return second_looks.added(shared.host(host))


@cache
def _before(host: str) -> Mapping[Key, Verdict]:
    return judged(_past(host))


def judged(past: Recording) -> dict[Key, Verdict]:
    """Rule and subject -> verdict."""
    facts: Facts = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options)).facts
    return {(each.rule.id, each.subject): each for each in verdict.judge(shared.audited(), facts)}


# -- what is better -----------------------------------------------------------------------------------------------------


def improved(before: Mapping[Key, Verdict], after: Mapping[Key, Verdict]) -> Iterator[tuple[Key, str]]:
    """What was found or undecided and now passes, does not apply, or is gone without a word.

    A subject that is not seen any more is told of where a rule of the same name is undecided that was not, or where the
    reason of one that is undecided names it; and where the rule fails of a subject that has a name with the lost one in it (a
    leaf by its path).
    """
    new = [each for key, each in after.items() if each.outcome == "unknown" and before.get(key) != each]
    renamed = [
        (rule, subject)
        for (rule, subject), each in after.items()
        if each.outcome == "fail" and (rule, subject) not in before
    ]
    for key, was in before.items():
        now = after.get(key)
        if was.outcome not in ("fail", "unknown") or (now and now.outcome in ("fail", "unknown")):
            continue
        if now is not None:
            yield key, f"{was.outcome} -> {now.outcome}"
        elif any(rule == key[0] and key[1].name in subject.name for rule, subject in renamed):
            continue
        elif not any(each.rule.id == key[0] or _names(each, key[1]) for each in new):
            yield key, f"{was.outcome} -> vanished"


def _names(undecided: Verdict, subject: Subject) -> bool:
    return any(subject.name in reason.text for reason in undecided.reasons)


def _one_look(question: tuple[str, ...], past: Recording) -> bool:
    """Whether nothing else tells of a line that is lost from this answer: see auditor.selftest.losses.ONE_LOOK. Of the pools
    the kernel tells, where the recording is young enough to have its list."""
    if question[:2] == ("zpool", "list"):
        return not any(word.endswith("/*/state") for patterns in past.files for word in patterns)
    if question[0].endswith("/mountinfo"):  # of a database: its folders say themselves on which device they are
        return False
    return question[:2] in ONE_LOOK or any(part in word for part in ONE_LOOK_FILES for word in question)


def _called(question: tuple[str, ...]) -> str:
    """The kind of a question: without the disk or the process that it is about."""
    return " ".join("*" if any(each.isdigit() for each in word) and "/" in word else word for word in question)[:60]


# -- damage -------------------------------------------------------------------------------------------------------------


def _damage(chance: Random, past: Recording, question: tuple[str, ...]) -> list[list[Any]]:
    if question in past.files:
        found = past.files[question]
        names = sorted((*found.text, *found.links)) or [""]
        part = chance.choice(names)
        match chance.randrange(8):
            case 0:
                return [["gone", part, chance.choice(GONE)]]
            case 1:
                return [["all", chance.choice(GONE)]]
            case _:
                return [_less(chance, found.text.get(part, ""), part)]
    answer = past.commands[question]
    text = answer.stdout.decode("utf-8", "surrogateescape")
    match chance.randrange(10):
        case 0:
            return [["says", *chance.choice(SAID)]]
        case 1:
            alike = [each for each in past.commands if each[:2] == question[:2] and each != question]
            return [["other", list(chance.choice(sorted(alike) or sorted(past.commands)))]]
        case 2:
            return [_less(chance, text, ""), ["exit", chance.choice((1, 2, 255, -9, -13))]]
        case _:
            return [_less(chance, text, "")]


def _less(chance: Random, text: str, part: str) -> list[Any]:
    """One loss of a text."""
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    if text.lstrip()[:1] in ("{", "[") and chance.random() < 0.6 and (paths := _paths(text)):
        return ["key", part, list(chance.choice(paths)), chance.choice(("gone", None, "empty", "-"))]
    match chance.randrange(7):
        case 0:
            return ["bytes", part, chance.randrange(len(text) + 1)]
        case 1:
            return ["lines", part, at, len(lines)]
        case 2 | 3:
            return ["lines", part, at, at + 1]
        case 4:
            return ["lines", part, at, at + chance.randrange(1, 8)]
        case 5:
            return ["lines", part, 0, at]
        case _:
            return ["line", part, at, chance.randrange(len(lines[at]) + 1)]


def _paths(text: str) -> list[tuple[Any, ...]]:
    """The place of every value in a document of JSON."""
    try:
        document = json.loads(text)
    except ValueError:
        return []

    def below(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, each in inner:
            yield (*path, key)
            yield from below(each, (*path, key))

    return list(below(document, ()))


def _without(text: str, step: list[Any]) -> str:
    """A text after one step."""
    lines = text.split("\n")
    match step:
        case ["bytes", _, int() as size]:
            return text[:size]
        case ["lines", _, int() as first, int() as after]:
            kept = lines[:first] + lines[after:]
            return "\n".join([*kept, ""] if after >= len(lines) and kept and kept[-1] else kept)
        case ["line", _, int() as at, int() as column]:
            return "\n".join([*lines[:at], lines[at][:column], *lines[at + 1 :]]) if at < len(lines) else text
        case ["key", _, list() as path, how]:
            return _unkeyed(text, path, how)
    raise ValueError(f"no such damage: {step}")


def _unkeyed(text: str, path: list[Any], how: str | None) -> str:
    document = above = json.loads(text)
    try:
        for key in path[:-1]:
            above = above[key]
        if how == "gone":
            del above[path[-1]]
        else:
            old = above[path[-1]]
            above[path[-1]] = type(old)() if how == "empty" and isinstance(old, dict | list | str) else how
    except (KeyError, IndexError, TypeError):
        return text  # the recording was made anew, and has no such key
    return json.dumps(document)


def _capture(step: list[Any], answer: Capture, past: Recording) -> Capture:
    match step:
        case ["says", int() as code, str() as out, str() as error]:
            return answer._replace(exit=code, stdout=out.encode(), stderr=error.encode())
        case ["other", list() as question]:
            return past.commands.get(tuple(question), answer)
        case ["exit", int() as code]:
            return answer._replace(exit=code)
        case _:
            text = _without(answer.stdout.decode("utf-8", "surrogateescape"), step)
            return answer._replace(stdout=text.encode("utf-8", "surrogateescape"))


def _files(step: list[Any], answer: Files) -> Files:
    text, links, errors = dict(answer.text), dict(answer.links), dict(answer.errors)
    match step:
        case ["gone", str() as path, str() as why]:
            if path in text or path in links:
                text.pop(path, None), links.pop(path, None)
                errors[path] = why
        case ["all", str() as why]:
            errors |= dict.fromkeys((*text, *links), why)
            text, links = {}, {}
        case [_, str() as path, *_] if path in text:
            text[path] = _without(text[path], step)
    return answer._replace(text=text, links=links, errors=errors)
