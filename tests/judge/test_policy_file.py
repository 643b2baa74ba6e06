"""/etc/zaudit/zaudit.toml with conf.d beside it: one policy, each line of which knows its file."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from auditor.commands import _auditing
from auditor.judge import policy_file
from auditor.judge.policy import NONE, Policy, PolicyError, select
from tests import shared

WAIVER = """
[[waiver]]
rule    = "slog-no-redundancy"
host    = "db1"
owner   = "storage@example.org"
reason  = "the second log device is ordered"
expires = 2027-01-31
"""


def etc(monkeypatch: pytest.MonkeyPatch, folder: Path, **texts: str) -> Path:
    """/etc/zaudit with these files; main is zaudit.toml, the others are in conf.d."""
    home = folder / "zaudit"
    (home / "conf.d").mkdir(parents=True, mode=0o755)
    for name, text in texts.items():
        path = home / "zaudit.toml" if name == "main" else home / "conf.d" / f"{name}.toml"
        path.write_text(text)
        path.chmod(0o644)
    monkeypatch.setattr(policy_file, "PATH", str(home / "zaudit.toml"))
    monkeypatch.setattr(policy_file, "FOLDER", str(home / "conf.d"))
    return home


def test_all_files_are_one_policy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = etc(
        monkeypatch, tmp_path, main='[rules]\natime-on = "off"\n', storage=WAIVER, db='[rules]\nzfs-recover = "low"'
    )
    found = _auditing.read_policy(None)
    assert dict(found.rules).keys() == {"atime-on", "zfs-recover"}
    assert [waiver.rule for waiver in found.waivers] == ["slog-no-redundancy"]
    assert found.place(found.waivers[0].line) == (str(home / "conf.d" / "storage.toml"), 2)
    assert found.place(found.rules["zfs-recover"][1]) == (str(home / "conf.d" / "db.toml"), 2)
    assert found.files == tuple(str(home / name) for name in ("zaudit.toml", "conf.d/db.toml", "conf.d/storage.toml"))
    assert policy_file.parse(found.text, found.path) == found, "as a recording reads it"
    bare = policy_file.parse(policy_file.bare(found), "redacted")
    assert bare.rules.keys() == found.rules.keys()


def test_every_entry_knows_its_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = {
        "answer": '[[answer]]\nhypervisor = "flushes honoured"\nowner = "ann"\nreason = "x"\nexpires = 2027-01-31\n',
        "dataset": '[datasets."tank/db"]\nrole = "log"\n',
        "threshold": "[thresholds]\npool-nearly-full.nearly_full = 85\n",
        "waiver": WAIVER,
    }
    home = etc(monkeypatch, tmp_path, main='[rules]\natime-on = "off"\n', **texts)
    found = _auditing.read_policy(None)
    lines = {
        "answer": (found.answers[0].line, 1),
        "dataset": (found.datasets[0].line, 1),
        "threshold": (found.thresholds["pool-nearly-full"]["nearly_full"].line, 2),
        "waiver": (found.waivers[0].line, 2),
    }
    for name, (line, own) in lines.items():
        assert found.place(line) == (str(home / "conf.d" / f"{name}.toml"), own)


def test_each_file_begins_with_its_name_and_ends_with_one_line_break() -> None:
    text = policy_file.joined([("a", "x = 1\n\n"), ("b", "y = 2")])
    assert text == "#= file: a\nx = 1\n#= file: b\ny = 2\n"


def test_names_are_quoted_as_toml_reads_them() -> None:
    for name in ('tank/"db"', "a\\b", "a\x00\x1f\x7f", "\u00e4"):
        assert tomllib.loads(f"name = {policy_file.quoted(name)}") == {"name": name}


def test_one_file_alone_is_as_ever(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = etc(monkeypatch, tmp_path, main=WAIVER)
    found = _auditing.read_policy(None)
    assert (found.path, found.text) == (str(home / "zaudit.toml"), WAIVER)
    assert found.place(2) == (str(home / "zaudit.toml"), 2)
    (home / "zaudit.toml").unlink()
    assert _auditing.read_policy(None) == NONE
    (home / "conf.d").rmdir()
    home.rmdir()
    assert _auditing.read_policy(None) == NONE


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        (
            '[rules]\natime-on = "off"',
            '\n[rules]\natime-on = "low"',
            "b.toml, line 3: rule atime-on is also decided in",
        ),
        (WAIVER, WAIVER, "b.toml, line 2: waiver slog-no-redundancy of host db1 is also decided in"),
        (
            '[datasets."tank/db"]\nrole = "log"',
            '[datasets."tank/db"]\nrole = "data"',
            "dataset tank/db is also decided in",
        ),
        (
            "[thresholds]\na.x = 1",
            "[thresholds]\n\na.y = 1\na.z = 2",
            "b.toml, line 3: thresholds of a is also decided in",
        ),
        (
            WAIVER.replace("waiver", "answer").replace('rule    = "slog-no-redundancy"', "target = 'flushes honoured'"),
            WAIVER.replace("waiver", "answer").replace('rule    = "slog-no-redundancy"', "target = 'flushes honoured'"),
            "b.toml, line 2: answer flushes honoured by target db1 is also decided in",
        ),
        ("", "[ruels]", "b.toml, line 1: no table of a policy has this name"),
        ("", "#= file: /etc/passwd", "b.toml: a line that begins with '#= file:'"),
    ],
)
def test_what_two_files_decide_is_an_error(
    one: str, other: str, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    etc(monkeypatch, tmp_path, a=one, b=other)
    with pytest.raises(PolicyError) as error:
        _auditing.read_policy(None)
    assert says in str(error.value)
    if "decided in" in says:
        assert "a.toml, line" in str(error.value)


def test_an_error_names_the_line_of_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    etc(monkeypatch, tmp_path, a="# one\n# two\n", b='[rules]\nno-such-rule = "off"')
    with pytest.raises(PolicyError, match=r"b\.toml, line 2: no rule 'no-such-rule'"):
        select(shared.rules(), (), (), _auditing.read_policy(None))


def refused() -> Policy:
    with pytest.raises(PolicyError) as error:
        _auditing.read_policy(None)
    assert "another user could have put it there" in str(error.value)
    assert "--policy /dev/null goes without one" in str(error.value)
    return NONE


def test_nobody_but_root_adds_to_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = etc(monkeypatch, tmp_path, a='[rules]\nsync-disabled = "off"')
    group = 0o020 if os.geteuid() == 0 else 0o002  # an ordinary user may share with a group of his own
    for path in (home / "conf.d" / "a.toml", home / "conf.d", home):
        before = path.stat().st_mode
        path.chmod(before | group)
        refused()
        path.chmod(before)
    if os.geteuid() == 0:
        os.chown(home / "conf.d", 65534, -1)
        refused()
        os.chown(home / "conf.d", 0, -1)
    assert _auditing.read_policy(None).rules.keys() == {"sync-disabled"}


def test_there_is_a_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = etc(monkeypatch, tmp_path, a="#" * 200_000, b="#" * 200_000)
    with pytest.raises(PolicyError, match="in all files together"):
        _auditing.read_policy(None)
    for number in range(_auditing.FILES):
        (home / "conf.d" / f"{number}.toml").touch()
    with pytest.raises(PolicyError, match="more than 100 files"):
        _auditing.read_policy(None)
