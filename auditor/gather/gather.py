"""Walks the subjects and asks: host, then pools and datasets, then the disks behind the leaves, as much at once as the
answers allow. Every failure becomes Unknown(reason) here and nowhere else."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import NamedTuple, cast

from auditor.collect import _blocks as blocks
from auditor.collect import zpool_status_paths
from auditor.collect._holders import Holders, Place
from auditor.collect.mounts import Mount
from auditor.collect.zfs_properties import above
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Kind,
    Known,
    Subject,
    Unknown,
    flag,
    join,
    links,
    unknown,
    word,
)
from auditor.gather import bounds, brought, database_walk, layers, mounted, neighbours, witnesses
from auditor.gather.reasons import command_line, decoded, fault_of, root_if, unasked, unread
from auditor.host.live import Host
from auditor.host.request import UNASKED, Capture, Files, Output, Read, Reply, Run, Skip
from auditor.host.running import Workers
from auditor.text import harmless

PROVIDES = {
    "host.pools": links("pool", "the pools that are audited"),
    "host.consistent": flag("the properties of datasets are to be read in one transaction group"),
    "host.waivers": links("waiver", "what the policy waives"),
    "waiver.expired": flag("its last day was over"),
    "waiver.used": flag("its rule found something, or could not decide, where it holds"),
    "waiver.in_view": flag("what it is about was judged this time"),
    "dataset.role": word("what the policy says it is for", "log", "data", "both", "rebuildable", "undeclared"),
    "dataset.database": word("the database that the policy names for it, or empty"),
    "pool.datasets": links("dataset", "what is audited of its datasets"),
}
DEFECT = "zaudit failed on this answer: "
REPORT_IT = "please report it"

Progress = Callable[[int, int, str], None]


class Answer(NamedTuple):
    """What came of one question: facts, and (beside or instead of them) why the rest is not known. unasked: the question,
    where a recording says nothing of it, or of a part of it."""

    facts: Facts
    failure: Unknown | None = None
    applies: bool = True
    unasked: str = ""


class Gatherer:
    """Asks one host. answers: by collector and subject, in no order; :meth:`settle` stores them in a fixed one."""

    def __init__(self, host: Host, collectors: Mapping[str, ModuleType], progress: Progress | None = None) -> None:
        self.host = host
        self.collectors = collectors
        self.progress: Progress = progress or (lambda done, total, what: None)
        self.answers: dict[tuple[str, Subject], Answer] = {}
        self._asked = self._done = 0
        self._questions: dict[tuple[str, Subject], Run | Read] = {}  # whose answers are not stored yet
        self._workers: Workers[tuple[str, Subject], Capture | Files] = Workers(host.at_once)
        self._told: dict[tuple[str, Subject], Answer] = {}  # and not stored yet

    def ask(self, name: str, subjects: Iterable[Subject], facts: Facts) -> None:
        """Put one collector's question for each subject; does not wait."""
        for subject in subjects:
            key = (name, subject)
            if key not in self._questions and key not in self.answers:
                request = self.collectors[name].request(subject, facts)
                if isinstance(request, Skip):
                    self.answers[key] = Answer(Facts(), unknown(request.reason, request.remedy), request.applies)
                else:
                    self._asked += 1
                    self._questions[key] = request
                    if self.host.at_once > 1:
                        self._workers.start(key, partial(self._answer, request))
                    else:
                        self._hear(key, self._answer(request))

    def settle(self, facts: Facts, names: Sequence[str] | None = None) -> None:
        """Wait for the answers of these collectors (all, when None) and store them by collector and subject."""
        keys = sorted(key for key in self._questions if names is None or key[0] in names)
        while not all(key in self._told for key in keys):
            self._hear(*self._workers.ended())
        for key in keys:
            answer = self._told.pop(key)
            del self._questions[key]
            facts.merge(answer.facts)
            self.answers[key] = answer._replace(facts=Facts())

    def close(self) -> None:
        """Put no more questions to the host."""
        self._workers.abandon()

    @property
    def unasked(self) -> tuple[str, ...]:
        """The questions, or parts of them, that a recording does not know."""
        return tuple(sorted({answer.unasked for answer in self.answers.values() if answer.unasked}))

    def failure(self, name: str, subject: Subject) -> Unknown | None:
        """Why a question failed, if it did."""
        answer = self.answers.get((name, subject))
        return answer.failure if answer else None

    def _answer(self, request: Run | Read) -> Capture | Files:
        return self.host.run(request) if isinstance(request, Run) else self.host.read(request)

    def _hear(self, key: tuple[str, Subject], reply: Capture | Files) -> None:
        name, subject = key
        self._told[key] = answer_of(self.collectors[name], subject, self._questions[key], reply, self.host)
        self._done += 1
        self.progress(self._done, self._asked, name.replace("_", " "))


def answer_of(module: ModuleType, subject: Subject, request: Run | Read, reply: Capture | Files, host: Host) -> Answer:
    """Parse what came, and turn whatever went wrong into a reason."""
    said: Reply
    match request, reply:
        case Run(), Capture() as capture:
            text = command_line(request.argv)
            older = f"{text} ({', '.join(capture.lacks)})" if capture.lacks else ""
            if capture.fault == UNASKED:
                return Answer(Facts(), Unknown((unasked(text),)), unasked=text)
            if fault := fault_of(request, capture, text, host.euid):
                return Answer(Facts(), Unknown((fault,)))
            assert capture.exit is not None
            said = Output(
                decoded(capture.stdout), text, capture.exit, decoded(capture.stderr), capture.lacks, capture.columns
            )
            missing = unknown(f"{text}: does not report it", root_if(host, said.stderr))
            facts = {name.rpartition(".")[2] for name in module.FACTS}
            if any(_of_word(module, each) not in facts for each in capture.lacks):  # more than properties and columns
                missing = Unknown((unasked(older),))
        case Read(), Files() as said:
            text = request.patterns[0]
            engine = subject.name.partition(" ")[0]
            lost = tuple(f"{text} ({each})" for each in said.unkept if each.startswith((f"{engine} ", "$")))
            missing = unread(said._replace(unkept=lost), text, host)
            older = ", ".join(map(harmless, (*said.unasked(), *lost)[:1]))
            if older and not (said.text or said.links or said.devices):
                return Answer(Facts(), missing, unasked=older)
        case _:
            raise TypeError(f"{reply} is no answer to {request}")
    if too_much := bounds.over(said, getattr(module, "FORM", "text")):
        return Answer(Facts(), unknown(f"{text}: {too_much}"))
    try:
        found = Facts()
        found.put_all(module.parse(said, subject))
        found.put_all(list(_lacking(module, found, getattr(said, "lacks", ()), older)))
        return Answer(found, missing, unasked=older)
    except ValueError as error:  # what a parser says of an answer that it does not understand
        if older:  # it was understood by those who asked for less
            return Answer(Facts(), Unknown((unasked(older),)), unasked=older)
        why = harmless(str(error) or type(error).__name__)[:200]
        remedy = missing.reasons[0].remedy or root_if(host, why)
        return Answer(Facts(), unknown(f"{text}: {why if remedy else f'output not understood: {why}'}", remedy))
    except Exception as error:  # a mistake of ours, which must not end the audit of all the rest
        why = harmless(f"{type(error).__name__}: {error}")[:200]
        return Answer(Facts(), unknown(f"{text}: {DEFECT}{why}", REPORT_IT))


def _of_word(module: ModuleType, word: str) -> str:
    """What a property or column is called among the facts."""
    return str(getattr(module, "WORDS", {}).get(word, word))


def _lacking(module: ModuleType, found: Facts, lacks: Sequence[str], older: str) -> Iterator[Fact]:
    """The facts that an older question did not ask for, of all that its answer is about."""
    names = {_of_word(module, word) for word in lacks}
    why = Unknown((unasked(older),))
    for fact in module.FACTS if names else ():
        kind, _, bare = fact.rpartition(".")
        if bare in names:
            yield from (Fact(each, bare, why) for each in list(found.subjects(kind or module.SUBJECT)))


# -- the walk -------------------------------------------------------------------------------------------------------


def of(collectors: Mapping[str, ModuleType], per: str) -> list[str]:
    """Names of the collectors that are asked per this kind of subject."""
    return [name for name, module in collectors.items() if per == module.PER]


def read_host(gatherer: Gatherer, facts: Facts, inventory: Facts) -> None:
    """All files that are read once: releases, parameters, kstats, block devices. Starts no command.

    facts of block devices go to the inventory: a host has more of them than the audit is about.
    """
    first = [name for name in of(gatherer.collectors, "host") if _reads_only(gatherer.collectors[name], facts)]
    for name in first:
        gatherer.ask(name, [HOST], facts)
    gatherer.settle(facts, [name for name in first if not _about_disks(gatherer.collectors[name])])
    gatherer.settle(inventory, first)
    mounted.stand(facts)


def ask_host(gatherer: Gatherer, facts: Facts) -> None:
    """All commands that are run once; does not wait."""
    for name in of(gatherer.collectors, "host"):
        gatherer.ask(name, [HOST], facts)


def _reads_only(module: ModuleType, facts: Facts) -> bool:
    return isinstance(module.request(HOST, facts), Read)


def _about_disks(module: ModuleType) -> bool:
    return bool(module.SUBJECT == "disk")


def look_at_pools(
    gatherer: Gatherer,
    facts: Facts,
    inventory: Facts,
    roots: Sequence[Subject],
    imported: Sequence[str] = (),
) -> None:
    """The pools of the roots, the datasets under them, and then the disks behind the leaves, while slower answers still come
    in; last what the databases on them use elsewhere. imported: names of all pools of this host."""
    pools = tuple(dict.fromkeys(pool_of(root) for root in roots))
    _look_into(gatherer, facts, pools)
    for name in of(gatherer.collectors, "target"):
        gatherer.ask(name, roots, facts)
    others = [pool for name in imported if (pool := Subject("pool", name)) not in pools]
    for name in neighbours.COLLECTORS:
        gatherer.ask(name, others, facts)
    _settle_disks(gatherer, inventory)
    if why := gatherer.failure("dmsetup_table", HOST):  # what is stacked is not among the disks that fill() looks after
        inventory.put_all(Fact(disk, "dm_targets", why) for disk in list(inventory.subjects("disk")))
    gatherer.settle(facts, ["zpool_status", "zpool_status_paths"])
    for fact in zpool_status_paths.join(facts):
        facts.put(fact)
    for fact in blocks.links(facts, inventory):
        facts.put(fact)
    for disk in sorted({disk for leaf in facts.subjects("leaf") for disk in facts.linked(leaf, "disks")}):
        facts.add(disk)
        for name, value in inventory.of(disk).items():
            facts.put(Fact(disk, name, value))
    _ask_disks(gatherer, facts, pools)
    holders = _holders(gatherer, facts, inventory)
    paths = layers.Paths(gatherer.host.steady)
    facts.put_all(list(layers.below(facts, holders, paths)))
    database_walk.look_at(gatherer, facts, inventory)
    more = brought.along(facts, roots)
    pools = _bring(gatherer, facts, pools, more)
    gatherer.settle(facts)
    for fact in list(zpool_status_paths.adopt(facts)):
        facts.put(fact)
    for fact in datasets_of(gatherer, facts, pools, roots, tuple(more)):
        facts.put(fact)
    facts.put_all(list(layers.above(facts, holders)))
    facts.put_all(list(layers.keys(facts, holders, paths)))
    witnesses.compare(facts)
    fill(gatherer, facts)


def held(gatherer: Gatherer, facts: Facts, inventory: Facts, what: Mount | str) -> Place:
    """What holds a mount or a block device; waits until all block devices are known where it is not a dataset itself."""
    if isinstance(what, Mount) and what.fstype == "zfs":
        return Place((what.source,))
    _settle_disks(gatherer, inventory)
    holders = _holders(gatherer, facts, inventory)
    return holders.mount(what) if isinstance(what, Mount) else holders.device(what)


def _holders(gatherer: Gatherer, facts: Facts, inventory: Facts) -> Holders:
    if why := gatherer.failure("zfs_mounts", HOST):  # else it would be "not looked at" to those that ask next
        facts.put(Fact(HOST, "mount_table", why))
    return Holders(facts, inventory)


def _settle_disks(gatherer: Gatherer, inventory: Facts) -> None:
    gatherer.settle(
        inventory, [name for name in of(gatherer.collectors, "host") if _about_disks(gatherer.collectors[name])]
    )


def _look_into(gatherer: Gatherer, facts: Facts, pools: Sequence[Subject]) -> None:
    """These pools are audited."""
    for pool in pools:
        facts.add(pool)
    seen = (Evidence(", ".join(pool.name for pool in pools), "zpool list"),)
    facts.replace(Fact(HOST, "pools", Known(tuple(pools), seen)))
    for name in of(gatherer.collectors, "pool"):
        gatherer.ask(name, pools, facts)


def _ask_disks(gatherer: Gatherer, facts: Facts, pools: Sequence[Subject]) -> None:
    """All that is asked of the disks of these pools; of those of other pools what they are called, where nobody said it."""
    leaves = [leaf for leaf in facts.subjects("leaf") if pool_of(leaf) in pools]
    mine = {disk for leaf in leaves for disk in facts.linked(leaf, "disks")}
    disks = sorted(mine | {disk for disk in facts.subjects("disk") if neighbours.nameless(disk, facts)})
    for name in of(gatherer.collectors, "disk"):
        gatherer.ask(name, disks, facts)


def _bring(
    gatherer: Gatherer, facts: Facts, pools: tuple[Subject, ...], more: Mapping[Subject, str]
) -> tuple[Subject, ...]:
    """Look at datasets that were not named, each without those below it, and at their pools; all pools that are audited."""
    if not more:
        return pools
    pools = tuple(dict.fromkeys((*pools, *map(pool_of, more))))
    _look_into(gatherer, facts, pools)
    _ask_disks(gatherer, facts, pools)
    names = of(gatherer.collectors, "target")
    gatherer.settle(facts, names)
    for dataset, why in more.items():
        facts.put(Fact(dataset, "brought", Known(why, (Evidence(why),))))
    for name in names:
        gatherer.ask(name, more, facts)
    told = Facts()  # of what is below them, too
    gatherer.settle(told, names)
    wanted = {name for each in more for name in (each.name, *above(each.name))}
    facts.put_all(each for each in told if each.subject.name in wanted)
    return pools


def datasets_of(
    gatherer: Gatherer, facts: Facts, pools: Sequence[Subject], roots: Sequence[Subject], more: Sequence[Subject] = ()
) -> Iterator[Fact]:
    """pool.datasets: what is audited of each pool; unknown when one of its roots could not be listed. more: that were not
    named, each alone: one that could not be looked at is there, and undecided."""
    every = sorted({*facts.subjects("dataset"), *more})
    for pool in pools:
        mine = [root for root in roots if pool_of(root) == pool]
        failures = [why for root in mine if not facts.of(root) and (why := gatherer.failure("zfs_get", root))]
        alone = {each for each in more if pool_of(each) == pool}
        inside = tuple(each for each in every if each in alone or any(covers(root, each) for root in mine))
        words = " ".join(shlex.quote(root.name) for root in (*mine, *alone))
        seen = Evidence(f"{len(inside)} datasets", f"zfs list {'-r ' if mine else ''}{words}")
        yield Fact(pool, "datasets", join(failures) if failures else Known(inside, (seen,)))


def pool_of(subject: Subject) -> Subject:
    """The pool that a dataset, vdev, leaf or pool belongs to."""
    return Subject("pool", subject.within or subject.name.partition("/")[0])


def covers(root: Subject, dataset: Subject) -> bool:
    """Whether a dataset is the root or below it."""
    return dataset.name == root.name or dataset.name.startswith(root.name + "/")


def fill(gatherer: Gatherer, facts: Facts) -> None:
    """Every fact that a collector could have given and did not becomes Unknown, with that collector's reason.

    Where several could have given it, the reason of one that applies to the subject is the better one.
    """
    roots = [subject for name, subject in gatherer.answers if gatherer.collectors[name].PER == "target"]
    sources: dict[Kind, dict[str, list[str]]] = {}  # kind -> collector -> facts
    for name, module in gatherer.collectors.items():
        for fact in module.FACTS:
            kind, _, bare = fact.rpartition(".")
            sources.setdefault(cast(Kind, kind or module.SUBJECT), {}).setdefault(name, []).append(bare)
    for of_kind, names_of in sources.items():
        pers = dict.fromkeys(gatherer.collectors[name].PER for name in names_of)
        known: dict[tuple[Subject, ...], list[tuple[Unknown, list[str]]]] = {}  # of all datasets below one root alike
        for subject in [HOST] if of_kind == "host" else list(facts.subjects(of_kind)):
            asked = {per: _asked(per, subject, roots) for per in pers}
            if (reasons := known.get(key := tuple(asked.values()))) is None:
                reasons = known[key] = _reasons(gatherer, names_of, asked)
            present = facts.of(subject)
            for reason, names in reasons:
                if missing := [each for each in names if each not in present]:
                    facts.put_all(Fact(subject, each, reason) for each in missing)


def _reasons(
    gatherer: Gatherer, names_of: Mapping[str, list[str]], asked: Mapping[str, Subject]
) -> list[tuple[Unknown, list[str]]]:
    """(why its facts are not known, their names) of each collector, those that apply first. asked: by PER."""
    found = []
    for name, names in names_of.items():
        answer = gatherer.answers.get((name, asked[gatherer.collectors[name].PER]))
        why = (answer.failure if answer else None) or unknown(f"{name.replace('_', ' ')} was not asked")
        found.append((not (answer and answer.applies), why, names))
    return [(why, names) for _, why, names in sorted(found, key=lambda each: each[0])]


def _asked(per: str, subject: Subject, roots: list[Subject]) -> Subject:
    """The subject that a collector was asked about to learn of this one."""
    match per:
        case "host":
            return HOST
        case "pool":
            return pool_of(subject)
        case "target":
            inside = (root for root in roots if covers(root, subject) or covers(subject, root))
            return max(inside, key=lambda root: len(root.name), default=subject)
        case _:
            return subject
