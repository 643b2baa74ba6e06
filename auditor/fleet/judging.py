"""One recording as rows: what ``zaudit check --replay REC --format jsonl`` says, and what a fleet is asked for besides."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from auditor import __version__, audit, rulebook
from auditor.errors import Stop
from auditor.fleet import store
from auditor.judge.finding import Finding
from auditor.judge.policy_file import parse as parsed_policy
from auditor.recording import archive, recording
from auditor.report.audit import json as report_json
from auditor.report.formats import _told, jsonl
from auditor.report.model import Report
from auditor.rulebook import Chosen
from auditor.text import harmless, is_url

ROWS = 10_000  # findings of one host: more is no host, and would be a flood in a store
LISTED = 20  # drive models and remedies of a finding
WORD = 200  # characters of one of them
LONGEST, WHOLE = 4 << 20, 64 << 20  # bytes of a row, and of all of a host: the report reads lines of up to 16 MiB
SAID = 500  # of an error
POLICIES = 8  # whose rules are kept, for recordings that bring their own

Row = dict[str, Any]


class How(NamedTuple):
    """By what a fleet is judged; the same everywhere, so it can be sent to other processes. folders: of own rules. policy: text
    of the one that is followed instead of those of the recordings, with its path; without a path, each follows its own."""

    folders: tuple[str, ...] = ()
    policy: str = ""
    policy_path: str = ""


OURS = How()


def judge_recording(name: str, how: How = OURS) -> list[Row]:
    """The rows of one recording: of kind ``report``, then its findings, the worst first; or one of kind ``unjudged`` with the
    error. Never raises. name: a folder, a .tar.gz, or a URL where fsspec is installed; each row has it as ``recording``."""
    try:
        return _judged(name, how)
    except Stop as error:
        return [unjudged(name, str(error))]
    except OSError as error:
        return [unjudged(name, error.strerror or str(error))]
    except MemoryError:
        return [unjudged(name, "not enough memory to judge it")]
    except Exception as error:
        return [unjudged(name, f"internal error, please report it: {type(error).__name__}: {error}")]


def unjudged(name: str, error: str) -> Row:
    """The row of a recording of which nothing can be told."""
    for prefix in (name, str(Path(name))):  # of a URL the second has one slash less
        error = error.removeprefix(f"{prefix}: ")
    return {**common("unjudged"), "recording": harmless(name), "error": harmless(error)[:SAID]}


def missing(host: str) -> Row:
    """The row of a host that was expected and of which there is no recording."""
    return {**common("missing"), "name": harmless(host), "error": "it was expected, and there is no recording of it"}


def common(kind: str) -> Row:
    """What each row has that is not of a report."""
    return {"schema": jsonl.SCHEMA, "kind": kind, "zaudit": __version__}


def lines(rows: list[Row]) -> str:
    """Rows as JSON, one a line."""
    return "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows)


def judged_lines(name: str, how: How) -> str:
    """:func:`judge_recording` as text, which is what goes from process to process."""
    return lines(judge_recording(name, how))


@lru_cache(maxsize=POLICIES)
def chosen(folders: tuple[str, ...], policy: str, path: str) -> Chosen:
    """The rules, read once a process. Raises RuleError or PolicyError."""
    followed = parsed_policy(policy, path) if path else audit.NONE
    return rulebook.choose(tuple(map(Path, folders)), (), (), followed)


def _judged(name: str, how: How) -> list[Row]:
    content = _members(name)
    digest = _digest(content)
    past = recording.parse(name, content)
    options = audit.Options.from_words(past.options)
    if how.policy_path:
        options = options._replace(policy=parsed_policy(how.policy, how.policy_path))
    rules, left_out = chosen(how.folders, options.policy.text, options.policy.path)
    seen = audit.look(recording.ReplayHost(past), past.targets, options)
    report = audit.judge(seen, rules, past.targets, "low", left_out=left_out)
    if len(report.findings) + len(report.waived) > ROWS:
        return [unjudged(name, f"more than {ROWS:,} findings")]
    first, *found = jsonl.rows(_told.told(report_json.document(report)))
    common = {"recording": harmless(name), "openzfs": first["openzfs"]}
    whole = {**first, **common, "digest": digest, "findings": len(found)}
    models = _models(report)
    more = (_more(each, models) for each in (*report.findings, *report.waived))
    rows = [whole, *({**row, **common, **extra} for row, extra in zip(found, more, strict=True))]
    sizes = [len(json.dumps(row, ensure_ascii=True)) for row in rows]
    if max(sizes) > LONGEST or sum(sizes) > WHOLE:
        return [unjudged(name, "rows that are too long: names as no host has them")]
    return rows


def _members(name: str) -> Mapping[str, bytes]:
    """Raises RecordingError or OSError."""
    if is_url(name):
        return archive.unpacked(io.BytesIO(store.content(name)), Path(name))
    return archive.read(Path(name))


def _digest(content: Mapping[str, bytes]) -> str:
    """Of what is in a recording, be it a folder or an archive."""
    whole = hashlib.sha256()
    for name in sorted(content):
        whole.update(f"{name}\0{len(content[name])}\0".encode())
        whole.update(content[name])
    return whole.hexdigest()


def _models(report: Report) -> dict[str, tuple[str, ...]]:
    """Disk or leaf -> the models of its disks."""
    found: dict[str, tuple[str, ...]] = {}
    for leaf in (leaf for pool in report.pools for vdev in pool.vdevs for leaf in vdev.leaves):
        found[leaf.name] = tuple(disk.model for disk in leaf.disks)
        found |= {disk.name: (disk.model,) for disk in leaf.disks}
    return found


def _more(finding: Finding, models: Mapping[str, tuple[str, ...]]) -> Row:
    """models: of the drives that it is about; remedies: what would decide it."""
    of_drives = (
        model
        for verdict in finding.verdicts
        if verdict.subject.kind in ("disk", "leaf")
        for model in models.get(verdict.subject.name, ())
    )
    remedies = (reason.remedy for reason in finding.reasons if reason.remedy)
    return {"models": list(_few(of_drives)), "remedies": list(_few(remedies))}


def _few(words: Iterator[str]) -> list[str]:
    return [harmless(word)[:WORD] for word in dict.fromkeys(words)][:LISTED]
