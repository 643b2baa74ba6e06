"""``zaudit verify`` and ``zaudit clean``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from auditor import __version__, audit, rulebook
from auditor.commands import _recorded
from auditor.commands._terminal import note, say
from auditor.commands._verify_plan import ASK_FROM, Refused, VerifyRequest, confirm, described, make_plan, reason
from auditor.diagnose import tracing
from auditor.errors import Stop
from auditor.host import user_files
from auditor.host.live import Host, LiveHost
from auditor.judge.policy import NONE, Policy
from auditor.recording import archive, recording
from auditor.text import harmless
from auditor.verify import comparison, fio, ledger, place, profile, run, trial, verification
from auditor.verify.comparison import compare
from auditor.verify.ledger import UNSEEN, Actor
from auditor.verify.result import Verification
from auditor.verify.verification import Found


def live(request: VerifyRequest, progress: Callable[..., None] | None, steps: run.Progress | None) -> Found | None:
    """Verify on this host; None after a dry run. Raises what the parts raise."""
    asked = profile.load(request.profile)
    if request.slo:
        profile.objectives(request.slo)
    options = audit.Options(policy=request.policy)
    chosen = request.chosen or rules(request.policy)
    before = earlier(request.compare) if request.compare else None
    if request.record:
        archive.possible(request.record)
    for left, wrong in place.clean(ledger.call):
        note(f"zaudit: {harmless(left.path)}, left by an earlier run, {wrong or 'was removed'}")
    machine = LiveHost(request.timeout)  # while fio runs no deadline ends what is read: it would spoil the run
    looked_at = LiveHost(request.timeout, request.deadline)
    host: Host = recording.RecordingHost(looked_at) if request.record else looked_at
    seen = audit.look(host, (request.target,), options, progress)
    planned = make_plan(request, asked, seen)
    refused = list(fio.refusals(planned, seen.facts))
    actor, stands = _actor(machine, planned)
    refused += stands
    if request.dry_run:
        say(described(planned, actor, seen, refused, request.despite))
        return None
    if standing := [each for each in refused if each.override not in request.despite or not each.override]:
        raise Refused("not run: " + "; ".join(map(reason, standing)))
    run.ready(asked, seen.facts)
    if planned.most_bytes > ASK_FROM and not request.yes:
        confirm(planned)
    done = _trial(request, machine, planned, seen, steps)
    unkept = _recorded.keep(host, request.record, (request.target,), options, chosen.rules, trial.to_text(done))
    for each in done.notes:
        note(f"zaudit: {harmless(each)}")
    found = verification.judge(
        seen,
        done,
        chosen.rules,
        (request.target,),
        request.fail_on,
        left_out=chosen.left_out,
        failed_only=request.failed_only,
    )._replace(unkept=unkept)
    return found if before is None else found._replace(comparison=compare(before, found.verification))


def _actor(machine: Host, planned: fio.Plan) -> tuple[Actor, list[fio.Refusal]]:
    """Who fio is to run as, or why it cannot be run."""
    try:
        return run.actor_for(machine, planned), []
    except Stop as error:
        return UNSEEN, [fio.Refusal(str(error))]


def _trial(
    request: VerifyRequest, machine: Host, planned: fio.Plan, seen: audit.Look, steps: run.Progress | None
) -> trial.Trial:
    """With --ab slog the same twice: OpenZFS has no property that keeps a dataset off the SLOG (zio_alloc_zil() asks the log
    class first, always); logbias=throughput is what comes nearest, it leaves pointers there and puts the data elsewhere."""
    done = run.run_trial(machine, planned, seen.facts, request.slo, steps, keep=request.keep)
    if request.ab:
        other = planned._replace(properties=(("logbias", "throughput"),))
        done = done._replace(without=run.run_trial(machine, other, seen.facts, request.slo, steps, keep=request.keep))
    return done


def replayed(
    path: Path, fail_on: Any, compared: Path | None, policy: Policy | None = None, *, failed_only: bool = False
) -> Found:
    """A recorded verification, judged anew. policy: instead of its own."""
    past = _recorded.load(path, "verification", policy)
    chosen = rules(past.policy)
    found = verification.judge(
        past.seen,
        trial.from_text(past.text),
        chosen.rules,
        past.targets,
        fail_on,
        left_out=chosen.left_out,
        failed_only=failed_only,
    )
    return found._replace(comparison=compare(earlier(compared), found.verification)) if compared else found


def earlier(path: Path) -> Verification:
    """The result that a new one is compared with: a JSON report, or a recording of a verification."""
    if path.is_file() and not archive.is_archive(path):
        return comparison.load(user_files.read(path, comparison.LARGEST * 4).decode("utf-8", "surrogateescape"))
    return replayed(path, "low", None).verification


def rules(policy: Policy = NONE) -> rulebook.Chosen:
    """All rules, those about runs of fio among them, but what the policy turns off."""
    return rulebook.choose((), (), (), policy, runs=True)


def rendered(found: Found, format_: str, terminal: Mapping[str, Any]) -> str:
    """The report in a format."""
    parts: dict[str, Any] = {"comparison": found.comparison, "sweep": found.sweep, "zaudit": __version__}
    from auditor.verify import page

    if format_ == "json":
        return page.write_json(found.verification, found.report, **parts)
    if format_ == "html":
        return page.write_html(found.verification, found.report, **parts)
    return page.write_text(found.verification, found.report, **parts, **terminal)


def summary(found: Found) -> str:
    """One line for whoever wrote the report to a file."""
    return f"{found.verification.chain.outcome} (exit code {found.report.exit_code})"


def clean(*, powercut: bool) -> int:
    """Remove what dead runs left; the number of places that could not be removed. powercut: also what waits for its check."""
    failed = 0
    for left, wrong in place.clean(ledger.call, runs=powercut):
        say(f"{harmless(left.path)}: {wrong or 'removed'}")
        failed += bool(wrong)
    if powercut:
        from auditor.powercut import campaign

        campaign.forget()
    for each in ledger.places() if not powercut else ():
        if each.run:
            say(f"{harmless(each.path)}: left for zaudit powercut check; --powercut removes it")
    for name, wrong in tracing.clean():
        say(f"{tracing.ROOT}: {name}: {wrong or 'removed'}")
        failed += bool(wrong)
    for each in ledger.places():
        if ledger.in_use(each):
            say(f"{harmless(each.path)}: in use by process {each.pid}, left alone")
    return failed
