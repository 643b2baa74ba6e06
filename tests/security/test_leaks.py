"""What sudo lets somebody read with zaudit is what zaudit reports: an error about a file says where and what is wanted, and
repeats nothing that is in it."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from auditor.commands._options import Local, Output
from auditor.fleet import workers
from auditor.report import report_json
from tests.commands.test_options import named_commands
from tests.fake import CommandLine, Result
from tests.folded import for_each
from tests.golden import CANONICAL, HOSTS, report_of

REC = HOSTS / CANONICAL
WRITES = {  # or runs
    *("check --record", "verify --record", "diagnose --record", "record --output", "alert --hook"),
    *("powercut witness --store", "powercut witness --cut"),
    *("powercut check --key", "powercut resume --key"),  # the same reader as that of start, once there is a run
}
SECRET = "S3CRET"
HASH = f"root:$y$j9T${SECRET}$abc:19000:0:99999:7:::\n"
# a file of plain words is an inventory, and each is named as a host that is missing
HOSTS_BY_LUCK = {("fleet judge --inventory", "one-line")}
FILES = {
    "shadow": HASH * 2,
    "one-line": SECRET,
    "comment": f"# {SECRET}\n; {SECRET}: x\n",
    "blanks": f"{SECRET} one two\n\t{SECRET}\tthree\n",
    "pgpass": f"localhost:5432:*:root:{SECRET}\n",
    "environment": f"TOKEN={SECRET}\nexport {SECRET}=1\n",
    "ini": f"[client]\nuser = root\npassword = {SECRET}\n[{SECRET}]\nx=1\n",
    "fio": f"[global]\ndirectory={SECRET}\n[{SECRET}]\n{SECRET}={SECRET}\nrw={SECRET}\n",
    "fio-value": f"; slo: {SECRET}\n[global]\nioengine=psync\ndirectory=${{ZAUDIT_DIRECTORY}}\n[a]\nrw={SECRET}\nbs={SECRET}\n",
    "toml": f'password = "{SECRET}"\n',
    "toml-table": f'[database]\npassword = "{SECRET}"\n[{SECRET}]\nx = 1\n',
    "toml-policy": f'[roles]\n{SECRET} = "{SECRET}"\n',
    "toml-key": f"[rules]\n[{SECRET}]\nx = 1\n",
    "toml-twice": f"{SECRET} = 1\n[{SECRET}]\n[{SECRET}.{SECRET}]\nx = {{{SECRET} = 1, {SECRET} = 2}}\n",
    "toml-inline": f"x = {{{SECRET} = 1, {SECRET} = 2}}\n",
    "toml-headers": f"[{SECRET}]\n[{SECRET}]\n",
    "toml-broken": f'password = "{SECRET}\n{SECRET}\n',
    "pem": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n",
    "json-string": json.dumps(SECRET),
    "json-list": json.dumps([SECRET, {SECRET: SECRET}]),
    "json-number": json.dumps({"schema": 7, "key": SECRET}),
    "json-key": json.dumps({"type": "service_account", "private_key": SECRET, SECRET: 1}),
    "json-schema": json.dumps({"schema": SECRET, "kind": SECRET}),
    "json-broken": '{"key": "' + SECRET,
    "json-lines": json.dumps({"schema": SECRET}) + "\n" + json.dumps({"kind": SECRET, "schema": SECRET}) + "\n",
    "json-line": json.dumps({"schema": "zaudit-lines/1", "kind": SECRET}) + "\n",
    "json-report": json.dumps({"schema": "zaudit-report/2", "host": SECRET, "exit_code": SECRET, "threshold": SECRET}),
    "json-baseline": json.dumps({"schema": "zaudit-baseline/2", "entries": [SECRET], "made": SECRET, SECRET: SECRET}),
    "json-result": json.dumps({"schema": "zaudit-verify/1", "host": SECRET, SECRET: [SECRET]}),
    "json-manifest": json.dumps({"schema": SECRET, "captures": [SECRET]}),
    "xml": f"<secret>{SECRET}</secret>\n",
    "bytes": f"\x1f\x8b{SECRET}\x00\xff",
}
# of each option and argument that names what is read: the command line, with FILE, or FOLDER for one that has FILE as x.toml
READS = {
    "check --replay": ("check", "--replay", "FILE"),
    "check --replay folder": ("check", "--replay", "FOLDER"),
    "check --replay archive": ("check", "--replay", "ARCHIVE"),
    "check --policy": ("check", "--replay", REC, "--policy", "FILE"),
    "check --rules": ("check", "--replay", REC, "--rules", "FOLDER"),
    **{
        f"baseline {verb} {name}": ("baseline", verb, *words)
        for verb in ("accept", "update")
        for name, words in {
            "file": ("FILE", "--replay", REC),
            "--replay": ("NONE", "--replay", "FILE"),
            "--policy": ("NONE", "--replay", REC, "--policy", "FILE"),
            "--rules": ("NONE", "--replay", REC, "--rules", "FOLDER"),
        }.items()
    },
    "baseline show file": ("baseline", "show", "FILE"),
    "baseline remove file": ("baseline", "remove", "FILE", "sync-disabled"),
    "plan --replay": ("plan", "--replay", "FILE"),
    "plan --policy": ("plan", "--replay", REC, "--policy", "FILE"),
    "plan --rules": ("plan", "--replay", REC, "--rules", "FOLDER"),
    "verify --profile": ("verify", "tank", "--profile", "FILE", "--dry-run"),
    "verify --compare": ("verify", "tank", "--compare", "FILE"),
    "verify --replay": ("verify", "--replay", "FILE"),
    "verify --policy": ("verify", "tank", "--policy", "FILE", "--dry-run"),
    "diagnose --replay": ("diagnose", "--replay", "FILE"),
    "diagnose --policy": ("diagnose", "tank", "--policy", "FILE"),
    "checklist --replay": ("checklist", "tank", "--replay", "FILE"),
    "checklist --policy": ("checklist", "tank", "--replay", REC, "--policy", "FILE"),
    "record --redact-key": ("record", "--redact-key", "FILE", "-o", "NEW"),
    "record --policy": ("record", "--policy", "FILE", "-o", "NEW"),
    "rules --rules": ("rules", "--rules", "FOLDER"),
    "explain --rules": ("explain", "sync-disabled", "--rules", "FOLDER"),
    "advise db --replay": ("advise", "db", "postgres", "tank", "--replay", "FILE"),
    "advise log --replay": ("advise", "log", "tank", "--replay", "FILE"),
    "advise log --since": ("advise", "log", "tank", "--replay", REC, "--since", "FILE"),
    "diff old": ("diff", "FILE", "REPORT"),
    "diff new": ("diff", "REPORT", "FILE"),
    "diff --rules": ("diff", REC, REC, "--rules", "FOLDER"),
    "show report": ("show", "FILE"),
    "alert report": ("alert", "FILE", "--hook", "/bin/true"),
    "policy check file": ("policy", "check", "FILE"),
    "policy check --rules": ("policy", "check", "FILE", "--rules", "FOLDER"),
    "record --replay": ("record", "-o", "NONE", "--replay", "FILE"),
    "policy init --replay": ("policy", "init", "--replay", "FILE"),
    "fleet judge --inventory": ("fleet", "judge", "NONE", "-q", "--inventory", "FILE"),
    "fleet judge --rules": ("fleet", "judge", "NONE", "-q", "--rules", "FOLDER"),
    "fleet judge --policy": ("fleet", "judge", "NONE", "-q", "--policy", "FILE"),
    "fleet judge recordings": ("fleet", "judge", "FILE", "-q"),
    "fleet check --rules": ("fleet", "check", "--cluster", "postgres", REC, REC, "--rules", "FOLDER"),
    "fleet check recordings": ("fleet", "check", "--cluster", "postgres", "FILE"),
    "fleet report rows": ("fleet", "report", "FILE"),
    "fleet report --since": ("fleet", "report", "ROWS", "--since", "FILE"),
    "selftest --rules": ("selftest", "--rules", "FOLDER"),
    "powercut start --key": ("powercut", "start", "tank", "--witness", "localhost", "--key", "FILE"),
    "powercut witness --key": ("powercut", "witness", "--key", "FILE", "--store", "NEW"),
    "powercut report stores": ("powercut", "report", "FOLDER"),
}


@pytest.mark.parametrize("option", READS)
def test_no_error_repeats_what_is_in_a_file(
    option: str, zaudit: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # in this process, which says the same (tests/fleet/test_workers.py): no process for each of these files
    monkeypatch.setattr(workers, "judge_all", lambda names, how, _: (workers.judge_lines(name, how) for name in names))
    (tmp_path / "rows").touch()
    report = tmp_path / "report.json"
    report.write_text(report_json.render(report_of(REC)))
    names = {"REPORT": report, "NEW": tmp_path / "new", "ROWS": tmp_path / "rows", "NONE": tmp_path / "none.tar.gz"}

    def run(folder: Path) -> Result:
        places = {**names, "FILE": folder / "x.toml", "FOLDER": folder, "ARCHIVE": folder / "x.tar.gz"}
        done = zaudit(*(places.get(str(word), word) for word in READS[option]))
        return done._replace(err=done.err.replace(str(folder), ""))

    absent = run(tmp_path / "absent")
    answers = []

    @for_each("kind", [kind for kind in FILES if (option, kind) not in HOSTS_BY_LUCK])
    def each(kind: str) -> None:
        (folder := tmp_path / kind).mkdir()
        for name in ("x.toml", "manifest.json"):
            (folder / name).write_bytes(FILES[kind].encode("latin-1"))
        with tarfile.open(folder / "x.tar.gz", "w:gz") as archive:
            archive.add(folder / "x.toml", f"{SECRET}/{kind}" if kind == "shadow" else "manifest.json")
        done = run(folder)
        assert SECRET not in done.out
        assert SECRET not in done.err
        assert "root:" not in done.out + done.err
        answers.append(done)

    each()
    assert [done for done in answers if done != absent], "nobody read it"


def test_every_option_that_names_what_is_read_is_tried() -> None:
    found = {
        f"{name} {parameter.opts[-1] if parameter.opts[-1].startswith('-') else parameter.name}"
        for name, each in named_commands()
        for parameter in each.params
        if isinstance(parameter.type, Local) and not isinstance(parameter.type, Output)
    }
    assert found - WRITES <= set(READS)
