"""``zaudit plan``: the walk over every recorded host, the order of the steps, and the script that makes them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import jsonschema
import pytest

from auditor import audit
from auditor.advice import plan_page, steps
from auditor.advice.steps import Plan, Step
from auditor.commands._schemas import SCHEMAS
from auditor.facts import Fact, Facts, Known, Subject, known
from auditor.judge.event import SEVERITIES
from auditor.judge.rule import Rule
from auditor.judge.supposition import parse
from auditor.recording.recording import ReplayHost
from auditor.report import phrases
from auditor.report.model import Report
from auditor.report.supposed import Side, difference, ranks
from tests.fake import CommandLine
from tests.golden import HOSTS
from tests.shared import audited, each_host, host

# why a finding of medium or more is still there when all steps that set something were made
REASONS = (
    *(
        "an upgrade and a restart",
        "rebuilds the pool",
        "destroys data",
        "hardware",
        "an administrator has to look first",
    ),
    *("a restart", "a decision"),
)
REDUNDANT, ODD = "2.1-properties-that-cost", "2.3-odd-names"


def look(name: str) -> audit.Look:
    past = host(name)
    return audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))


def judge(seen: audit.Look, rules: Sequence[Rule] | None = None) -> Report:
    return audit.judge(seen, rules or audited(), [each.name for each in seen.roots], "low")


@cache
def plan_of(name: str) -> Plan:
    return steps.make(look(name), judge)


def ids(step: Step) -> list[str]:
    return [each.rule.id for each in step.findings]


def settled(found: Plan) -> list[Step]:
    return [each for each in found.steps if each.settings]


# -- the walk ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", each_host())
def test_no_displayed_step_makes_anything_worse(name: str) -> None:
    """The steps that set something are made one after the other, as they are displayed, and judged again."""
    found = plan_of(name)
    seen = audit.suppose(look(name), ())
    before = Side(judge(seen), seen.facts)
    for step in settled(found):
        seen = audit.suppose(seen, [each.change for each in step.settings])
        after = Side(judge(seen), seen.facts)
        changed = difference(before, after)
        assert (changed.worse, changed.new) == ((), ()), ids(step)
        assert step.report is not None
        assert ranks(after.report) == ranks(step.report), "the table of the step is the table after it"
        before = after
    assert before.report.headline == found.after.headline


@pytest.mark.slow
def test_what_is_left_after_the_walk_has_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Every finding of medium or more that had something to set is gone; each of the others has a reason."""
    fixed: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    unfixed: dict[tuple[str, str], str] = {}
    for name in HOSTS.names():
        found = plan_of(name)
        grave = {(each.rule.id, each.place) for each in found.now.findings if each.failed and each.severity != "low"}
        still = {(each.rule.id, each.place) for each in found.after.findings if each.failed and each.severity != "low"}
        by_hand = {
            (each.rule.id, each.place): step for step in found.steps if not step.settings for each in step.findings
        }
        left = {(each.finding.rule.id, each.finding.place): each.reason for each in found.left}
        fixed.update(id for id, _ in grave - still)
        for key in still:
            assert key in by_hand or key in left, f"{name}: {key} has neither a step nor a reason"
            reason = by_hand[key].person if key in by_hand else "a step would make something worse"
            reasons[reason] += 1
        unfixed |= {(name, id): reason for (id, _), reason in left.items() if (id, _) in still}
    assert set(reasons) <= {*REASONS, "a step would make something worse"}
    assert [key for key, reason in unfixed.items() if not reason.startswith(("it brings", "alone it makes"))] == []
    assert list(unfixed) == [("2.3-network-attached", "multihost-off-shared")], "and no other"
    assert sum(fixed.values()) > 20
    with capsys.disabled():
        print(f"\n{sum(fixed.values())} findings of medium or more are gone: {dict(fixed)}")
        print(f"{sum(reasons.values())} are left: {dict(reasons)}")


# -- the order ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_where_steps_improve_the_worst_row_the_first_step_of_plan_and_page_is_one_of_them() -> None:
    improved = 0
    for name in HOSTS.names():
        found = plan_of(name)
        now, after = ranks(found.now), ranks(found.after)
        worst = max(now.values(), default=0)
        at = {cell for cell, rank in now.items() if rank == worst > after.get(cell, 0)}
        if at and not found.steps[0].findings[0].rule.damage:
            improved += 1
            assert at & {*found.steps[0].better}, name
            first = phrases.first(found.now)
            assert first is not None, name
            helping = {id for step in found.steps if at & {*step.better} for id in ids(step)}
            assert first[1].rule.id in helping, name
    assert improved > 10


def test_the_first_step_gains_most_at_the_worst_row() -> None:
    found = plan_of("2.3-sync-disabled-local")
    assert ids(found.steps[0]) == ["sync-disabled"]
    assert ("tank/db", "crash", "commits") in found.steps[0].better


def test_damage_comes_first() -> None:
    found = plan_of("2.3-permanent-errors")
    damage = [each.findings[0].rule.damage for each in found.steps]
    assert damage == sorted(damage, reverse=True)
    assert damage[0]


def test_pages_are_guarded_before_the_log_may_split_them() -> None:
    found = plan_of("2.3-db-postgres-on-zvol")
    assert [ids(each) for each in settled(found)][:2] == [["torn-page-guard-off"], ["sync-disabled"]]


def test_a_restart_brings_what_the_files_say_and_waits_for_them() -> None:
    """innodb_doublewrite needs a restart, and the file has sync_binlog=0: alone the step would lose commits."""
    found = plan_of("2.3-db-mariadb-doublewrite-off")
    step = next(each for each in settled(found) if "torn-page-guard-off" in ids(each))
    assert "db-changes-at-restart" in ids(step)
    assert [each.change.text for each in step.settings][-1] == "mariadb 388 restart"
    assert step.report is not None
    assert ranks(step.report, next_boot=True)["tank/db", "crash", ""] == 0


def test_a_step_says_each_thing_once() -> None:
    found = plan_of("2.3-db-mariadb-doublewrite-off")
    page, script = plan_page.markdown(found), plan_page.script(found)
    assert not re.search("at `(.+?)`: \\1: ", page)
    assert not re.search("^# (.+): \\1: ", script, re.MULTILINE)
    assert "- Undo: \n" not in page


def test_a_script_does_not_make_what_waits_for_a_person() -> None:
    """Whoever runs the script may not have made the step before it."""
    guard, sync = settled(plan_of("2.3-db-postgres-on-zvol"))[:2]
    assert guard.person
    assert "full_page_writes" in sync.person
    assert "\nzfs set" not in plan_page.script(plan_of("2.3-db-postgres-on-zvol"))


def test_a_restart_comes_after_what_may_keep_the_host_from_coming_up() -> None:
    found = plan_of("2.1-degraded-mirror")
    order = [id for step in found.steps for id in ids(step)]
    assert order.index("pool-degraded") < order.index("known-bugs")
    assert order[-1] == "known-bugs"


def test_two_steps_that_only_help_together_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """sync=disabled below a module that flushes nothing: either fix alone leaves the commits lost."""
    seen = look("2.3-sync-disabled-local")
    seen = audit.suppose(seen, [parse("zfs zil_nocacheflush=1")])
    real = difference

    def in_series(before: Side, after: Side) -> object:
        """The table as a model has it in which each of the two hides the other."""
        return real(hidden(before), hidden(after))

    def hidden(side: Side) -> Side:
        return side._replace(report=shown(side.report))

    def shown(report: Report) -> Report:
        failed = {each.rule.id for each in report.findings if each.failed}
        if not failed & {"sync-disabled", "zil-nocacheflush"}:
            return report
        columns = tuple(
            column._replace(cells={event: max(column.cells.values(), key=worst) for event in column.cells})
            for column in first.columns
        )
        return report._replace(columns=columns)

    def worst(cell: object) -> int:
        return steps.OUTCOMES.index(cell.outcome)  # type: ignore[attr-defined]

    first = judge(seen)
    monkeypatch.setattr(steps, "difference", in_series)
    found = steps.make(seen, lambda each: shown(judge(each)))
    assert sorted(ids(settled(found)[0])) == ["sync-disabled", "zil-nocacheflush"]
    assert len(settled(found)[0].settings) == 2


def test_a_host_without_findings_has_no_step() -> None:
    found = plan_of("2.4-healthy-physical-no-cache")
    assert (found.steps, found.left) == ((), ())
    assert "No step to take." in plan_page.markdown(found)


# -- the pages ---------------------------------------------------------------------------------------------------------


def test_the_page_shows_what_comes_first_and_how_to_take_it_back(zaudit: CommandLine) -> None:
    done = zaudit("plan", "--replay", HOSTS / "2.3-sync-disabled-local")
    assert (done.code, done.err) == (0, "")
    step = done.out.split("\n## Step ")[1]
    for line in (
        "- If neither full\\_page\\_writes nor innodb\\_doublewrite is off:",
        "- Do: `zfs set sync=standard tank/db`",
        "- Watch: latency of commits: zpool iostat -l 5",
        "- Undo: `zfs set sync=disabled tank/db`",
    ):
        assert line in step.splitlines()
    assert "\n- Then: " in step
    after = plan_of("2.3-sync-disabled-local").steps[0].report
    assert after
    assert ranks(after)["tank/db", "crash", ""] == 0, "nothing is lost after it"


def test_a_value_that_nobody_set_is_inherited_again() -> None:
    undo = {each.change.text: each.undo for step in settled(plan_of(REDUNDANT)) for each in step.settings}
    assert undo["tank atime=off"] == "zfs inherit atime tank"
    assert undo["tank/dedup dedup=off"] == "zfs set dedup=on tank/dedup"


def test_programs_read_it_as_json(zaudit: CommandLine) -> None:
    done = zaudit("plan", "tank/db", "--replay", HOSTS / "2.3-sync-disabled-local", "--format", "json")
    found = json.loads(done.out)
    assert (found["schema"], found["targets"]) == ("zaudit-plan/1", ["tank/db"])
    jsonschema.Draft202012Validator(SCHEMAS["plan"]()).validate(found)
    first = found["steps"][0]
    assert first["sets"] == ["tank/db sync=standard"]
    assert first["commands"] == ["zfs set sync=standard tank/db"]
    assert (found["now"]["exit_code"], first["then"]["exit_code"]) == (14, 13)


def test_a_live_host_is_planned_for_like_its_recording(zaudit: CommandLine) -> None:
    recorded = zaudit("plan", "--replay", HOSTS / "2.3-sync-disabled-local")
    past = host("2.3-sync-disabled-local")
    zaudit.host = ReplayHost(past)  # type: ignore[assignment]
    live = zaudit("plan", *past.targets)
    assert (live.code, live.out) == (0, recorded.out)


def test_a_target_that_is_not_there_is_an_error(zaudit: CommandLine) -> None:
    done = zaudit("plan", "tank/dbb", "--replay", HOSTS / "2.3-sync-disabled-local")
    assert done.code == 3
    assert "tank/dbb" in done.err


def test_what_is_waived_needs_no_step(zaudit: CommandLine, tmp_path: Path) -> None:
    policy = tmp_path / "zaudit.toml"
    policy.write_text(
        '[[waiver]]\nrule = "sync-disabled"\ndataset = "tank/db"\nowner = "ann"\nreason = "lab"\nexpires = 2099-01-01\n'
    )
    done = zaudit("plan", "--replay", HOSTS / "2.3-sync-disabled-local", "--policy", policy, "--format", "json")
    rules = {each["rule"] for step in json.loads(done.out)["steps"] for each in step["findings"]}
    assert rules
    assert "sync-disabled" not in rules


def test_a_file_is_written_for_its_owner_alone(zaudit: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "plan.sh"
    done = zaudit("plan", "--replay", HOSTS / REDUNDANT, "--format", "sh", "-o", file)
    assert (done.code, done.out) == (0, "")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text().startswith("#!/usr/bin/env bash\n")


# -- the script --------------------------------------------------------------------------------------------------------

TOOL = r"""#!/bin/bash
# answers as zfs and zpool do from files in $STATE, one a value, and writes down what is set
program=${0##*/}
case "$1 $2 $3 $4" in
"get -Hp -o value")
    cat "$STATE/$program $5 ${6//\//_}" ;;
set\ *)
    printf '%s\n' "$program $*" >> "$STATE/done"
    [ -e "$STATE/refuse" ] && exit 1
    printf '%s\n' "${2#*=}" > "$STATE/$program ${2%%=*} ${3//\//_}" ;;
*)
    echo "$program: $*" >&2; exit 2 ;;
esac
"""


class World:
    """A host for a script: zfs, zpool and uname that answer from files."""

    def __init__(self, folder: Path, found: Plan) -> None:
        self.folder, self.bin = folder / "state", folder / "bin"
        self.folder.mkdir()
        self.bin.mkdir()
        for name in ("zfs", "zpool"):
            self._program(name, TOOL)
        self._program("uname", f"#!/bin/bash\necho {shlex.quote(found.now.hostname)}\n")
        for name, guid in found.pools:
            self.answer("zpool", "guid", name, guid)
        for step in settled(found):
            for each in step.settings:
                if not step.person:
                    program = each.read.split()[0]
                    self.answer(program, each.change.name, each.change.subject, each.first)
        self.script = plan_page.script(found)

    def _program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def answer(self, program: str, name: str, subject: str, value: str) -> None:
        (self.folder / f"{program} {name} {subject.replace('/', '_')}").write_text(f"{value}\n")

    def run(self) -> subprocess.CompletedProcess[str]:
        path = f"{self.bin}{os.pathsep}/usr/bin{os.pathsep}/bin"
        return subprocess.run(
            ["bash"],
            input=self.script,
            env={"PATH": path, "STATE": str(self.folder)},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def done(self) -> list[str]:
        path = self.folder / "done"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def world(tmp_path: Path) -> World:
    if not shutil.which("bash"):
        pytest.skip("bash is not installed")
    return World(tmp_path, plan_of(REDUNDANT))


def test_the_script_makes_the_safe_steps_in_order(world: World) -> None:
    done = world.run()
    assert (done.returncode, done.stderr) == (0, "")
    wanted = [each.run for step in settled(plan_of(REDUNDANT)) if not step.person for each in step.settings]
    assert world.done == wanted
    assert len(wanted) > 5
    assert done.stdout.splitlines()[-1].startswith("Done; 6 manual steps are comments above")


def test_it_stops_on_another_host(world: World) -> None:
    world._program("uname", "#!/bin/bash\necho other\n")
    done = world.run()
    assert done.returncode == 1
    assert "the name of this host is 'other'" in done.stderr
    assert world.done == []


def test_it_stops_at_another_pool_of_the_same_name(world: World) -> None:
    world.answer("zpool", "guid", "tank", "42")
    done = world.run()
    assert done.returncode == 1
    assert "the GUID of pool tank is '42'" in done.stderr
    assert world.done == []


def test_it_changes_nothing_where_one_value_is_no_longer_what_it_was(world: World) -> None:
    last = [each for step in settled(plan_of(REDUNDANT)) if not step.person for each in step.settings][-1]
    world.answer("zfs", last.change.name, last.change.subject, "another")
    done = world.run()
    assert done.returncode == 1
    assert f"{last.change.name} of {last.change.subject} is 'another'" in done.stderr
    assert world.done == []


def test_it_stops_at_the_first_error(world: World) -> None:
    (world.folder / "refuse").touch()
    assert world.run().returncode == 1
    assert len(world.done) == 1


def test_it_stops_where_a_tool_is_missing(world: World) -> None:
    (world.bin / "zpool").unlink()
    done = world.run()
    assert done.returncode != 0
    assert world.done == []


def test_it_stops_where_the_guid_of_a_pool_was_not_seen(tmp_path: Path) -> None:
    found = plan_of(REDUNDANT)
    world = World(tmp_path, found._replace(pools=tuple((name, "") for name, _ in found.pools)))
    done = world.run()
    assert done.returncode == 1
    assert "was not seen" in done.stderr
    assert world.done == []


@pytest.mark.parametrize("name", each_host())
def test_steps_that_rebuild_destroy_or_restart_are_comments(name: str) -> None:
    found = plan_of(name)
    allowed = {each.run for step in settled(found) if not step.person for each in step.settings}
    for step in found.steps:
        costs = {verdict.fix.cost for each in step.findings for verdict in each.verdicts}
        assert step.person or costs == {"safe"}
    form = re.compile(
        r"(zfs|zpool) set |echo \S+ > /sys/module/zfs/parameters/\w+$|echo .+ > /sys/block/\S+/queue/write_cache$"
    )
    assert all(form.match(each) for each in allowed)
    body = plan_page.script(found).split(plan_page.HEAD)[1].splitlines()
    other = [
        line for line in body if line and not line.startswith(("#", "is ", "printf ", "stop ")) and line not in allowed
    ]
    assert other == []


HOSTILE = "t/'; touch PASTED; $(touch PASTED) `touch PASTED`\nrm -rf x\n# \x1b[2J\u202e&&"


def test_a_precondition_stands_once() -> None:
    """Also where it is why a person makes the step."""
    found = plan_of("2.3-sync-disabled-local")
    needs = found.steps[0].findings[0].fix.needs.lower().partition("_")[0]  # Markdown escapes what follows
    assert found.steps[0].person.startswith(needs)
    assert plan_page.script(found).lower().count(needs) == plan_page.markdown(found).lower().count(needs) == 1


def test_no_name_is_more_than_a_word(tmp_path: Path) -> None:
    """Of datasets, pools and hosts, in the page, too."""
    seen = look("2.3-sync-disabled-local")
    facts = renamed(seen.facts, {"tank/db": f"tank/{HOSTILE}"})
    facts.replace(Fact(Subject("host", "host"), "hostname", known(HOSTILE, "uname -n")))
    found = steps.make(seen._replace(facts=facts), partial(judge, rules=audited()))
    made = [each._replace(person="") for each in settled(found)]
    assert made
    found = found._replace(steps=tuple(made))
    world = World(tmp_path, found._replace(steps=()))
    world.script = plan_page.script(found)
    for each in (setting for step in made for setting in step.settings):
        counted = subprocess.run(
            ["bash", "-c", f"set -- {each.read}; echo $#"], capture_output=True, text=True, check=True
        )
        assert counted.stdout == "7\n", "zfs get -Hp -o value NAME DATASET"
    done = world.run()
    assert done.returncode == 1
    assert not list(tmp_path.rglob("PASTED"))
    assert not any(line.startswith(("rm ", "touch ")) for line in world.script.splitlines())
    assert "\x1b" not in world.script + plan_page.markdown(found)
    assert "\u202e" not in world.script + plan_page.markdown(found)
    document = json.loads(plan_page.document(found))
    assert document["steps"]
    jsonschema.Draft202012Validator(SCHEMAS["plan"]()).validate(document)


def renamed(facts: Facts, names: dict[str, str]) -> Facts:
    """The same with some datasets called otherwise, wherever they are linked to."""

    def other(value: object) -> object:
        if isinstance(value, Subject) and value.kind == "dataset":
            return value._replace(name=names.get(value.name, value.name))
        return tuple(map(other, value)) if type(value) is tuple else value

    found = Facts(facts.now)
    for subject, name, value in facts:
        new = Known(other(value.value), value.evidence) if isinstance(value, Known) else value  # type: ignore[arg-type]
        found.put(Fact(other(subject), name, new))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("name", [REDUNDANT, ODD, "2.3-rescue-parameters", "2.3-write-through-after-import"])
def test_shellcheck_has_nothing_to_say(name: str) -> None:
    if not (program := shutil.which("shellcheck")):
        pytest.skip("shellcheck is not installed")
    script = plan_page.script(plan_of(name))
    done = subprocess.run([program, "-"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_severities_order_the_steps_that_change_no_row() -> None:
    found = plan_of(REDUNDANT)
    rest = [each for each in found.steps if not each.better and not each.findings[0].rule.damage]
    order = [max(SEVERITIES.index(each.severity) for each in step.findings) for step in rest]
    assert order == sorted(order, reverse=True)
