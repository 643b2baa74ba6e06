"""A whole audit with answers damaged: a verdict may become undecided by it, and never better.

Only loss: an answer is cut, a row or a key of it is gone, it is refused or late, ends with another exit code, or is that of
another question. What an attacker or a broken tool could *add* is another matter: zaudit has to believe what it is told
(``names`` tries what names can do to others).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

from auditor import audit
from auditor.host import builtin
from auditor.host.request import Capture, Files
from auditor.recording.recording import Recording
from tests import law, second_looks, shared
from tests.fuzz.target import Case, Flaw, sound
from tests.law import Audited

LATE = "no answer within 30 s"
GONE = ("permission denied", "input/output error", "interrupted system call", LATE)
REFUSED = (1, "", "permission denied\n")
SAID = (  # exit code, standard output, standard error
    *(REFUSED, (1, "", "cannot open: Zugriff verweigert\n"), (1, "keine Berechtigung\n", "")),
    *((0, "", ""), (0, "", "permission denied\n"), (0, "\n", ""), (127, "", "sh: not found\n"), (-9, "", "")),
    *(
        (0, "cannot open 'tank': no such pool\n", ""),
        (0, "no pools available\n", ""),
        (0, "no datasets available\n", ""),
    ),
    *((0, "{}\n", ""), (0, "[]\n", ""), (0, "null\n", ""), (0, '{"output_version":{}}\n', "")),
)
ONE_LOOK = {("dmesg", "--kernel"), (builtin.KMSG, "disks"), ("systemctl", "list-units")}
ONE_LOOK_FILES = ("/etc/samba/", "/etc/exports", "modprobe", "/cron", "/root/", "/cmdline")
Question = tuple[str, ...]


@dataclass(frozen=True)
class Loss:
    """The target. A case names the host, and for each answer that is damaged the question (the words of a command, or
    patterns of files) and the steps, one after the other: ["lines", PART, 3, 5], ["exit", 1]. PART is a file, or empty for
    standard output. answers: how many are damaged at once; of several most are lost as a whole."""

    answers: int = 1

    @property
    def name(self) -> str:
        return "loss" if self.answers == 1 else f"loss{self.answers}"

    def make(self, chance: Random) -> Case:
        host = chance.choice(hosts())
        asked = kinds(host)
        damage: list[list[Any]] = []
        for _ in range(self.answers):
            question = chance.choice(asked[chance.choice(sorted(asked))])
            whole = self.answers > 1 and chance.random() < 0.75
            damage.append([list(question), _lost(chance, recorded(host), question, whole=whole)])
        return {"host": host, "damage": damage}

    def check(self, case: Case) -> str:
        host, damage, past = case["host"], case["damage"], recorded(case["host"])
        better = _better(host, damage)
        if not better:
            return "refused" if better is None else "read"
        if any(_one_look(tuple(words), past) and not _refused(steps) for words, steps in damage):
            return "read"
        alone = [[each] for each in damage if better[0] in (_better(host, [each]) or ())]
        blamed = sorted(_called(tuple(words)) for words, _ in (alone[0] if alone else damage))
        raise Flaw(f"improved: {better[0]}, {' + '.join(blamed)}")

    def smaller(self, case: Case) -> Iterator[Case]:
        damage = case["damage"]
        if len(damage) > 1:
            yield from ({**case, "damage": damage[:i] + damage[i + 1 :]} for i in range(len(damage)))
        for i, (words, steps) in enumerate(damage):
            for less in _smaller(steps):
                yield {**case, "damage": [*damage[:i], [words, less], *damage[i + 1 :]]}


def _better(host: str, damage: list[Any]) -> list[str] | None:
    """What is better by it; None where nothing is left to audit."""
    try:
        after = Audited.of(damaged(recorded(host), damage))
    except audit.NothingToAudit:
        return None
    sound(after.facts)
    return list(law.broken(audited(host), after))


def _smaller(steps: list[Any]) -> Iterator[list[Any]]:
    if len(steps) > 1:
        yield from (steps[:i] + steps[i + 1 :] for i in range(len(steps)))
    for i, step in enumerate(steps):
        match step:
            case ["lines", part, first, after] if after - first > 1:
                middle = (first + after) // 2
                for pair in ((first, middle), (middle, after), (first + 1, after), (first, after - 1)):
                    yield [*steps[:i], ["lines", part, *pair], *steps[i + 1 :]]


@cache
def hosts() -> list[str]:
    """The names of all recorded hosts."""
    return shared.HOSTS.names()


@cache
def recorded(host: str) -> Recording:
    """With the second looks that it lacks."""
    return second_looks.added(shared.host(host))


@cache
def audited(host: str) -> Audited:
    """As it was recorded."""
    return Audited.of(recorded(host))


@cache
def kinds(host: str) -> dict[str, list[Question]]:
    """By what is asked: of many disks and processes each would else have its turn before the one list of the pools."""
    past = recorded(host)
    found: dict[str, list[Question]] = {}
    for question in sorted(past.commands):
        found.setdefault(" ".join(question[:2]), []).append(question)
    for question in sorted(past.files):
        found.setdefault(_called(question), []).append(question)
    return found


def damaged(past: Recording, damage: list[list[Any]]) -> Recording:
    """The host with other answers."""
    commands, files = dict(past.commands), dict(past.files)
    for words, steps in damage:
        question = tuple(words)
        for step in steps:
            if question in commands:
                commands[question] = _capture(step, commands[question], past)
            elif question in files:
                files[question] = _files(step, files[question])
    return replace(past, commands=commands, files=files)


def _one_look(question: Question, past: Recording) -> bool:
    """Whether nothing else tells of a line that is lost from this answer: see auditor.selftest.ONE_LOOK. Of the pools
    the kernel tells, where the recording is young enough to have its list."""
    if question[:2] == ("zpool", "list"):
        return not any(word.endswith("/*/state") for patterns in past.files for word in patterns)
    if question[0].endswith("/mountinfo"):  # of a database: its folders say themselves on which device they are
        return False
    return question[:2] in ONE_LOOK or any(part in word for part in ONE_LOOK_FILES for word in question)


def _refused(steps: list[Any]) -> bool:
    """Whether anybody would notice that there is no answer."""
    return all(step[0] in ("gone", "all", "late") or (step[0] == "says" and step[1] != 0) for step in steps)


def _called(question: Question) -> str:
    """The kind of a question: without the disk or the process that it is about."""
    return " ".join("*" if any(each.isdigit() for each in word) and "/" in word else word for word in question)[:60]


# -- damage -------------------------------------------------------------------------------------------------------------


def _lost(chance: Random, past: Recording, question: Question, *, whole: bool) -> list[list[Any]]:
    """Steps. whole: nothing is left of it."""
    if question in past.files:
        found = past.files[question]
        part = chance.choice(sorted((*found.text, *found.links)) or [""])
        match 1 if whole else chance.randrange(8):
            case 0:
                return [["gone", part, chance.choice(GONE)]]
            case 1:
                return [["all", chance.choice(GONE)]]
            case _:
                return [_less(chance, found.text.get(part, ""), part)]
    answer = past.commands[question]
    text = answer.stdout.decode("utf-8", "surrogateescape")
    match chance.randrange(2) if whole else chance.randrange(2, 12):
        case 0:
            return [["says", *REFUSED]]
        case 1 | 2:
            return [["late", 0 if whole else chance.randrange(len(text) + 1)]]
        case 3:
            return [["says", *chance.choice(SAID)]]
        case 4:
            alike = [each for each in past.commands if each[:2] == question[:2] and each != question]
            return [["other", list(chance.choice(sorted(alike) or sorted(past.commands)))]]
        case 5:
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
    try:
        document = above = json.loads(text)
        for key in path[:-1]:
            above = above[key]
        if how == "gone":
            del above[path[-1]]
        else:
            old = above[path[-1]]
            above[path[-1]] = type(old)() if how == "empty" and isinstance(old, dict | list | str) else how
    except (ValueError, KeyError, IndexError, TypeError):
        return text  # the host was recorded again, or a step before took the key
    return json.dumps(document)


def _capture(step: list[Any], answer: Capture, past: Recording) -> Capture:
    match step:
        case ["says", int() as code, str() as out, str() as error]:
            return answer._replace(exit=code, stdout=out.encode(), stderr=error.encode())
        case ["other", list() as question]:
            return past.commands.get(tuple(question), answer)
        case ["exit", int() as code]:
            return answer._replace(exit=code)
        case ["late", int() as size]:
            return answer._replace(exit=None, stdout=answer.stdout[:size], stderr=b"", seconds=30.0, fault=LATE)
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
