"""The readers of zaudit, one target each: every collector's parser, recordings, reports, policies, rules, fio and strace."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import click

from auditor import audit, rulebook
from auditor.cli import main
from auditor.diagnose import diagnose_page, observation
from auditor.diagnose.conclusion import diagnose
from auditor.facts import Known, Subject
from auditor.gather import answer
from auditor.host.request import Capture, Files, Output
from auditor.judge import baseline, policy_file, rule_file
from auditor.recording import archive, recording
from auditor.recording.recording import Recording, ReplayHost
from auditor.registry import registry, sources, specs
from auditor.report import audit_page, formats, report_json, report_reader
from auditor.sources.source import Source
from auditor.verify import comparison, fio, profile, trial
from auditor.verify.fio import FILES
from tests import shared
from tests.diagnose import worlds
from tests.fuzz.target import ROOT, Case, Flaw, Texts, printable, sound
from tests.golden import FIO, fio_output, verifications
from tests.sources.test_sources import CASES, check_type
from tests.verify import samples

SYNCS = {"log": "fdatasync", "data": "fsync"}
BASELINE = """{"schema": "zaudit-baseline/1", "host": "db1", "targets": [], "pools": ["tank"], "made": "2026-11-21", "known": [
{"rule": "sync-disabled", "kind": "dataset", "pool": "", "name": "tank", "outcome": "fail", "severity": "critical",
"first": "2026-11-21", "last": "2026-11-21"},
{"rule": "slog-no-redundancy", "kind": "vdev", "pool": "tank", "name": "nvme0n1", "outcome": "unknown", "severity": "high",
"first": "2026-11-21", "last": "2026-11-22"}
]}
"""
POLICIES = [
    """[rules]
atime-on = "off"
txg-timeout-long = "low"

[thresholds]
pool-nearly-full.nearly_full = 85

[datasets."tank/db/wal"]
role = "log"
database = "postgres"
""",
    """[[waiver]]
rule = "slog-no-redundancy"
pool = "4711"
owner = "storage@example.org"
reason = "the second log device is ordered"
expires = 2027-01-31

[[waiver]]
rule = "atime-on"
dataset = "tank/db"
owner = "db"
reason = "it is rebuilt every night"
expires = 2027-02-28
""",
]
SHARED = ROOT.parent / "shared"  # a corpus of what tools printed, and recordings, where they lie beside the repository
DERIVED = ("", "_issue_derived", "_json", "_json_issue_derived")
CORPUS = {  # collector -> folders of it
    **dict.fromkeys(("zpool_status", "smartctl", "zdb_config"), DERIVED),
    **dict.fromkeys(("zpool_list", "zpool_get", "zfs_get", "hdparm", "nvme_id_ctrl", "nvme_smart_log"), ("",)),
}
FOLDERS = {"zdb_config": "zdb"}
RECORDED = {  # collector -> how the names of members begin
    **{name: name for name in ("zpool_status", "zpool_list", "zpool_get", "zpool_events", "zpool_history")},
    **{name: name for name in ("zfs_get", "zfs_list", "smartctl", "hdparm")},
    **{f"nvme_{name.replace('-', '_')}": f"nvme_{name}" for name in ("id-ctrl", "smart-log")},
}
LARGEST = 200_000  # characters of a seed: more of the same costs time and shows nothing new


def targets() -> Iterator[Texts]:
    """All of them, by name."""
    for name, source in sources().items():
        yield Texts(name, partial(_answers, name), partial(_parse, source), _strangers)
    yield Texts("recording", _recordings, _audit, _strangers)
    yield Texts("archive", _archives, _unpack)
    yield Texts("diff", _reports, _diff)
    yield Texts("show", lambda: _texts([part for each in _reports() for part in each["parts"].values()]), _of(_show))
    yield Texts("baseline", lambda: _texts([BASELINE]), _of(_baseline))
    yield Texts("policy", lambda: _texts(POLICIES), _of(_policy))
    yield Texts("rule", lambda: _texts(_files("rules", "*.toml")), _of(_rule))
    yield Texts("verify-document", _verified, _of(comparison.load))
    yield Texts("trial", _trials, _of(trial.from_text))
    yield Texts("observation", _observations, _of(_observation))
    yield Texts(
        "profile",
        lambda: _texts(_files("auditor", "verify/profiles/*.fio")),
        _of(lambda text: profile.parse(text, "x.fio")),
    )
    yield Texts("fio", lambda: _texts([fio_output(path) for path in sorted(FIO.glob("*/*.out.gz"))]), _of(_fio))
    yield Texts("strace", lambda: _texts(_files("fixtures/fio", "*/*.strace")), _of(_strace))


def _of(read: Callable[[str], object]) -> Callable[[Case], None]:
    """A reader of one text."""

    def each(case: Case) -> None:
        for text in case["parts"].values():
            read(text)

    return each


def _texts(found: list[str]) -> list[Case]:
    return [{"parts": {"text": text}} for text in found]


def _files(folder: str, pattern: str) -> list[str]:
    return [
        path.read_text(encoding="utf-8", errors="surrogateescape") for path in sorted((ROOT / folder).glob(pattern))
    ]


# -- parsers ------------------------------------------------------------------------------------------------------


@cache
def _all_answers() -> dict[str, list[Case]]:
    """Collector -> what it was answered: in the pairs of the fixtures, and in what lies beside the repository."""
    found: dict[str, list[Case]] = {}
    for pair in CASES:
        about = {"subject": pair.expected["subject"]}
        match pair.reply:
            case Output(text, command, code, stderr):
                parts = {"stdout": text, **({"stderr": stderr} if stderr else {})}
                case: Case = {**about, "command": command, "exit": code, "parts": parts}
            case Files(texts, links, errors):
                kinds = (("text", texts), ("link", links), ("error", errors))
                case = {
                    **about,
                    "parts": {f"{kind} {path}": said for kind, each in kinds for path, said in each.items()},
                }
        found.setdefault(pair.collector, []).append(case)
    for name, path in _beside():
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        if len(text) <= LARGEST:
            found[name].append({**found[name][0], "parts": {"stdout": text}})
    return found


def _beside() -> Iterator[tuple[str, Path]]:
    for name, kinds in CORPUS.items():
        for folder in (SHARED / "corpus" / f"{FOLDERS.get(name, name)}{kind}" for kind in kinds):
            yield from ((name, path) for path in sorted(folder.rglob("*")) if path.is_file())
    for path in sorted((SHARED / "recordings").rglob("*.out")):
        _, _, what = path.name.partition("-")
        yield from ((name, path) for name, start in RECORDED.items() if what.startswith(start))


def _answers(name: str) -> list[Case]:
    return _all_answers().get(name, [])


@cache
def _strangers() -> list[str]:
    """What other tools printed."""
    return [text for cases in _all_answers().values() for case in cases for text in case["parts"].values()]


def _parse(source: Source, case: Case) -> None:
    """Facts of the declared names and types, of a sane size, or ValueError."""
    parts = case["parts"]
    reply: Output | Files
    if "command" in case:
        reply = Output(parts.get("stdout", ""), case["command"], case["exit"], parts.get("stderr", ""))
    else:
        kinds = {
            kind: {name[len(kind) + 1 :]: text for name, text in parts.items() if name.startswith(f"{kind} ")}
            for kind in ("text", "link", "error")
        }
        reply = Files(kinds["text"], kinds["link"], kinds["error"])
    if answer.over(reply, source.form):
        raise ValueError("over a bound")
    kind, name, within = case["subject"]
    declared = {key for key, _ in specs(source)}
    for fact in source.parse(reply, Subject(kind, name, within)):
        if not isinstance(fact.value, Known) or not fact.value.evidence:
            raise Flaw(f"unknown or without evidence: {fact.subject.kind}.{fact.name}")
        if (fact.subject.kind, fact.name) not in declared:
            raise Flaw(f"undeclared: {fact.subject.kind}.{fact.name}")
        try:
            check_type(fact)
        except AssertionError:
            raise Flaw(
                f"of another type: {registry()[fact.subject.kind, fact.name].type.__name__} {fact.name}"
            ) from None
        values = fact.value.value if isinstance(fact.value.value, tuple) else (fact.value.value,)
        if any(isinstance(each, int) and not -(1 << 63) <= each < 1 << 64 for each in values):
            raise Flaw("beyond 64 bits")


# -- recordings and reports ---------------------------------------------------------------------------------------


def _recordings() -> list[Case]:
    hosts = shared.HOSTS.cases()
    return [{"parts": {name: _text(data) for name, data in archive.read(host).items()}} for host in hosts[::8]]


def _archives() -> list[Case]:
    """The bytes of an archive as characters below 256."""
    commands: dict[tuple[str, ...], Capture] = {
        ("zpool", "list"): Capture(0, b"tank\n"),
        ("zfs", "list"): Capture(1, b"", b"permission denied\n"),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "small.tar.gz")
        recording.write(Recording(0.0, 0, ("tank",), {}, "0", commands), path)
        whole = path.read_bytes()
    bare = gzip.decompress(whole)
    return [{"parts": {"gz": whole.decode("latin-1")}}, {"parts": {"tar": bare.decode("latin-1")}}]


def _unpack(case: Case) -> None:
    for kind, text in case["parts"].items():
        data = _bytes(text) if any(ord(each) > 255 for each in text) else text.encode("latin-1")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "recording.tar.gz")
            path.write_bytes(gzip.compress(data, 1) if kind == "tar" else data)
            recording.load(path)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    """Also of a text in which a surrogate stands that no bytes give."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _audit(case: Case) -> None:
    """Read, looked at, judged, and printed both ways."""
    past = recording.parse("recording", {name: _bytes(text) for name, text in case["parts"].items()})
    seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    report = audit.judge(seen, shared.audited(), past.targets, "low")
    json.loads(report_json.render(report, passed=True))
    printable(audit_page.write_text(report, verbose=2))
    sound(seen.facts)


def _reports() -> list[Case]:
    seeds = []
    for host in shared.HOSTS.cases()[::12]:
        past = recording.load(host)
        seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
        seeds.append(report_json.render(audit.judge(seen, shared.audited(), past.targets, "low")))
    return [{"parts": {"old": old, "new": new}} for old in seeds for new in seeds[:2]]


def _diff(case: Case) -> None:
    """As the command does it, in both forms."""
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for name in ("old", "new"):
            path = Path(folder, name)
            path.write_bytes(_bytes(case["parts"].get(name, "{}")))
            names.append(str(path))
        for form in ("terminal", "json"):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit, click.ClickException):
                main.main(["diff", *names, "--format", form], standalone_mode=False)
            printable(printed.getvalue())


def _show(text: str) -> None:
    """In every format that is made of data."""
    try:
        read = report_reader.parse_report(json.loads(text))
    except RecursionError:  # as the command takes it
        return
    for name in formats.of_data():
        if name != "json":  # which is as it was
            printable(formats.named(name).render(read))


def _baseline(text: str) -> None:
    """What is read is written as it was read."""
    read = baseline.parse(text.encode("utf-8", "surrogateescape"), "known.json")
    if baseline.parse(baseline.text(read).encode(), "known.json").entries.keys() != read.entries.keys():
        raise Flaw("baseline: does not read back")


# -- policies, rules, verifications -------------------------------------------------------------------------------


def _policy(text: str) -> None:
    followed = policy_file.parse(text, "zaudit.toml")
    rulebook.choose((), (), (), followed)


def _rule(text: str) -> None:
    rule_file.load("some-rule", "some-rule.toml", _bytes(text), registry())


def _verified() -> list[Case]:
    pieces = (samples.traced(), samples.contradicted())
    return _texts([json.dumps(comparison.document(each)) for each in pieces])


def _trials() -> list[Case]:
    past = [recording.load(path) for path in verifications()]
    return _texts([each.trial.decode("utf-8", "surrogateescape") for each in past])


def _observations() -> list[Case]:
    """A trace with all its parts, and counters alone."""
    rows = {(100, "postgres", 1): (400, 400 * 5300)}
    traced = [worlds.traced(rows), None]
    return _texts([observation.to_text(worlds.observation(worlds.load(), each)) for each in traced])


def _observation(text: str) -> None:
    """Whatever a recording holds: it is refused, or there is a report of it."""
    found = diagnose(observation.from_text(text), worlds.facts())
    diagnose_page.write("terminal", found, verbose=True)
    diagnose_page.write("json", found)


def _fio(text: str) -> None:
    found = fio.documents(text)
    fio.jobs_of(found[-1], SYNCS, "log")
    list(fio.timeline_of(found, SYNCS, 0.0, "log"))


def _strace(text: str) -> None:
    fio.parse(text, FILES)
