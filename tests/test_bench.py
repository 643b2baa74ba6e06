"""The large hosts of the benchmark are hosts: what is measured is what a user would wait for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from auditor import audit
from auditor.facts import HOST, Subject
from auditor.host.live import Host
from auditor.host.request import Capture, Files, Read
from auditor.recording import recording
from auditor.recording.recording import Recording, RecordingHost, ReplayHost
from auditor.report import audit as audit_page
from tests import shared
from tests.bench import pools, synthetic, tools
from tests.bench.__main__ import RECORDING


@pytest.fixture(scope="module")
def small() -> Recording:
    return recording.load(RECORDING)


def findings(host: Host) -> tuple[str, set[tuple[str, Subject, str]]]:
    seen = audit.look(host, (), audit.Options())
    report = audit.judge(seen, shared.audited(), (), "low")
    return report.standing, {(each.rule.id, each.subject, each.outcome) for each in report.verdicts}


@pytest.mark.parametrize(("drives", "datasets"), [(4, 0), (24, 130), (60, 3)])
def test_a_large_host_is_whole(small: Recording, drives: int, datasets: int) -> None:
    recorded = len(list(audit.look(ReplayHost(small), (), audit.Options()).facts.subjects("dataset")))
    facts = audit.look(ReplayHost(synthetic.large(small, drives, datasets)), (), audit.Options()).facts
    leaves = list(facts.subjects("leaf"))
    assert len(leaves) == drives
    assert len({disk for leaf in leaves for disk in facts.linked(leaf, "disks")}) == drives
    assert len(list(facts.subjects("vdev"))) == drives // 2
    assert len(list(facts.subjects("dataset"))) == recorded + datasets
    unknown = [
        (leaf, name) for leaf in leaves for name in ("state", "path") if not hasattr(facts.get(leaf, name), "value")
    ]
    assert unknown == []


@pytest.mark.slow
def test_a_host_of_scripts_answers_as_its_recording_does(small: Recording, tmp_path: Path) -> None:
    large = synthetic.large(small, 8, 5)
    asking = RecordingHost(ReplayHost(large))  # a script answers to the very words, a recording to what is asked
    audit.look(asking, (), audit.Options())
    large = asking.recording((), large.options, large.zaudit, "")
    tools.lay_out(large, tmp_path / "host", scale=0.0)
    one, other = findings(tools.ToolHost(tmp_path / "host", large.taken)), findings(ReplayHost(large))
    assert one[0] == other[0]
    decided = {
        each for each in other[1] if each[2] != "unknown"
    }  # a file that was not asked for is not there, of scripts
    assert decided - one[1] == set()
    assert len(decided) > 500


@pytest.mark.slow
@pytest.mark.parametrize("case", ["2.3-db-postgres-healthy", "2.3-stacked-devices", "2.1-degraded-mirror"])
def test_other_recordings_can_be_laid_out_as_well(case: str, tmp_path: Path) -> None:
    past = shared.host(case)
    tools.lay_out(past, tmp_path / "host", scale=0.0)
    host = tools.ToolHost(tmp_path / "host", past.taken)
    for patterns, files in past.files.items():
        if files.links and not any("*" in pattern for pattern in patterns):
            assert host.read(Read(patterns)).links == files.links


def test_a_file_behind_an_absolute_link_is_not_written(tmp_path: Path) -> None:
    link = Files({"/etc/a/b": "mine"}, {"/etc/a": str(tmp_path)})
    with pytest.raises(PermissionError, match="/etc/a/b leads out of"):
        tools.lay_out(Recording(0.0, 0, (), files={("/etc/a/b",): link}), tmp_path / "host", scale=0.0)
    assert not (tmp_path / "b").exists()


def test_the_longest_chain(small: Recording) -> None:
    def chain(**seconds: float) -> float:
        took = {
            argv: Capture(0, seconds=next((s for word, s in seconds.items() if word in " ".join(argv)), 0.0))
            for argv in small.commands
        }
        return tools.longest_chain(replace(small, commands=took))

    assert chain(zdb=5.0, smartctl=1.0) == 5.0
    assert chain(zdb=5.0, list=1.0) == 6.0
    assert chain(status=2.0, smartctl=4.0, list=1.0) == 7.0
    assert chain(udevadm=9.0, smartctl=1.0) == 10.0


def test_a_host_of_many_pools(small: Recording) -> None:
    """Each is whole; what decides the gravest rules is asked of all of them first; and the page says of what does not fit on it
    how many there are and where."""
    asking = RecordingHost(ReplayHost(pools.with_pools(synthetic.large(small, 6, 80), 7)))
    seen = audit.look(asking, (), audit.Options())
    facts = seen.facts
    assert len(facts.linked(HOST, "pools")) == 7
    leaves = list(facts.subjects("leaf"))
    assert len({disk for leaf in leaves for disk in facts.linked(leaf, "disks")}) == len(leaves) == 42
    for pool in facts.linked(HOST, "pools"):
        assert len(facts.linked(pool, "datasets")) == 83
        assert {each.name.partition("/")[0] for each in facts.linked(pool, "datasets")} == {pool.name}
    asked = [" ".join(argv[:2]) for argv in asking.commands if argv[0] in ("zfs", "zpool")]
    decisive = [
        at
        for at, argv in enumerate(argv for argv in asking.commands if argv[0] in ("zfs", "zpool"))
        if "sync" in ",".join(argv).split(",")
    ]
    assert asked.index("zpool history") > decisive[-1] > 7
    page = audit_page.write_text(audit.judge(seen, shared.audited(), (), "low"), width=140)
    assert "tank, tank01, tank02, tank03, tank04, tank05 and 1 more on zlab" in page
    page = " ".join(page.split())
    where = "(3 datasets: tank04/app000/db077, tank05/app000/db077 and 1 more)"
    assert f" MORE critical: sync-disabled {where}; medium: container-or-vm-blind (host) " in page
