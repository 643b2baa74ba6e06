"""The tables of the READMEs, from the files of results beside them: ``python -m tests.lab.tables`` writes them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from auditor.data.releases import load_torn_pages
from tests import incidents

from . import fixed, outcomes
from . import scenario as scenarios
from .diagnose import run as causes
from .machine import LINES
from .points import run as points_run
from .points import tables as points_tables
from .power import cells, matrix, report, results
from .verify import case as verify_cases

HERE = Path(__file__).parent
PROOF = HERE.parent.parent / "docs" / "proof.md"
TORN_PAGES, BY_RELEASE = (PROOF.with_name(f"{name}.md") for name in ("torn-pages", "durability-by-release"))
FOLDERS = ("power", "points", "verify", "diagnose")
READMES = (HERE / "README.md", *(HERE / name / "README.md" for name in FOLDERS), PROOF, TORN_PAGES, BY_RELEASE)
VERIFY, DIAGNOSE = (HERE / name / "outcomes.json" for name in ("verify", "diagnose"))
UNTRACED = {"counters": HERE / "diagnose" / "counters.json"}  # what counters alone tell of the same loads
Row = dict[str, Any]


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table of Markdown."""
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (head, ["---"] * len(head), *rows))


def _headed(rows: Iterable[tuple[object, ...]]) -> str:
    head, *body = rows
    return table([str(each) for each in head], body)


def releases(rows: Sequence[Row], line: str) -> str:
    """2.3.9 on Linux 6.12.107: those that the rows of a line are of."""
    seen = {
        (row["zfs"], row["kernel"].split("+")[0].removesuffix("-cloud-amd64")) for row in rows if row["line"] == line
    }
    return ", ".join(f"{zfs} on Linux {kernel}" for zfs, kernel in sorted(seen))


def lines(rows: Sequence[Row]) -> str:
    """What came out on each OpenZFS line."""
    known, found = scenarios.everything(), []
    for line in LINES:
        mine = [row for row in rows if row["line"] == line]
        if mine:
            seconds = [row["seconds"] for row in mine]
            right = sum(row["outcome"] == "ok" for row in mine)
            away = sum(line in each.not_on for each in known)
            left = len(known) - away - len(mine)
            rules = sorted({row["rules"] for row in mine} - {0})
            found.append(
                (
                    line,
                    releases(rows, line),
                    len(mine),
                    right,
                    away,
                    left,
                    "-".join(map(str, dict.fromkeys(rules[:1] + rules[-1:]))),
                    f"{median(seconds):.1f}",
                    f"{max(seconds):.1f}",
                )
            )
    head = ("line", "OpenZFS", "scenarios run", "as expected", "not on this line", "not run", "rules", "median s")
    return table((*head, "longest s"), found)


def scenario_table(rows: Sequence[Row]) -> str:
    """Each scenario with its seconds on each line, what a power cut may do, and the report as a whole."""
    ran, found = {(row["line"], row["scenario"]): row for row in rows}, []
    for each in scenarios.everything():
        mine = [ran[line, each.name] for line in LINES if (line, each.name) in ran]
        standings = ", ".join(dict.fromkeys(row["standing"] for row in mine))
        cells = [_cell(ran.get((line, each.name)), line in each.not_on) for line in LINES]
        found.append((each.name, "may be lost" if each.power_cut.may_lose else "none lost", standings, *cells))
    return table(("scenario", "commits at a power cut", "zaudit says", *(f"{line}, s" for line in LINES)), found)


def _cell(row: Row | None, away: bool) -> str:
    if row is None:
        return "not there" if away else "not run"
    return f"{row['seconds']:.1f}" if row["outcome"] == "ok" else f"{row['seconds']:.1f} WRONG"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def fix_table() -> str:
    """Each rule whose fix the lab runs: the scenarios, and the lines on which the rule passed after it."""
    made = sorted(fixed.by_scenario().items())
    cells = [[f"{name} ({', '.join(lines) or 'not run'})" for name, lines in where.items()] for _, where in made]
    return table(("rule", "fixed in"), [(rule, _some(each)) for (rule, _), each in zip(made, cells, strict=True)])


def power(rows: Sequence[Row]) -> str:
    """Verdict against truth, a line for each setting and line of OpenZFS."""
    found = [
        (
            each.line,
            each.setting.name,
            " ".join(each.setting.drives),
            each.setting.workload,
            len(each.rows),
            f"{each.acknowledged:,}",
            f"{each.lost:,}",
            each.losing,
            each.damaged,
            each.imports,
            each.level,
            each.outcome,
        )
        for each in report.lines(rows, matrix.everything())
    ]
    head = (
        "line",
        "setting",
        "drives",
        "workload",
        "cuts",
        "acknowledged",
        "lost",
        "cuts that lost",
        "damaged",
        "import",
    )
    return table((*head, "zaudit", "outcome"), found)


def events(line: str, cuts: Sequence[Row], rows: Sequence[Row]) -> str:
    """Each cell of zaudit's table of events against what the event took, on one line of OpenZFS."""
    found = [each[1:] for each in cells.rows(cells.cells(cuts, rows, matrix.everything())) if each[0] == line]
    return table(("setting", "drives", "workload", *matrix.EVENTS), found)


def event_sums(cuts: Sequence[Row], rows: Sequence[Row]) -> str:
    """The sums for each event."""
    return table(cells.SUM_HEAD, cells.sums(cells.cells(cuts, rows, matrix.everything())))


def power_lines(rows: Sequence[Row]) -> str:
    """The sums for each line of OpenZFS."""
    judged, found = report.lines(rows, matrix.everything()), []
    for line in LINES:
        mine = [each for each in judged if each.line == line]
        counts = [
            sum(each.outcome == name for each in mine)
            for name in ("hit", "undecided", "application", "miss", "false alarm")
        ]
        cuts, commits = sum(len(each.rows) for each in mine), sum(each.acknowledged for each in mine)
        found.append(
            (
                line,
                releases(rows, line),
                len(mine),
                cuts,
                f"{commits:,}",
                f"{sum(each.lost for each in mine):,}",
                *counts,
            )
        )
    head = ("line", "OpenZFS", "settings", "cuts", "commits acknowledged", "lost")
    return table((*head, "hit", "undecided", "application", "miss", "false alarm"), found)


def torn(rows: Sequence[Row]) -> str:
    """Settings whose programs rewrite pages: of how many cuts on each line how many left a page half old, half new."""
    settings = matrix.everything(matrix.PAGES_FILE)
    seen = {(each.line, each.setting.name): each for each in report.lines(rows, settings)}
    found = [
        (each.name, each.workload, each.data.replace("-o ", ""), "yes" if "log" in each.vdevs.split() else "no",
         *(_torn(seen.get((line, each.name)), line in each.lines) for line in LINES))
        for each in settings
    ]  # fmt: skip
    return table(("setting", "pages", "dataset", "SLOG", *(f"torn on {line}" for line in LINES)), found)


def _torn(cuts: report.Line | None, there: bool) -> str:
    if cuts is None:
        return "not run" if there else "not on this line"
    return f"{cuts.damaged} of {len(cuts.rows)}"


def torn_lines(rows: Sequence[Row]) -> str:
    """The sums for each line, and of the cuts with which the drives were killed apart from those whose media were copied."""
    judged, found = report.lines(rows, matrix.everything(matrix.PAGES_FILE)), []
    for line in sorted({each.line for each in judged}):
        mine = [row for each in judged if each.line == line for row in each.rows]
        ways = [[row for row in mine if row["killed"] is killed] for killed in (False, True)]
        torn_of = [f"{sum(bool(row['corruption']) for row in way)} of {len(way)}" for way in ways]
        commits, lost = (sum(row[name] for row in mine) for name in ("acknowledged", "lost"))
        plain = sum(row["import"] == "plain" for row in mine)
        found.append((line, releases(mine, line), f"{commits:,}", lost, f"{plain} of {len(mine)}", *torn_of))
    head = ("line", "OpenZFS", "fsyncs acknowledged", "lost", "plain imports")
    return table((*head, "torn, media copied", "torn, drives killed"), found)


def by_release(event: str, cuts: Sequence[Row], happened: Sequence[Row]) -> str:
    """What one event took of each setting, a column for each line of OpenZFS."""
    found: dict[str, dict[str, list[Row]]] = {}
    for setting in matrix.everything():
        name = f"{setting.name} (the application's choice)" if setting.application else setting.name
        mine = [
            *(each for each in cuts if event == setting.lost_at),
            *(each for each in happened if each["event"] == event),
        ]
        for row in mine:
            if row["setting"] == setting.name:
                found.setdefault(name, {}).setdefault(row["line"], []).append(row)
    rows = [(name, *(_taken(mine.get(line, ())) for line in LINES)) for name, mine in found.items()]
    return table(("setting", *LINES), rows)


def _taken(rows: Sequence[Row]) -> str:
    """lost 3 of 40 commits in 1 of 5; kept 40 in 5."""
    if not rows:
        return ""
    commits, lost = (sum(row[name] for row in rows) for name in ("acknowledged", "lost"))
    times = len(rows)
    losing = sum(row["lost"] > 0 for row in rows)
    words = [f"lost {lost:,} of {commits:,} in {losing} of {times}"] if lost else []
    damaged = sum(bool(row["corruption"]) for row in rows)
    words += [f"damage in {damaged} of {times}"] if damaged else []
    gone = sum(row["import"] == "failed" or "-F" in row["import"] for row in rows)
    words += [f"no plain import in {gone} of {times}"] if gone else []
    return ", ".join(words) or f"kept {commits:,} in {times}"


def verify_table(rows: Sequence[Row]) -> str:
    """Each case of `zaudit verify`: what it must say, and how it came out on each line."""
    return _cases([(each.name, each.must, each.lines) for each in verify_cases.everything()], rows)


def diagnose_table(rows: Sequence[Row]) -> str:
    """Each cause that is provoked: what `zaudit diagnose` must say, and how it came out on each line."""
    must = [(each.name, " ".join(filter(None, (each.outcome, each.top))), each.lines) for each in causes.everything()]
    return _cases(must, rows)


def untraced_table(runs: Mapping[str, Sequence[Row]]) -> str:
    """What each cause that was provoked looks like without a trace. runs: by what there is instead."""
    found = {(how, row["line"], row["scenario"]): row for how, rows in runs.items() for row in rows}
    ways = [(how, line) for how, rows in runs.items() for line in LINES if any(row["line"] == line for row in rows)]
    must = [(each.name, " ".join(filter(None, (each.outcome, each.top)))) for each in causes.everything()]
    told = [(name, words, *(_untraced(found.get((*way, name))) for way in ways)) for name, words in must]
    return table(("case", "with a trace", *map(" on ".join, ways)), [each for each in told if any(each[2:])])


def _untraced(row: Row | None) -> str:
    return f"{'WRONG: ' if row['outcome'] != 'ok' else ''}{row['verdict']}" if row else ""


def _cases(must: Sequence[tuple[str, str, Sequence[str]]], rows: Sequence[Row]) -> str:
    """must: name, what must come out, and the lines where it may."""
    ran = {(row["line"], row["scenario"]): row for row in rows}
    found = [
        (name, words, *(_verified(ran.get((line, name)), line in where) for line in LINES))
        for name, words, where in must
    ]
    return table(("case", "must say", *LINES), found)


def _verified(row: Row | None, there: bool) -> str:
    """yes (1a2b3c4): the code that said so; of a recording that later code judged anew, both."""
    if row is None:
        return "not run" if there else "not on this line"
    judged = "" if row["judged"] == row["version"] else f", judged anew by {row['judged']}"
    return f"{'yes' if row['outcome'] == 'ok' else 'WRONG'} ({row['version']}{judged})"


def verify_programs(rows: Sequence[Row]) -> str:
    """The other runs: what came out, on which release, when and with which code."""
    known = {each.name for each in verify_cases.everything()}
    found = [
        (
            row["line"],
            row["scenario"],
            row["verdict"] or "; ".join(row["said"]),
            _as_it_must(row),
            row["date"],
            row["version"],
        )
        for row in rows
        if row["scenario"] not in known
    ]
    return table(("line", "program", "what came out", "as it must be", "date", "code"), found)


def _as_it_must(row: Row) -> str:
    return "yes" if row["outcome"] == "ok" else "NO"


def case_lines(known: Sequence[verify_cases.Case | causes.Cause], rows: Sequence[Row]) -> str:
    """The sums for each line."""
    found = []
    for line in LINES:
        names = {each.name for each in known if line in each.lines}
        mine = [row for row in rows if row["line"] == line and row["scenario"] in names]
        right = sum(row["outcome"] == "ok" for row in mine)
        dates = sorted({row["date"] for row in mine})
        when = " to ".join(dict.fromkeys(dates[:1] + dates[-1:]))
        found.append((line, releases(rows, line), len(names), len(mine), right, len(names) - len(mine), when))
    return table(("line", "OpenZFS", "cases", "run", "as they must be", "not run", "date"), found)


def incident_table() -> str:
    """Public incidents by group: how many, how many of them a host shows, and what came out for those, then and now."""
    every, pages = incidents.everything(), incidents.pages()
    groups = [(group, [name for name in every if every[name].group == group]) for group in incidents.GROUPS]
    found = []
    for group, mine in (*groups, ("all", list(every))):
        signs = [name for name in mine if every[name].now != "out"]
        now = [incidents.measure(name, every[name], pages) for name in signs]
        then = [every[name].first for name in signs if every[name].first]
        counts = (now.count(each) for each in incidents.MEASURES)
        first = " / ".join(str(then.count(each)) for each in ("caught", "partly", "missed"))
        before = sum(incidents.warned(every[name]) for name in signs)
        found.append((group, len(mine), len(signs), *counts, before, first))
    return table(("group", "incidents", "with a sign", *incidents.MEASURES, "before", "then"), found)


def blocks() -> dict[str, str]:
    """What stands after each mark."""
    ran, cuts, verified = outcomes.read(), results.read(), outcomes.read(VERIFY)
    happened, diagnosed = results.read(results.EVENTS), outcomes.read(DIAGNOSE)
    points = results.read(points_run.RESULTS)
    return {
        "lines": lines(ran),
        "scenarios": scenario_table(ran),
        "fixes": fix_table(),
        "incidents": incident_table(),
        "power lines": power_lines(cuts),
        "power": power(cuts),
        "events": event_sums(cuts, happened),
        **{f"events {line}": events(line, cuts, happened) for line in LINES},
        "torn lines": torn_lines(results.read(results.TORN)),
        "torn": torn(results.read(results.TORN)),
        **{f"release {event}": by_release(event, cuts, happened) for event in matrix.EVENTS},
        "points": _headed(points_tables.points(points, "user")),
        "points controls": _headed(points_tables.controls(points, "user")),
        "points kernel": _headed(points_tables.points(points, "kernel")),
        "points kernel controls": _headed(points_tables.controls(points, "kernel")),
        "torn pages": _headed(points_tables.torn(load_torn_pages())),
        "verify lines": case_lines(verify_cases.everything(), verified),
        "verify": verify_table(verified),
        "verify programs": verify_programs(verified),
        "diagnose lines": case_lines(causes.everything(), diagnosed),
        "diagnose": diagnose_table(diagnosed),
        "diagnose untraced": untraced_table({how: outcomes.read(path) for how, path in UNTRACED.items()}),
    }


def filled(text: str) -> str:
    """A README with its tables as they must be; raises ValueError for a mark that there is no table for."""
    found = blocks()

    def fill(mark: re.Match[str]) -> str:
        if mark[1] not in found:
            raise ValueError(f"no table {mark[1]!r}")
        return f"<!-- table: {mark[1]} -->\n{found[mark[1]]}\n<!-- end -->"

    return re.sub(r"<!-- table: (.*?) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)


def write() -> None:
    """All READMEs with their tables as they must be."""
    for readme in READMES:
        readme.write_text(filled(readme.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write()
