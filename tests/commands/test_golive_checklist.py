"""``zaudit checklist`` on the command line: what goes together is joined, everything else is refused in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor import audit
from auditor.host import live as seam
from auditor.host.live import Host
from auditor.recording import recording
from tests.commands.test_incident_diagnose import observed
from tests.fake import CommandLine
from tests.golden import GREEN, HOSTS, VERIFICATIONS

VERIFIED = VERIFICATIONS / "2.3-mirrored-slog.tar.gz"  # tank/db on zlab
LOSES = VERIFICATIONS / "2.3-sync-disabled.tar.gz"


def checked(to: Path, of: Path = VERIFIED, **changed: Any) -> Path:
    """The audit alone that a verification began with."""
    path = to / f"check-{len(list(to.iterdir()))}.tar.gz"
    recording.write(replace(recording.load(of), trial=b"", **changed), path)
    return path


def answers(done: Any) -> dict[str, str]:
    return {each["id"]: each["answer"] for each in json.loads(done.out)["checklist"]["lines"]}


def test_each_recording_answers_what_it_can(zaudit: CommandLine, tmp_path: Path) -> None:
    audit, load = checked(tmp_path), observed("2.3-mirrored-slog", tmp_path)
    alone = answers(zaudit("checklist", "--replay", audit, "--format", "json"))
    measured = answers(zaudit("checklist", "--replay", audit, "--replay", VERIFIED, "--format", "json"))
    assert (alone["benchmark-calls"], measured["benchmark-calls"]) == ("open", "yes")
    assert alone["benchmark-properties"] == measured["benchmark-properties"] == "yes"
    done = zaudit("checklist", "--replay", load, "--replay", VERIFIED, "--replay", audit)
    assert done.out.splitlines()[0].startswith("tank/db on zlab · ")
    assert "zaudit diagnose   2026-11-" in done.out
    assert "counters alone: INCONCLUSIVE" in done.out
    assert "postgres, quick: TRACED" in done.out


def test_a_verification_or_a_diagnosis_brings_its_own_audit(zaudit: CommandLine, tmp_path: Path) -> None:
    done = zaudit("checklist", "--replay", LOSES)
    assert done.code == 14
    assert done.out.splitlines()[-1] == "Next: zfs set sync=standard tank/db   (exit code 14)"
    load = zaudit("checklist", "--replay", observed("2.3-sync-disabled", tmp_path), "--format", "json")
    assert load.code == 14
    assert answers(load)["figures-tail"] == "no"
    assert answers(load)["benchmark-calls"] == "open"


def test_a_target_is_audited_here_beside_what_was_recorded(
    zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host = recording.ReplayHost(recording.load(checked(tmp_path)))
    monkeypatch.setattr(seam, "LiveHost", lambda *limits: host)
    done = zaudit("checklist", "tank/db", "--replay", VERIFIED, "--format", "json")
    found = json.loads(done.out)["checklist"]
    assert [each["by"] for each in found["evidence"]] == ["check", "verify"]
    assert found["evidence"][1]["changed"] == []
    assert answers(done)["benchmark-calls"] == "yes"


def test_off_the_host_the_recordings_are_enough(
    zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Who names a TARGET on a desk is told that it would be audited there."""

    replayed = audit.look

    def look(host: Host, *words: Any) -> audit.Look:
        if isinstance(host, recording.ReplayHost):
            return replayed(host, *words)
        raise audit.NothingToAudit("OpenZFS is not loaded here")

    monkeypatch.setattr(audit, "look", look)
    done = zaudit("checklist", "tank/db", "--replay", VERIFIED)
    assert done.code == 3
    assert "Without a TARGET the youngest recording is audited" in done.err


def test_a_recorded_audit_of_a_pool_is_narrowed_to_the_target(zaudit: CommandLine, tmp_path: Path) -> None:
    pool = checked(tmp_path, targets=("tank",))
    done = zaudit("checklist", "--replay", pool, "--replay", VERIFIED)
    assert done.code == 2
    assert f"{VERIFIED}: it is of tank/db, and the audit of tank" in done.err
    narrowed = zaudit("checklist", "tank/db", "--replay", pool, "--replay", VERIFIED)
    assert narrowed.out.startswith("tank/db on zlab · ")
    gone = zaudit("checklist", "tank/gone", "--replay", pool)
    assert gone.code == 3


def test_what_is_of_another_host_or_pool_is_refused(zaudit: CommandLine) -> None:
    done = zaudit("checklist", "tank/db", "--replay", HOSTS / GREEN, "--replay", VERIFIED)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert f"{VERIFIED}: it is of host zlab, and the audit of host db1" in done.err
    other = zaudit("checklist", "--replay", VERIFICATIONS / "2.3-flushes-fail.tar.gz", "--replay", LOSES)
    assert other.code == 2
    assert "both hold a verification; name one" in other.err


def test_what_was_measured_before_a_change_is_said(zaudit: CommandLine, tmp_path: Path) -> None:
    commands = {
        argv: each._replace(stdout=each.stdout.replace(b"\tlogbias\tlatency\t", b"\tlogbias\tthroughput\t"))
        for argv, each in recording.load(VERIFIED).commands.items()
    }
    path = checked(tmp_path, commands=commands, edited="logbias was changed by hand")
    done = zaudit("checklist", "--replay", path, "--replay", VERIFIED)
    assert "since then logbias was latency then, is throughput now" in " ".join(done.out.split())
    assert "measured before a change" in done.out
    assert "logbias was changed by hand" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "name a TARGET, or --replay recordings"),
        (("--replay", HOSTS / "gone"), "gone"),
        (("tank", "--html"), "--html"),
    ],
)
def test_usage(zaudit: CommandLine, words: tuple[object, ...], says: str) -> None:
    done = zaudit("checklist", *words)
    assert done.code == 2
    assert says in done.err


def test_a_database_is_looked_for_on_this_host_alone(zaudit: CommandLine, tmp_path: Path) -> None:
    for words in (("tank/db", "--replay", checked(tmp_path)), ("--replay", VERIFIED)):
        done = zaudit("checklist", *words, "--db", "postgres")
        assert done.code == 2
        assert "--db goes with a TARGET of this host" in done.err


def test_a_recording_of_several_targets_needs_one(zaudit: CommandLine, tmp_path: Path) -> None:
    both = checked(tmp_path, targets=("tank/db", "tank/other"))
    done = zaudit("checklist", "--replay", both)
    assert done.code == 2
    assert "a checklist is of one target; name one of tank/db, tank/other" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["terminal", "markdown", "html", "json"])
def test_every_format_has_the_same_exit_code_and_a_summary(zaudit: CommandLine, tmp_path: Path, name: str) -> None:
    to = tmp_path / "list"
    done = zaudit("checklist", "--replay", LOSES, "--format", name, "-o", to)
    assert done.code == 14
    assert to.stat().st_size > 1000
    assert done.out == ""
    assert " no, " in done.err
    assert "(exit code 14)" in done.err


def test_help_says_what_it_rests_on_and_its_exit_codes(zaudit: CommandLine) -> None:
    said = " ".join(zaudit("checklist", "--help").out.split())
    assert "It measures nothing itself." in said
    assert "A line is yes only where everything that it asks for was seen and passed" in said
    assert "Exit codes: 11 to 14 the worst of what a no rests on" in said
