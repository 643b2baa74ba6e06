"""A host whose pools are all away: nothing is judged of them, and what the host shows is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor import audit, rulebook
from auditor.facts import HOST
from auditor.host.request import Capture
from auditor.judge.policy import NONE
from auditor.recording.recording import Recording, ReplayHost, load
from tests.golden import HOSTS


def without_pools(recording: Recording) -> Recording:
    """The same host after a start at which no pool was imported."""
    commands = {
        argv: Capture(0, b"", b"no pools available\n") if argv[:2] == ("zpool", "list") else capture
        for argv, capture in recording.commands.items()
    }
    files = {
        patterns: files._replace(
            text={
                path: "".join(line for line in text.splitlines(keepends=True) if " - zfs " not in line)
                for path, text in files.text.items()
                if not path.startswith("/proc/spl/kstat/zfs/") or path.count("/") == 5
            }
        )
        for patterns, files in recording.files.items()
    }
    return replace(recording, commands=commands, files=files, targets=())


@pytest.mark.parametrize(
    ("name", "shows"),
    [
        ("2.1-healthy-mirrored-slog", {"pool-not-imported", "known-bugs"}),
        (
            "2.3-rescue-parameters",
            {"pool-not-imported", "zfs-recover", "zfs-no-scrub-io", "zfs-scan-ignore-errors", "zfs-txg-timeout-large"},
        ),
        ("2.4-healthy-draid", {"pool-not-imported"}),
    ],
)
def test_what_the_host_shows_is_told_and_nothing_of_pools(name: str, shows: set[str]) -> None:
    rules, _ = rulebook.choose((), (), (), NONE)
    recording = without_pools(load(HOSTS / name))
    with pytest.raises(audit.NothingToAudit, match="no pool is imported") as ended:
        audit.look(ReplayHost(recording), (), audit.Options())
    facts = ended.value.facts
    assert facts
    assert not list(facts.subjects("pool"))
    assert not facts.linked(HOST, "pools")
    assert {finding.rule.id for finding in audit.alone(facts, rules)} == shows
