"""``zfs get`` that is asked again of some datasets by their names: of all where it was given up, and of those about which it
contradicts itself.

zfs opens all datasets below its argument before it prints the first row (OpenZFS cmd/zfs/zfs_iter.c zfs_for_each(), alike from
2.1 to 2.4): one that is given up has said nothing, of thousands of datasets as of one. With names and without -r it opens those
alone. The dataset at the top is asked about first, which says whether anything answers; then twice as many with each command,
those nearest to the top before those below them. So what is lost when the time is over is no more than what was answered, and
which command comes next depends on the answers alone: a recording holds them all.

A value that others choose may hold lines that look like rows of any dataset (:mod:`auditor.sources.zfs`). In the
answer about one dataset alone they are its own, whatever they name. So those are asked about one by one that are contradicted,
and one that contradicts itself even then is asked for the other properties. Of an answer that was given up the lines that would
contradict may be missing: it counts for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence

from auditor.facts import Facts, Subject
from auditor.host.request import Capture, Output, Run
from auditor.sources import zfs
from auditor.text import harmless

RECURSIVE = "-r"
COLUMNS = "-o"  # behind it stand the columns, the properties and the names
MOST = 128  # datasets of one command: 32 KiB of names, and a process for so many costs nothing
ALONE = 64  # datasets that are asked about one by one: a mount point of 4 KiB can name as many
LATE = "no answer"  # how the fault begins of a command that had its time
CONTRADICTED = ("the rows", "contradict each other")
SEVERAL = ("a value", "has several lines, which are taken for no rows")
BEFORE_DEADLINE = f"{LATE} before"


class ByName:
    """One question that is asked again. of: how many datasets there are, 0 while nobody knows; put: how many of them were
    asked about."""

    def __init__(self, request: Run, reply: Capture) -> None:
        self._request = request
        self._late = reply._replace(stdout=b"") if request.free_text and reply.fault else reply
        self._said: list[Capture] = []
        self._contradicted: dict[str, None] = {}
        self._several: dict[str, None] = {}
        self._why = ""
        self.of = self.put = 0

    def steps(self) -> Generator[Run, Capture, Capture]:
        """What to ask next, until it returns the answer to the question: as if it had answered, where it did of all datasets;
        else why not, with what was said of the others."""
        if _late(self._request, self._late):
            reply = yield from self._in_groups()
        else:
            reply = self._believed(self._late, _named(self._request))
        return (yield from self._one_by_one(reply)) if self._contradicted else reply

    def _in_groups(self) -> Generator[Run, Capture, Capture]:
        target = self._request.argv[-1]
        first = yield self._about((target,))
        if first.fault or first.exit != 0:  # then nothing else will be answered
            return self._late
        self._heard(first, (target,))
        question = zfs.datasets.request(Subject("dataset", target), Facts())
        assert isinstance(question, Run)
        listed = yield question
        names = _names(listed, target)
        if names is None:
            self._why = f"the names of those below it: {harmless(listed.fault) or 'not understood'}"
            return self._answer()
        self.of = 1 + len(names)
        yield from self._all(names)
        return self._answer()

    def _all(self, names: Sequence[str]) -> Generator[Run, Capture, None]:
        at, many, most, silent = 0, 2, MOST, False
        while at < len(names):
            reply = yield self._about(some := tuple(names[at : at + many]))
            if _whole(reply):
                self._heard(reply, some)
                at, many, silent = at + len(some), min(2 * many, most), False
                continue
            over = not reply.fault.startswith(LATE) or reply.fault.startswith(BEFORE_DEADLINE)
            if many > 1 and not over:
                many = most = max(many // 4, 1)
                continue
            self._why = reply.fault or f"exit code {reply.exit}"
            if over or silent:  # one that is not answered is left out; after two in a row nothing would be
                return
            at, silent = at + 1, True

    def _one_by_one(self, reply: Capture) -> Generator[Run, Capture, Capture]:
        rows = [reply.stdout]
        for name in list(self._contradicted)[:ALONE]:
            own = yield self._about((name,))
            if own.fault:
                continue
            del self._contradicted[name]
            rows.append(self._believed(own, {name}.__contains__).stdout)  # nothing of one that is not there
            if name in self._contradicted and (rest := self._without_free_text()):
                other = yield self._about((name,), rest)
                rows.append(other.stdout if _whole(other) else b"")
        why = [
            f"{text[0]} of {_some(names)} {text[1]}"
            for names, text in ((self._contradicted, CONTRADICTED), (self._several, SEVERAL))
            if names
        ]
        return reply._replace(stdout=b"".join(rows), fault=reply.fault or "; ".join(why))

    def _about(self, names: Sequence[str], properties: str = "") -> Run:
        *words, all_properties = _words(self._request)
        kept = (word for word in words if word != RECURSIVE)
        return self._request._replace(argv=(*kept, properties or all_properties, *names), halved=False)

    def _without_free_text(self) -> str:
        """The other properties; empty where there is only the one that ends a dataset."""
        names = _words(self._request)[-1].split(",")
        others = [name for name in names if name not in zfs.FREE_TEXT]
        return ",".join(others) if len(others) > 1 else ""

    def _heard(self, reply: Capture, names: Sequence[str]) -> None:
        """zfs names each dataset that it could not open, as one that was destroyed meanwhile, and says the rest."""
        self._said.append(self._believed(reply, frozenset(names).__contains__))
        self.put += len(names)
        if reply.exit != 0:
            self._why = harmless(reply.stderr.decode("utf-8", "replace").strip().partition("\n")[0])[:200]

    def _believed(self, reply: Capture, named: Callable[[str], bool]) -> Capture:
        """The same with the rows alone that nothing in it contradicts. Values of several lines are left out: beside those of
        other answers they could be taken for rows again."""
        if not self._request.free_text:
            return reply
        every, contradicted = _records(reply, named)
        self._contradicted |= dict.fromkeys(sorted(contradicted))
        plain = {name: mine for name, mine in every.items() if name not in contradicted}
        several = {name: None for name, mine in plain.items() if any("\n" in row for _, row in mine)}
        self._several |= several
        rows = (f"{name}\t{row}\n" for name, mine in plain.items() for _, row in mine if "\n" not in row)
        return reply._replace(stdout="".join(rows).encode("utf-8", "surrogateescape"))

    def _answer(self) -> Capture:
        rows = b"".join(each.stdout for each in self._said)
        seconds = sum(each.seconds for each in (self._late, *self._said))
        if not self._why and self.put == self.of:
            return self._said[0]._replace(stdout=rows, seconds=seconds)
        of = f" of {self.of:,}" if self.of else ""
        fault = f"{self._late.fault}; by name {self.put:,}{of} were asked about: {self._why}"
        return self._late._replace(stdout=max(rows, self._late.stdout, key=len), seconds=seconds, fault=fault)


def wanted(request: Run, reply: Capture) -> bool:
    if not request.free_text:
        return _late(request, reply)
    return bool(reply.fault) or (reply.exit == 0 and bool(_records(reply, _named(request))[1]))


def _late(request: Run, reply: Capture) -> bool:
    """Whether it had its time, and there is more of it."""
    return request.halved and reply.fault.startswith(LATE) and not reply.fault.startswith(BEFORE_DEADLINE)


def _some(names: Iterable[str]) -> str:
    first, *more = map(harmless, names)
    return f"{first} and {len(more):,} more" if more else first


def _words(request: Run) -> tuple[str, ...]:
    """A question without the names of datasets."""
    return request.argv[: request.argv.index(COLUMNS) + 3]


def _named(request: Run) -> Callable[[str], bool]:
    names = request.argv[len(_words(request)) :]
    if RECURSIVE in request.argv:
        return lambda name: name == names[0] or name.startswith(names[0] + "/")
    return frozenset(names).__contains__


def _records(reply: Capture, named: Callable[[str], bool]) -> tuple[dict[str, list[tuple[str, str]]], set[str]]:
    """As zfs_properties.records(); nothing of what is not understood."""
    try:
        return zfs.records(reply.stdout.decode("utf-8", "surrogateescape"), named)
    except ValueError:
        return {}, set()


def _whole(reply: Capture) -> bool:
    """Whether it ended by itself, with a record that is whole: with 1 where it could not open some (cmd/zfs/zfs_main.c)."""
    return not reply.fault and reply.exit in (0, 1) and reply.stdout[-1:] in (b"", b"\n")


def _names(listed: Capture, target: str) -> list[str] | None:
    """All below the target, those nearest to it first; None where they could not be listed."""
    if listed.fault or listed.exit != 0:
        return None
    said = Output(listed.stdout.decode("utf-8", "surrogateescape"), "")
    try:
        every = {fact.subject.name: None for fact in zfs.datasets.parse(said, Subject("dataset", target))}
    except ValueError:
        return None
    return sorted((name for name in every if name != target), key=lambda name: name.count("/"))
