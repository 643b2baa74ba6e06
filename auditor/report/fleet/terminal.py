"""Many hosts on a terminal: one page, the worst first; what does not fit on it is counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from auditor.report.fleet import words
from auditor.report.fleet.counting import Fleet, Line
from auditor.report.terminal import LOOKS as STYLES
from auditor.report.terminal import Hanging, printed

NAME = "terminal"
SHOWN, FEW = 8, 5
STYLE = {"bad": "bold red", "open": "bold yellow", "good": "bold green"}
SHORT = {"one failure away": "1 failure", "cannot tell": "unknown", "on the word": "word"}  # 10 columns
Entry = tuple[str, str, str]  # word in the margin, its style, and what it says


def render(fleet: Fleet, *, width: int = 100, color: bool = False, ascii_only: bool = False) -> str:
    """The whole text."""
    return printed(_parts(fleet), width=width, color=color, ascii_only=ascii_only)


def _parts(fleet: Fleet) -> Iterator[RenderableType]:
    yield Text(words.headline(fleet), STYLE[words.kind(fleet)])
    yield Text(words.span(fleet), "dim")
    yield from _section("How they stand", [(f"{count:,}", "bold", words.SAYS[name]) for name, count in
                                           fleet.standings.items()], len(words.SAYS))  # fmt: skip
    yield from _section("Not judged, or missing", list(_absent(fleet)), FEW)
    yield from _section(words.WORST, list(map(_alike, words.alike(fleet))))
    yield from _news(fleet)
    yield from _section("Rules by hosts", [
        (*_word(line), f"{rule}  {words.on(line)}: {line.title}") for rule, line in words.lines(fleet.rules)
    ])  # fmt: skip
    yield from _section("Drive models by finding", [
        (*_word(line), f"{model}  {rule}: {words.on(line)}") for model, rule, line in words.pairs(fleet.models)
    ], FEW)  # fmt: skip
    yield from _section("Releases by advisory", [
        (*_word(line), f"OpenZFS {release}  {rule}: {words.on(line)}") for release, rule, line in words.pairs(fleet.advisories)
    ], FEW)  # fmt: skip
    yield from _section("What would decide the rest", [
        (words.hosts(len(line.open)), "bold", words.needs(remedy, line)) for remedy, line in words.remedies(fleet)
    ])  # fmt: skip
    worst = next((line for host in fleet.hosts if (line := words.replay(host))), "")
    if worst and words.kind(fleet) != "good":
        yield Text()
        yield Text(f"Next: {worst}")


def _news(fleet: Fleet) -> Iterator[RenderableType]:
    if fleet.news:
        fresh = [(each.severity, STYLES[each.severity], f"{each.rule}  {words.hosts(len(names))}: {words.names(names)}")
                 for each, names in words.fresh(fleet)]  # fmt: skip
        yield from _section("New since then", fresh, heads=words.news(fleet))


def _absent(fleet: Fleet) -> Iterator[Entry]:
    missing = [each.name for each in fleet.absent if each.kind == "missing"]
    if missing:
        yield "missing", "bold magenta", f"{words.hosts(len(missing))}: {words.names(missing)}"
    yield from ((word, "bold magenta", said) for word, said in words.absent(fleet) if word != "missing")


def _word(line: Line) -> tuple[str, str]:
    word = line.severity if line.failed else "undecided"
    return word, STYLES[word]


def _alike(group: words.Alike) -> Entry:
    word = SHORT.get(group.standing, group.standing)
    style = "bold red" if group.standing in words.BAD else "bold yellow"
    names = [host.seen.name for host in group.hosts]
    first = f"{words.hosts(len(names))}  {words.grave(group)}: {words.names(names)}"
    return word, style, first if len(names) > 1 else f"{names[0]}  {words.counts(group.hosts[0])}: {words.grave(group)}"


def _section(
    title: str, entries: Sequence[Entry], most: int = SHOWN, heads: Iterable[str] = ()
) -> Iterator[RenderableType]:
    """A title and the first entries; nothing where there are none."""
    said = list(heads)
    if not entries and not said:
        return
    yield Text()
    yield Text(title, "bold")
    for sentence in said:
        yield Hanging(Text("  "), Text(sentence), 2)
    for word, style, text in entries[:most]:
        yield Hanging(Text.assemble("  ", (word.rjust(10), style), "  "), Text(text), 14)
    if len(entries) > most:
        yield Hanging(Text(" " * 14), Text(f"and {len(entries) - most:,} more", "dim"), 14)
