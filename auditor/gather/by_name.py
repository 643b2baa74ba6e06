"""``zfs get -r`` that was given up: its properties again, of some datasets at a time by their names.

zfs opens all datasets below its argument before it prints the first row (OpenZFS cmd/zfs/zfs_iter.c zfs_for_each(), alike from
2.1 to 2.4): one that is given up has said nothing, of thousands of datasets as of one. With names and without -r it opens those
alone. The dataset at the top is asked about first, which says whether anything answers; then twice as many with each command,
those nearest to the top before those below them. So what is lost when the time is over is no more than what was answered, and
which command comes next depends on the answers alone: a recording holds them all.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from auditor.collect import zfs_list
from auditor.facts import Facts, Subject
from auditor.host.request import Capture, Output, Run
from auditor.text import harmless

RECURSIVE = "-r"
MOST = 128  # datasets of one command: 32 KiB of names, and a process for so many costs nothing
LATE = "no answer"  # how the fault begins of a command that had its time
BEFORE_DEADLINE = f"{LATE} before"


class ByName:
    """One question that is asked again. of: how many datasets there are, 0 while nobody knows; put: how many of them were
    asked about."""

    def __init__(self, request: Run, late: Capture) -> None:
        self._request, self._late = request, late
        self._said: list[Capture] = []
        self._why = ""
        self.of = self.put = 0

    def steps(self) -> Generator[Run, Capture, Capture]:
        """What to ask next, until it returns the answer to the question: as if it had answered, where it did of all datasets;
        else why not, with what was said of the others."""
        target = self._request.argv[-1]
        first = yield self._about((target,))
        if first.fault or first.exit != 0:  # then nothing else will be answered
            return self._late
        self._heard(first, 1)
        question = zfs_list.request(Subject("dataset", target), Facts())
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
                self._heard(reply, len(some))
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

    def _about(self, names: Sequence[str]) -> Run:
        words = (word for word in self._request.argv[:-1] if word != RECURSIVE)
        return self._request._replace(argv=(*words, *names), halved=False)

    def _heard(self, reply: Capture, count: int) -> None:
        """zfs names each dataset that it could not open, as one that was destroyed meanwhile, and says the rest."""
        self._said.append(reply)
        self.put += count
        if reply.exit != 0:
            self._why = harmless(reply.stderr.decode("utf-8", "replace").strip().partition("\n")[0])[:200]

    def _answer(self) -> Capture:
        rows = b"".join(each.stdout for each in self._said)
        seconds = sum(each.seconds for each in (self._late, *self._said))
        if not self._why and self.put == self.of:
            return self._said[0]._replace(stdout=rows, seconds=seconds)
        of = f" of {self.of:,}" if self.of else ""
        fault = f"{self._late.fault}; by name {self.put:,}{of} were asked about: {self._why}"
        return self._late._replace(stdout=max(rows, self._late.stdout, key=len), seconds=seconds, fault=fault)


def wanted(request: Run, reply: Capture) -> bool:
    """Whether a question is to be asked again so."""
    return request.halved and reply.fault.startswith(LATE) and not reply.fault.startswith(BEFORE_DEADLINE)


def _whole(reply: Capture) -> bool:
    """Whether it ended by itself, with a record that is whole: with 1 where it could not open some (cmd/zfs/zfs_main.c)."""
    return not reply.fault and reply.exit in (0, 1) and reply.stdout[-1:] in (b"", b"\n")


def _names(listed: Capture, target: str) -> list[str] | None:
    """All below the target, those nearest to it first; None where they could not be listed."""
    if listed.fault or listed.exit != 0:
        return None
    said = Output(listed.stdout.decode("utf-8", "surrogateescape"), "")
    try:
        every = {fact.subject.name: None for fact in zfs_list.parse(said, Subject("dataset", target))}
    except ValueError:
        return None
    return sorted((name for name in every if name != target), key=lambda name: name.count("/"))
