"""The law of zaudit, as a table: whatever goes wrong with whatever question, no verdict gets better by it.

For each recorded host, each collector and each fault: the host is audited as it was, and with that collector's answers
replaced by the faulty ones. What a fault may do to a verdict is to make it unknown, or to leave it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from auditor import audit, registry
from auditor.commands._options import with_database
from auditor.data.platforms import ANY, installed
from auditor.facts import HOST, Fact, Facts, Kind, Known, Subject, Unknown
from auditor.gather import answer, walk
from auditor.gather.walk import LookOptions
from auditor.host.live import Host
from auditor.host.request import Capture, Files, Read, Run
from auditor.model.release import OWN
from auditor.recording import recording
from auditor.recording.recording import Recording, ReplayHost
from auditor.selftest import NO_END_MARK, Outcomes, outcomes
from auditor.sources import block_tree
from auditor.sources.source import Source
from tests import golden, shared
from tests.faults import (
    BINARY,
    EMPTY,
    NONE,
    NOT_INSTALLED,
    NOT_PERMITTED,
    NOTHING_SAID,
    TIME_OUT,
    Fault,
    FaultyHost,
    all_faults,
)
from tests.parsed import Parsed
from tests.shared import name_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("parsed_once")]

NOBODY = 1000
ABOVE: dict[Kind, tuple[Kind, ...]] = {
    "host": (), "pool": (), "vdev": ("pool",), "leaf": ("pool",), "disk": ("leaf", "pool"), "dataset": ("pool",),
    "database": ("host",),
}  # fmt: skip
# that a file or link is not there is an answer
ABSENCE_TELLS = frozenset({"hostid_file", "partitions", "dev_links", "imported_pools", "includes"})
# a layer that cannot be told apart is "dm", which it is; udev's database has no end mark, and a name that two devices
# claim is left out of it: only dev_links decides which of them has it
LESS_PRECISE = frozenset({"layers", "stack", "device_names"})

# as some of NO_END_MARK, of which halves tell less
FILES_WITHOUT_END = frozenset({"module_lists", "trim_timers"})
# which the recordings lack
NO_SECOND_LOOK = frozenset({"zpool_events", "zpool_events_all", "zfs_mounts", "boot_units", "database_paths"})
# what systemctl says nothing of where there is nothing
SILENCE_TELLS = frozenset({"upkeep-failed", "zfs-units-failed"})

Questions = dict[str, list[tuple[Subject, Run | Read]]]


@dataclass(frozen=True)
class Base:
    """A recorded host as it was: what was asked, what is known, what is judged."""

    past: Recording
    asked: Questions
    facts: Facts
    outcomes: Outcomes


def look(
    past: Recording,
    collector: str = "",
    fault: Fault | None = None,
    asked: Questions | None = None,
    only: Subject | None = None,
) -> Facts:
    """Replay, one collector at fault, of all subjects or of one."""
    original = answer.answer_of

    def answer_of(
        source: Source, subject: Subject, request: Run | Read, reply: Capture | Files, host: Host
    ) -> answer.Answer:
        name = source.name
        if asked is not None:
            asked.setdefault(name, []).append((subject, request))
        if fault and name == collector and only in (None, subject):
            reply = reply_to(request, FaultyHost(host, fault))
        return original(source, subject, request, reply, host)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer, "answer_of", answer_of)
        options = audit.Options.from_words(past.options)
        # a database is named, so that what is named and not seen is judged, too
        options = with_database(options, options.wanted.database or "postgres")
        return audit.look(ReplayHost(past), past.targets, options).facts


@cache
def base(case: Path) -> Base:
    past = replace(recording.load(case), euid=NOBODY)
    asked: Questions = {}
    facts = look(past, asked=asked)
    return Base(past, asked, facts, outcomes(shared.audited(), facts))


def reply_to(request: Run | Read, host: FaultyHost | ReplayHost) -> Capture | Files:
    return host.run(request) if isinstance(request, Run) else host.read(request)


def replies(known: Base, collector: str) -> list[Capture | Files]:
    return [reply_to(request, ReplayHost(known.past)) for _, request in known.asked[collector]]


def signature(known: Base, collector: str, fault: Fault) -> object:
    """All that the rest of zaudit can notice of the faulty answers: two faults with one signature are one case."""
    host, module = FaultyHost(ReplayHost(known.past), fault), registry.sources()[collector]
    answers = (
        answer.answer_of(module, subject, request, reply_to(request, host), host)
        for subject, request in known.asked[collector]
    )
    return frozenset(
        (fact.subject, fact.name, fact.value.value if isinstance(fact.value, Known) else None, type(fact.value))
        for answer in answers
        for fact in answer.facts
    )


def names_of(known: Base) -> frozenset[str]:
    """Words that are names on this host: another name is another thing."""
    names: set[str] = set()
    for kind in ABOVE:
        for subject in known.facts.subjects(kind):
            names |= set(re.findall(r"[\w-]+", subject.name))
            for name, value in known.facts.of(subject).items():
                spec = registry.registry().get((kind, name))
                if isinstance(value, Known) and isinstance(value.value, str) and spec and not spec.values:
                    names |= set(re.findall(r"[\w-]+", value.value))
    return frozenset(names)


# -- the law ----------------------------------------------------------------------------------------------------------


def made_better(before: Outcomes, after: Outcomes, strict: bool, bound: frozenset[str] = frozenset()) -> Iterator[str]:
    """What gets decided, or decided otherwise, or falls silent. bound: rules that may turn out not to apply."""
    for key, outcome in after.items():
        was = before.get(key)
        if outcome in ("unknown", was) or (was, outcome) == ("not applicable", "pass"):
            continue  # it holds, whether it applies or not: that was seen
        if outcome == "not applicable" and key[0] in bound:
            continue
        if strict or (was in ("fail", "unknown") and outcome != "fail"):
            yield f"{key[0]} {key[1].kind} {key[1]}: {was} -> {outcome}"
    for (rule, subject), was in before.items():
        if (rule, subject) not in after:
            of_rule = [(each, outcome) for (id, each), outcome in after.items() if id == rule]
            hole = any(outcome == "unknown" and each.kind in ABOVE[subject.kind] for each, outcome in of_rule)
            renamed = [outcome for each, outcome in of_rule if each.kind == subject.kind and (rule, each) not in before]
            if not hole and (strict or not renamed or set(renamed) - {was, "unknown", "fail"}):
                yield f"{rule} {subject.kind} {subject}: {was}, and no hole where it was"


def made_up(before: Facts, after: Facts) -> Iterator[str]:
    """What is known otherwise than without the fault."""
    for subject, name, value in otherwise(before, after):
        was = before.get(subject, name)
        same = isinstance(value, Known) and isinstance(was, Known) and was.value == value.value
        if isinstance(value, Known) and not same and name not in ABSENCE_TELLS | LESS_PRECISE:
            was_it = was.value if isinstance(was, Known) else was
            yield f"{subject.kind} {subject}: {name} = {value.value!r}, was {was_it!r}"


def otherwise(before: Facts, after: Facts) -> Iterator[Fact]:
    """What is not the same as it was, its evidence included."""
    for kind in ABOVE:
        for subject in after.subjects(kind):
            own, was = after.of(subject), before.of(subject)
            if own != was:
                yield from (Fact(subject, name, value) for name, value in own.items() if was.get(name) != value)


def ill_typed(before: Facts, after: Facts) -> Iterator[str]:
    """What is known and yet of the wrong type, or a word that the fact can never be."""
    for subject, name, value in otherwise(before, after):
        match value:
            case Known(found):
                spec = registry.registry()[subject.kind, name]
                many = spec.type is tuple or spec.many
                fits = isinstance(found, tuple) if many else type(found) is spec.type
                if not fits or (spec.values and found not in spec.values):
                    yield f"{subject.kind} {subject}: {name} = {found!r}"
            case Unknown(reasons):
                if not reasons or not all(reason.text.strip() for reason in reasons):
                    yield f"{subject.kind} {subject}: {name} is unknown for no reason"


def silent(known: Base, collector: str, fault: Fault, after: Facts) -> Iterator[str]:
    """Facts that only this collector can give, and that are not unknown with its reason and its remedy."""
    module = registry.sources()[collector]
    runs = [request for _, request in known.asked[collector] if isinstance(request, Run)]
    remedy = (
        "run as root"
        if fault is NOT_PERMITTED
        else installed(f"apt install {runs[0].package}", known.facts.get(HOST, "platform").word(ANY))
        if runs and runs[0].package and fault is NOT_INSTALLED
        else ""
    )
    for key, _ in registry.specs(module):
        if providers()[key] != 1:
            continue
        for subject in after.subjects(key[0]):
            value = after.get(subject, key[1])
            if isinstance(known.facts.get(subject, key[1]), Unknown) or key[1] in ABSENCE_TELLS:
                continue
            if isinstance(value, Known):
                yield f"{key[0]} {subject}: {key[1]} is still known: {value.value!r}"
            elif remedy and remedy not in [reason.remedy for reason in value.reasons]:
                yield f"{key[0]} {subject}: {key[1]}: no {remedy!r} in {value.reasons}"


@cache
def providers() -> Counter[tuple[Kind, str]]:
    """How many can give a fact."""
    walked = (*registry.qualified(block_tree.PROVIDES), *registry.qualified(walk.PROVIDES))
    return Counter([*walked, *(key for key, _ in registry.every())])


def chosen() -> list[Path]:
    """Of each line of OpenZFS the host with the most critical failures; a healthy one, where a fault has the most to spoil;
    one with several pools; those on which a database runs that was asked itself; and those whose system gives releases fixes
    of later ones, of which nothing may be said where it is not known whether this is such a system."""

    failed = golden.written()

    def failures(case: Path) -> tuple[int, int]:
        return sum(severity == "critical" for severity, _ in failed[case]), len(failed[case])

    lines: dict[str, list[Path]] = {}
    recorded = [case for case in golden.cases() if not case.name.startswith("composed")]
    for case in recorded:
        lines.setdefault(case.name.partition("-")[0], []).append(case)
    healthy = [case for case in golden.cases() if "-healthy" in case.name]
    several = [case for case in golden.cases() if "-stacked" in case.name]
    databases = [case for case in golden.cases() if "-db-" in case.name]
    own = [case for case in golden.cases() if any(f"composed-{each}-" in case.name for each in OWN)]
    return sorted(
        {*(max(cases, key=failures) for cases in lines.values()), *healthy[:1], *several[:1], *databases[:1], *own}
    )


def cut_list(known: Base, collector: str, fault: Fault) -> bool:
    """zpool list has no end mark. Pools that are cut off it are missed only where the kernel's own list was not read,
    as in recordings that are older than that question (tests/test_cli.py has the case with it). Others have none either."""
    if collector == "database_settings" and fault.name.startswith("a later release: not"):
        return True  # in a file of people a name that the server does not know is none of its settings
    if collector in NO_END_MARK | FILES_WITHOUT_END | NO_SECOND_LOOK - {"zpool_list"}:
        return fault.name.startswith("cut")
    if collector != "zpool_list" or known.past.targets or isinstance(known.facts.get(HOST, "kstat_pools"), Known):
        return False
    return fault.name.startswith("cut")


@cache
def bound_to_releases() -> frozenset[str]:
    """Rules that apply to some releases only."""
    return frozenset(rule.id for rule in shared.audited() if rule.when and "host.zfs_version" in rule.when.source)


CASES = chosen()


def test_the_table_is_not_empty() -> None:
    """Four releases, two of them with zpool status as text; failures to hide, and nearly all collectors."""
    assert {name_of(case).split("-")[0] for case in CASES} == {"2.1", "2.2", "2.3", "2.4", "composed"}
    assert {base(case).facts.get(HOST, "platform").word() for case in CASES} >= {*OWN}
    assert len({name for case in CASES for name in base(case).asked}) >= 25
    failed = {rule for case in CASES for (rule, _), outcome in base(case).outcomes.items() if outcome == "fail"}
    assert len(failed) >= 6


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_what_is_known_without_a_fault_is_of_its_type(case: Path) -> None:
    assert list(ill_typed(Facts(), base(case).facts)) == []


def test_what_is_parsed_once_is_the_same(parsed_once: Parsed) -> None:
    """The table rests on it; what base() holds was parsed without."""
    known = base(CASES[0])
    for _ in range(2):
        used = parsed_once.used
        assert {*look(known.past)} == {*known.facts}
    assert parsed_once.used - used > 50


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_no_fault_makes_a_verdict_better(case: Path) -> None:
    wrong = [f"{collector}: {each}" for collector in sorted(base(case).asked) for each in worse(base(case), collector)]
    assert not wrong, "\n".join(wrong[:40])


def worse(known: Base, collector: str) -> Iterator[str]:
    """What the faults of one collector break of the law."""
    module = registry.sources()[collector]
    seen = {signature(known, collector, NONE)}
    for fault in all_faults(module, replies(known, collector), names_of(known)):
        same = signature(known, collector, fault)
        if cut_list(known, collector, fault) or (same in seen and not fault.gone):
            continue
        seen.add(same)
        try:
            facts = look(known.past, collector, fault)
        except audit.NothingToAudit:  # exit code 3: nothing is said to be fine
            continue
        after = outcomes(shared.audited(), facts)
        bound = bound_to_releases() if fault.name == "a later release" else frozenset()
        trouble = [*made_better(known.outcomes, after, fault.partial, bound), *ill_typed(known.facts, facts)]
        if fault.partial:
            trouble += made_up(known.facts, facts)
        if fault.gone:
            trouble += silent(known, collector, fault, facts)
        yield from (f"{fault.name}: {each}" for each in trouble)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_nor_does_a_fault_of_one_pool_or_disk(case: Path) -> None:
    known = base(case)
    wrong: list[str] = []
    several = {collector: asked for collector, asked in known.asked.items() if len(asked) > 1}
    for collector, subject in ((each, subject) for each, asked in several.items() for subject, _ in asked):
        facts = look(known.past, collector, NOT_PERMITTED, only=subject)
        trouble = [
            *made_better(known.outcomes, outcomes(shared.audited(), facts), True),
            *made_up(known.facts, facts),
        ]
        wrong += [f"{collector}: {subject}: {each}" for each in trouble]
    assert not wrong, "\n".join(wrong[:40])


@pytest.mark.parametrize("case", CASES, ids=name_of)
@pytest.mark.parametrize(
    "fault", [NOT_INSTALLED, NOT_PERMITTED, TIME_OUT, EMPTY, NOTHING_SAID, BINARY], ids=lambda fault: str(fault.name)
)
def test_nothing_passes_when_every_answer_is_at_fault(case: Path, fault: Fault) -> None:
    known = base(case)
    host = FaultyHost(ReplayHost(known.past), fault)
    targets = known.past.targets or ("tank",)
    try:
        facts = audit.look(host, targets, audit.Options(LookOptions(database="postgres"))).facts
    except audit.NothingToAudit:
        return
    told = {rule for (rule, _), outcome in outcomes(shared.audited(), facts).items() if outcome != "unknown"}
    assert told <= (SILENCE_TELLS if fault in (EMPTY, NOTHING_SAID) else frozenset())
