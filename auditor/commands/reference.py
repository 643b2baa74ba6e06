"""Reference: the rules, drives by model, completion, and the proof that nothing passes by what was not seen."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.shell_completion import CompletionItem

from auditor import EXIT_BROKE, Stop, codec, data
from auditor.commands import _options
from auditor.commands._options import SEVERITIES
from auditor.facts import KINDS
from auditor.interrupt import progress
from auditor.judge.event import EVENTS
from auditor.report import document as doc
from auditor.screen import ascii_only, on_a_terminal, say, width
from auditor.text import harmless, near

if TYPE_CHECKING:
    from auditor.data.drives import Drive, Shingled
    from auditor.selftest import Row


@click.command(short_help="List the rules.")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option(
    "--severity", type=click.Choice(SEVERITIES), multiple=True, help="Only those of this severity (repeat for more)."
)
@click.option(
    "--subject",
    type=click.Choice(KINDS),
    multiple=True,
    help="Only those that judge this kind of thing (repeat for more).",
)
@_options.formats
@_options.folders
def rules(
    words: tuple[str, ...], severity: tuple[str, ...], subject: tuple[str, ...], format_: str, folders: tuple[Path, ...]
) -> None:
    """List the rules of a check with severity, subject and title: all of them, worst first, or those that speak of every WORD,
    best first: a setting, a property, a parameter, a command, a symptom.
    Known bugs of releases are one rule; a WORD lists them, too. --subject run lists the rules of zaudit verify."""
    from auditor import rulebook
    from auditor.report import rule_page

    everything = rulebook.load(folders, examples=format_ == "json")
    if words:
        everything = rule_page.find(everything, words)
    found = [
        rule
        for rule in everything
        if (rule.head is None or words)  # the entries of a table are one rule; each can be found by its words
        and (not severity or rule.gravest in severity)
        and (not subject or rule.subject in subject)
    ]
    shown = [rule for rule in found if subject or not rule.of_verify]
    if format_ == "json":
        say(rule_page.as_json(shown))
    else:
        columns = width() if on_a_terminal() else None
        say(rule_page.as_table(shown, columns, len(found) - len(shown), ranked=bool(words)))


# ``zaudit explain``: one rule or one event as a page, and what speaks of a word.


RULES_SHOWN = 10  # rules that speak of a word


@click.command(short_help="Explain a rule or event, or find rules by setting or symptom.")
@click.argument("words", metavar="[ID | WORD]...", nargs=-1, shell_complete=_options.rule_ids)
@click.option("--event", type=click.Choice(EVENTS), help="How zaudit judges what this event would cost.")
@click.option("--questions", is_flag=True, help="The questions that people ask most, each with its answer.")
@_options.folders
def explain(words: tuple[str, ...], event: str | None, questions: bool, folders: tuple[Path, ...]) -> None:
    """Show what rule ID checks, why it matters, how to fix it, its sources and its examples.

    WORD is what you know it by: a setting (full_page_writes), a property (logbias), a parameter (zfs_nocacheflush), a command,
    a symptom (torn page) or jargon (slog, plp). The rules and questions that speak of it are listed, best first.

    With --event: what an event costs, and the rules that decide it.
    """
    from auditor import rulebook
    from auditor.report import rule_page

    if (bool(words), event is not None, questions).count(True) != 1:
        raise click.UsageError("give the ID of a rule (zaudit rules lists them), a WORD, --event or --questions")
    if questions:
        say(rule_page.text(width()))
    elif event:
        say(rule_page.event_page(next(each for each in EVENTS if each == event), rulebook.load(folders), width()))
    else:
        say(_of_words(words, folders))


def _of_words(words: Sequence[str], folders: Sequence[Path]) -> str:
    """The page of the rule of this name, the word for a retired one, or the questions and rules that speak of the words."""
    from auditor import rulebook
    from auditor.judge import policy
    from auditor.report import rule_page

    name, rules = " ".join(words), rulebook.load(folders, examples=False)
    ids = [rule.id for rule in rules]
    if retired := policy.retired_by(name, ids):
        return "\n".join(retired)
    if name in ids:
        return _rule_page(name, folders)
    found, asked = rule_page.find(rules, words), rule_page.questions(words)
    if not found and not asked:
        raise policy.PolicyError(
            f"no rule {name!r}, and none speaks of it{rule_page.similar(rules, words)} (zaudit rules lists them)"
        )
    if len(found) == 1 and not asked:
        return _rule_page(found[0].id, folders)
    parts = [rule_page.short(each, width()) for each in asked]
    if name in EVENTS:
        parts.append(f"zaudit explain --event {name}: what this event costs\n")
    if found:
        more = f"{len(found) - RULES_SHOWN} more: zaudit rules {name}\n" if len(found) > RULES_SHOWN else ""
        parts.append(rule_page.as_table(found[:RULES_SHOWN], width(), ranked=True) + more)
    return "\n".join(parts)


def _rule_page(id: str, folders: Sequence[Path]) -> str:
    from auditor import rulebook
    from auditor.report import rule_page

    entries = [each for each in rulebook.advisories() if each.head and each.head.id == id]
    return rule_page.page(rulebook.find(folders, id), width(), entries)


# ``zaudit drives``: what is known of the power-loss protection of a model, what zaudit makes of it, and of a hard disk that it
# is shingled.


CONFIDENCE = {
    "A": "named in a primary source",
    "B": "common knowledge of the drive family; no data sheet was read",
    "C": "the family is inferred from the model: weak evidence unless the drive reports its capacitors",
}
GRADES = {5: "proven", 4: "strong", 3: "declared", 2: "flushed data only", 1: "no protection"}
UNLISTED = (
    "This model is not in the table. That says nothing for or against the drive: zaudit counts it as unprotected. If the drive "
    "reports no volatile write cache, zaudit relies on that report. A hard disk only has to honour flushes."
)
SHINGLED = (
    "shingled (SMR), managed by the drive: small writes stall for seconds when its cache is full. During a resilver it may be "
    "ejected (disk-shingled)"
)
HARD_DISK = "A hard disk only has to honour flushes: it gets no grade."
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("it has a volatile write cache that is on", {"volatile_cache": True, "nvme_vwc_present": True}),
    (
        "it has one and reports its capacitors as healthy",
        {"volatile_cache": True, "nvme_vwc_present": True, "capacitor_ok": True},
    ),
    ("it says that it has none (NVMe, VWC 0)", {"volatile_cache": False, "nvme_vwc_present": False}),
)


def _models(context: click.Context, parameter: click.Parameter, word: str) -> list[CompletionItem]:
    from auditor.data import drives as table

    before = "".join(f"{each} " for each in context.params.get("words") or ())
    names = (name for each in table.load() for name in each.examples)
    return [CompletionItem(name.removeprefix(before)) for name in names if name.startswith(before + word)]


@click.command(short_help="Look up the power-loss protection of a drive model.")
@click.argument("words", nargs=-1, metavar="[MODEL]", shell_complete=_models)
@_options.formats
def drives(words: tuple[str, ...], format_: str) -> None:
    """Show what is known about the power-loss protection of MODEL (as nvme list, lsblk or smartctl print it), and its
    sources. The grade of evidence also depends on what the drive reports about itself. For a part of a name ("990 PRO")
    the models that contain it are listed. Without MODEL: the whole table."""
    from auditor.data import drives as table

    model = " ".join(" ".join(words).split())
    if not model:
        _all(table.load(), format_)
        return
    found, recorded = table.match(model), table.match_shingled(model)
    near = table.near(model) if found is None and recorded is None else ()
    if format_ == "json":
        say(json.dumps(_drive_document(model, found, recorded, near), indent=1))
    else:
        from auditor.report import terminal

        blocks = _drive_page(model, found, recorded, near)
        say(terminal.fragment(blocks, width=min(width(), 100), ascii_only=ascii_only()))


def _grades(found: Drive | None) -> Iterator[tuple[str, int | None]]:
    """(what the drive says, grade, if there is one): the derivation itself is asked."""
    from auditor.facts import Fact, Facts, Subject, known
    from auditor.model.disk import NOT_IN_TABLE
    from auditor.model.write_cache import plp_grade

    disk = Subject("disk", "nvme0n1")
    given = {"drive_class": found.plp if found else NOT_IN_TABLE, "virtual": False, "hdd": False}
    if found:
        given["drive_confidence"] = found.confidence
    for says, facts_of in CASES:
        facts = Facts()
        for name, value in {**given, "nvme_critical_warning": 0, **facts_of}.items():
            facts.put(Fact(disk, name, known(value, f"{name}={value}")))
        (grade,) = (fact.value.or_none() for fact in plp_grade.derive(disk, facts) if fact.name == "plp_grade")
        yield says, grade if isinstance(grade, int) else None


def _spelt(grade: int | None) -> str:
    return f"grade {grade}, {GRADES[grade]}" if grade else "no grade (the table and the drive contradict each other)"


def _virtual(found: Drive | None) -> bool:
    return found is not None and found.plp in ("virtual", "ephemeral")


def _drive_page(
    model: str, found: Drive | None, recorded: Shingled | None, near: Sequence[tuple[Drive, str]]
) -> Iterator[doc.Block]:
    from auditor.model.disk import SAYS

    def fields(*rows: tuple[str, str]) -> doc.Section:
        return doc.section("", [doc.labelled(rows, at=12)])

    yield doc.Say(model)
    if recorded:
        yield fields(("Recording", SHINGLED), ("Family", recorded.family), ("Source", recorded.source))
        yield fields(("Means", HARD_DISK))
        return
    if found is None:
        similar = (f"{example} ({drive.family}): {drive.plp}" for drive, example in near)
        yield fields(("Class", UNLISTED), *(("" if i else "Similar", text) for i, text in enumerate(similar)))
    else:
        yield fields(
            ("Class", f"{found.plp}: {SAYS[found.plp]}"),
            ("Family", found.family),
            ("Confidence", f"{found.confidence}: {CONFIDENCE[found.confidence]}"),
            ("Source", found.source),
            ("Pattern", found.pattern),
        )
    if _virtual(found):
        yield fields(
            ("Means", "No drive that can be seen from here: protection is decided where the volume comes from.")
        )
        return
    yield fields(
        *(("" if i else "Means", f"{_spelt(grade)}, when {says}") for i, (says, grade) in enumerate(_grades(found)))
    )
    yield fields(("", "5 is proven, 4 strong, 3 declared, 2 flushed data only, 1 none. zaudit check asks the drive."))


def _drive_document(
    model: str, found: Drive | None, recorded: Shingled | None, near: Sequence[tuple[Drive, str]]
) -> dict[str, Any]:
    keys = {"class": "plp", **{key: key for key in ("family", "confidence", "source", "pattern")}}
    graded = () if recorded or _virtual(found) else _grades(found)
    return {
        "model": model,
        "in_table": found is not None,
        "similar": [{"model": example, "family": drive.family, "class": drive.plp} for drive, example in near],
        "drive": {key: getattr(found, name) for key, name in keys.items()} if found else None,
        "shingled": {"family": recorded.family, "source": recorded.source} if recorded else None,
        "grades": [{"when": says, "grade": grade} for says, grade in graded],
    }


def _all(entries: tuple[Drive, ...], format_: str) -> None:
    rows = [(each.plp, each.confidence, each.family, each.examples[0]) for each in entries]
    if format_ == "json":
        names = ("class", "confidence", "family", "example")
        say(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=1))
        return
    for plp, confidence, family, example in rows:
        say(f"{plp:<19}{confidence}  {family} ({example})"[: width()])
    say(f"{len(rows)} families; zaudit drives MODEL says what is known of one model")


# ``zaudit completion``: what a shell needs to complete the words of a command line, and the answers to it.


SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.argument("words", nargs=-1, metavar="")
@click.option(
    "--answer", is_flag=True, hidden=True, help="Complete the last of the words, which are those after zaudit."
)
@click.pass_context
def completion(context: click.Context, shell: str, words: tuple[str, ...], answer: bool) -> None:
    """Print the script that makes a shell complete commands, options, rules, formats, datasets and recordings.

    bash: eval "$(zaudit completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc; fish: zaudit completion fish >
    ~/.config/fish/completions/zaudit.fish. The Debian package and the RPM have installed it already.
    """
    if not answer:
        say(data.text(f"completion.{shell}").rstrip("\n"))
        return
    from click.shell_completion import ShellComplete

    *before, incomplete = words or ("",)
    found = ShellComplete(context.find_root().command, {}, "zaudit", "").get_completions(before, incomplete)
    for each in found:
        click.echo("\t".join(harmless(str(word)) for word in (each.type, each.value, each.help or "")))


# ``zaudit selftest``: that nothing passes by what was not seen, shown on this installation.


@click.command(short_help="Check that no rule passes without its input.")
@_options.formats
@_options.folders
def selftest(format_: str, folders: tuple[Path, ...]) -> NoReturn:
    """Judge every rule on a recorded host with answers missing, refused, late, empty, garbled, truncated or of unknown
    release. All at once: every rule must be unknown. One at a time, or two of the main ones refused, or with a line or
    a key lost: no verdict may get better. Then on its own examples with facts hidden. Touches nothing of this host.

    Exit code: 0 when no rule passed where it must not, 1 when one did.
    """
    from auditor import rulebook
    from auditor import selftest as law

    rules = rulebook.load(folders)
    rows = law.run(rules, progress())
    if format_ == "json":
        found = [{"rule": row.rule, "healthy": row.healthy, "faults": codec.plain(row.cells)} for row in rows]
        say(json.dumps(found, indent=1))
    else:
        say("\n".join(_selftest_table(rows, sum(rule.of_verify for rule in rules))))
    sys.exit(0 if law.passed(rows) else EXIT_BROKE)


def _selftest_table(rows: Sequence[Row], of_verify: int) -> Iterator[str]:
    """One line a rule: in how many cases it was judged and did not pass, and what went wrong. of_verify: rules on its runs."""
    names = list(rows[0].cells)
    ids = max(len(row.rule) for row in rows) + 2
    yield f"{'':<{ids}}" + "  ".join(names)
    for row in rows:
        cells = (f"{'PASSED' if row.cells[name].wrong else row.cells[name].cases:<{len(name)}}" for name in names)
        yield (f"{row.rule:<{ids}}" + "  ".join(cells)).rstrip()
    wrong = [(row.rule, name, text) for row in rows for name, cell in row.cells.items() for text in cell.wrong]
    yield ""
    yield from (f"WRONG  {rule}, {name}: {text}" for rule, name, text in wrong)
    cases = sum(cell.cases for row in rows for cell in row.cells.values())
    counts = f"{len(rows) - of_verify} rules of check, {of_verify} of verify, {cases} cases"
    yield f"{counts}: " + (f"{len(wrong)} passed that must not" if wrong else "none passed")


# ``zaudit schema``: the JSON Schemas of what zaudit reads and writes, for editors and programs.


class NoSchema(Stop):
    """A name of no schema."""


def _schemas() -> Mapping[str, Callable[[], Any]]:
    from auditor.commands import _schemas

    return _schemas.SCHEMAS


def _names(context: click.Context, parameter: click.Parameter, word: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in _schemas() if name.startswith(word)]


@click.command(short_help="Print the JSON Schema of a rule, a policy or a report.")
@click.argument("name", required=False, shell_complete=_names)
def schema(name: str | None) -> None:
    """Print the JSON Schema of what zaudit reads or writes. Without NAME: which there are.

    An editor that knows schemas of TOML completes and checks rules and zaudit.toml with it. These two are of draft 7, which
    editors know; the others of draft 2020-12.
    """
    known = _schemas()
    if name is None:
        for each, made in known.items():
            say(f"{each:<11}{made()['title']}")
    elif name in known:
        say(json.dumps(known[name](), indent=1))
    else:
        raise NoSchema(f"no schema {name!r}{near(name, known)} (zaudit schema lists them)")
