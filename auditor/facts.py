"""Facts: known with evidence, or unknown with reasons. Every stage of zaudit speaks these words and no others.

A fact belongs to a subject and has a name. Its value is either :class:`Known` or :class:`Unknown`; there is no None,
no "N/A" and no default 0, so that a hole in what was seen can never look like a good value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, NoReturn, TypeGuard, TypeVar

Kind = Literal["host", "pool", "vdev", "leaf", "disk", "dataset", "database", "run", "waiver"]
R = TypeVar("R", bound="Row")
KINDS: tuple[Kind, ...] = ("host", "pool", "vdev", "leaf", "disk", "dataset", "database", "run", "waiver")


class Subject(NamedTuple):
    """What a fact is about.

    kind: vdev is a top-level vdev, disk the physical device behind a leaf, dataset a file system or zvol, run one of fio,
    waiver one of a policy. name: as the source spells it. within: the pool of a vdev or leaf, otherwise empty."""

    kind: Kind
    name: str
    within: str = ""

    def __str__(self) -> str:
        return f"{self.within} {self.name}" if self.within else self.name


HOST = Subject("host", "host")
DATA = ("normal", "special", "dedup")  # allocation classes without which a pool does not work

Scalar = bool | int | float | str
Row = tuple[Scalar, ...]  # of a table: a named tuple of the source that gives it
Value = Scalar | Subject | tuple[Scalar, ...] | tuple[Subject, ...] | tuple[Row, ...]


class Evidence(NamedTuple):
    """How a value is known.

    text: the value as a reader recognises it ("sync=disabled, inherited from tank"). command: repeats the observation;
    ``{subject}`` stands for the quoted name, so that thousands of datasets share one Evidence. origin: the dataset that
    sets a property."""

    text: str
    command: str = ""
    origin: str = ""


AGAIN = "record again"  # the remedy where a recording was made before the question was known
ROOT = "run as root"
_RETRY = frozenset({AGAIN, ROOT, "--timeout", "--deadline"})


class Reason(NamedTuple):
    """Why something is not known.

    text: one sentence that names the command or path. remedy: what lets zaudit see it ("run as root"), or empty. lost: an
    answer exists, and did not arrive."""

    text: str
    remedy: str = ""
    lost: bool = False

    @property
    def transient(self) -> bool:
        """The next run may have an answer: the question timed out, was refused or is not in the recording."""
        return self.lost or self.remedy in _RETRY


class Known(NamedTuple):
    """A value that was seen, or derived from values that were seen, with all the evidence for it."""

    value: Value
    evidence: tuple[Evidence, ...]

    def need(self) -> Known:
        """It itself, or Missing."""
        return self

    def or_none(self) -> object:
        """The value; None where it is not known."""
        return self.value

    def word(self, otherwise: str = "") -> str:
        """The value as text; of what is not known something else."""
        return str(self.value)

    def words(self) -> tuple[str, ...]:
        """The texts of a tuple; none where it is not known."""
        return tuple(map(str, self.value)) if isinstance(self.value, tuple) else ()

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """(name, value) of the texts of a tuple of NAME=VALUE, where a value never holds "="; none where it is not known."""
        return tuple((name, value) for name, _, value in (each.rpartition("=") for each in self.words()))

    def rows(self, row: type[R]) -> tuple[R, ...]:
        """The rows of a table; none where it is not known."""
        return tuple(each for each in self.value if isinstance(each, row)) if isinstance(self.value, tuple) else ()

    def number(self) -> int:
        """The whole number; that it is one, the ``Spec`` of the fact says."""
        assert isinstance(self.value, int)
        return self.value


class Unknown(NamedTuple):
    """Not known, for these reasons (at least one). What is asked of a value that may be missing has no answer."""

    reasons: tuple[Reason, ...]

    @staticmethod
    def join(unknowns: Iterable[Unknown]) -> Unknown:
        """All the reasons, each once, in the order in which they came. Needs at least one unknown."""
        reasons = tuple(dict.fromkeys(reason for each in unknowns for reason in each.reasons))
        if not reasons:
            raise ValueError("join() of no unknowns")
        return Unknown(reasons)

    def need(self) -> NoReturn:
        raise Missing(self)

    def or_none(self) -> object:
        return None

    def word(self, otherwise: str = "") -> str:
        return otherwise

    def words(self) -> tuple[str, ...]:
        return ()

    def pairs(self) -> tuple[tuple[str, str], ...]:
        return ()

    def rows(self, row: type[R]) -> tuple[R, ...]:
        return ()


Judged = Known | Unknown


class Fact(NamedTuple):
    """What a parser or a derivation yields: one named value of one subject."""

    subject: Subject
    name: str
    value: Judged


def known(value: Value, text: str, command: str = "", origin: str = "") -> Known:
    """A value with one piece of evidence."""
    return Known(value, (Evidence(text, command, origin),))


def unknown(text: str, remedy: str = "") -> Unknown:
    """An unknown with one reason."""
    return Unknown((Reason(text, remedy),))


# -- what something else needs: known, or Missing ---------------------------------------------------------------------


class Missing(Exception):
    """Something that is needed is not known. why: the reasons."""

    def __init__(self, why: Unknown) -> None:
        super().__init__(why)
        self.why = why


def every(judged: Iterable[Judged]) -> list[Known]:
    """All of them, or Missing with the reasons of each that is not known."""
    known: list[Known] = []
    unknowns: list[Unknown] = []
    for each in judged:
        if isinstance(each, Known):
            known.append(each)
        else:
            unknowns.append(each)
    if unknowns:
        raise Missing(Unknown.join(unknowns))
    return known


# -- a detail that may be missing: what is decided rests on Known and Unknown, not on these ---------------------------


def is_true(found: Judged) -> TypeGuard[Known]:
    return isinstance(found, Known) and found.value is True


# -- what facts exist ---------------------------------------------------------------------------------------------


class Spec(NamedTuple):
    """What a fact is: its type, its meaning, and the values of a closed set.

    type: bool, int, float, str, tuple (of scalars) or Subject (a link). kind: of the subjects that a link leads to. many: a
    link to several. nonempty: a link to nothing is a hole in what was seen. none_tells: any() of no subjects is an answer.
    tallied: texts NAME=TIMES, shown as "NAME (3 times)". row: the class of the rows of a table."""

    type: type
    text: str
    values: tuple[str, ...] = ()
    kind: Kind | None = None
    many: bool = False
    nonempty: bool = False
    none_tells: bool = False
    tallied: bool = False
    row: Any = None

    @classmethod
    def flag(cls, text: str) -> Spec:
        return cls(bool, text)

    @classmethod
    def number(cls, text: str) -> Spec:
        """An integer: a count, or in the unit that the name or the text says (bytes unless said otherwise)."""
        return cls(int, text)

    @classmethod
    def real(cls, text: str) -> Spec:
        return cls(float, text)

    @classmethod
    def word(cls, text: str, *values: str) -> Spec:
        """A string; with values, one of a closed set: a rule that compares it with another word is an error at load."""
        return cls(str, text, values)

    @classmethod
    def words(cls, text: str) -> Spec:
        """A tuple of strings or numbers (versions are tuples of integers)."""
        return cls(tuple, text)

    @classmethod
    def tally(cls, text: str) -> Spec:
        return cls(tuple, text, tallied=True)

    @classmethod
    def rows(cls, row: Any, text: str) -> Spec:
        """A table: what others have named is in a column of its own, and nobody takes it apart."""
        return cls(tuple, text, row=row)

    @classmethod
    def link(cls, kind: Kind, text: str) -> Spec:
        return cls(Subject, text, kind=kind)

    @classmethod
    def links(cls, kind: Kind, text: str, *, nonempty: bool = False, none_tells: bool = False) -> Spec:
        return cls(Subject, text, kind=kind, many=True, nonempty=nonempty, none_tells=none_tells)


# -- the store ----------------------------------------------------------------------------------------------------


class Facts:
    """All facts of one audit. A fact that nobody stored is Unknown, never absent."""

    def __init__(self, now: float = 0.0) -> None:
        """now: seconds since the epoch at which the host was looked at (of the recording, when replayed)."""
        self.now = now
        self.derive: Callable[[Subject, str], None] | None = None  # puts what is asked for and not there, if it can
        self._facts: dict[Subject, dict[str, Judged]] = {}

    def __iter__(self) -> Iterator[Fact]:
        return (Fact(subject, name, value) for subject, own in self._facts.items() for name, value in own.items())

    def copy(self, without: Collection[tuple[Kind, str]] = ()) -> Facts:
        """The same subjects and facts, without some of these names."""
        left_out = {kind: {name for of, name in without if of == kind} for kind in KINDS}
        copy = Facts(self.now)
        copy._facts = {
            subject: {name: value for name, value in own.items() if name not in names} if names else dict(own)
            for subject, own in self._facts.items()
            for names in (left_out[subject.kind],)
        }
        return copy

    def add(self, subject: Subject) -> None:
        self._facts.setdefault(subject, {})

    def put(self, fact: Fact) -> None:
        """Store a fact. What is known stays: the first source that knew it is the one that counts."""
        self.put_all((fact,))

    def put_all(self, facts: Iterable[Fact]) -> None:
        """Store many facts, in the order in which they come."""
        last: Subject | None = None
        for subject, name, value in facts:
            if subject is not last:  # they come subject by subject, 600,000 of a host with 10,000 datasets
                last, own = subject, self._facts.setdefault(subject, {})
            if not isinstance(own.get(name), Known):
                own[name] = value

    def put_of(self, subject: Subject, values: Mapping[str, Judged]) -> None:
        own = self._facts.setdefault(subject, {})
        own |= (
            {name: value for name, value in values.items() if not isinstance(own.get(name), Known)} if own else values
        )

    def merge(self, others: Facts, *, adds: bool = True) -> None:
        """Store all facts of another store, which is not to be used any more; adds: also those of subjects that are new."""
        for subject, facts in others._facts.items():
            if not adds and subject not in self._facts:
                continue
            own = self._facts.setdefault(subject, facts)
            if own is not facts:
                own |= {name: value for name, value in facts.items() if not isinstance(own.get(name), Known)}

    def replace(self, fact: Fact) -> None:
        self._facts.setdefault(fact.subject, {})[fact.name] = fact.value

    def get(self, subject: Subject, name: str) -> Judged:
        """The fact, or Unknown when nothing was stored."""
        facts = self._facts.get(subject)
        if facts is None:
            return unknown(f"nothing is known of {subject.kind} {subject}")
        if (found := facts.get(name)) is None and self.derive:
            self.derive(subject, name)
            found = facts.get(name)
        return found if found is not None else unknown(f"{subject.kind} {subject}: {name} was not looked at")

    def need(self, subject: Subject, name: str) -> Known:
        """The fact, or Missing."""
        return self.get(subject, name).need()

    def values(self, subject: Subject, *names: str) -> list[Known]:
        """These facts of a subject, in order, or Missing with the reasons of each that is not known."""
        return every(self.get(subject, name) for name in names)

    def need_linked(self, subject: Subject, name: str) -> tuple[Subject, ...]:
        """The subjects behind a link, or Missing."""
        self.need(subject, name)
        return self.linked(subject, name)

    def of(self, subject: Subject) -> Mapping[str, Judged]:
        return self._facts.get(subject, {})

    def subjects(self, kind: Kind) -> Iterator[Subject]:
        """All subjects of a kind that there are now, in the order in which they were found."""
        return iter([subject for subject in self._facts if subject.kind == kind])

    def linked(self, subject: Subject, name: str) -> tuple[Subject, ...]:
        """The subjects behind a link; none when the link is unknown (ask :meth:`get` for the reasons)."""
        match self.get(subject, name):
            case Known(Subject() as one):
                return (one,)
            case Known(tuple() as many):
                return tuple(each for each in many if isinstance(each, Subject))
            case _:
                return ()
