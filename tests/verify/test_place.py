"""Places: recorded before they exist, and of what is removed, nothing that zaudit did not make."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from auditor import codec
from auditor.verify import execution, ledger, place
from auditor.verify.ledger import Actor, Place, PlaceError
from tests.verify.fake_zfs import GUID, Dataset, FakeZfs

VICTIM = Dataset("7", ("-", ""), 1e9)  # of another user, made long ago


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setattr(ledger, "name", lambda: folder)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return folder


@pytest.fixture
def tank(tmp_path: Path) -> Path:
    (tmp_path / "tank").mkdir()
    return tmp_path / "tank"


def records(state: Path) -> list[str]:
    return sorted(path.name for path in state.iterdir())


def died(what: Place, **changes: object) -> Place:
    """The same, of a process that is gone, in the ledger."""
    old = what._replace(pid=2**22, started=1, **changes)  # type: ignore[arg-type]
    (ledger.folder() / f"place-{what.id}.json").write_text(json.dumps(codec.plain(old)))
    return old


# -- making -------------------------------------------------------------------------------------------------------


def test_a_directory_is_recorded_before_it_is_made(state: Path, tank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    act, seen = ledger.act, []

    def acted(actor: Actor, folder: int, argv: tuple[str, ...]) -> tuple[int, str]:
        assert argv[0] == "mkdir"
        seen.append([each.path for each in ledger.places()])
        return act(actor, folder, argv)

    monkeypatch.setattr(ledger, "act", acted)
    new = place.directory(str(tank), "tank/db")
    assert seen == [[new.path]]
    assert Path(new.path).parent == tank
    assert Path(new.path).name == f".zaudit-{new.id}"
    made = Path(new.path).stat()
    assert made.st_mode & 0o777 == 0o700
    assert (new.uid, new.inode) == (made.st_uid, made.st_ino)
    assert list(ledger.places()) == [new]
    assert ledger.in_use(new)


def test_what_cannot_be_made_leaves_no_record(state: Path, tank: Path) -> None:
    with pytest.raises(PlaceError, match="no directory can be created there: No such file"):
        place.directory(str(tank / "away"), "tank/db")
    assert not state.exists()
    with pytest.raises(PlaceError, match="no directory can be created there: "):
        place.directory("/proc", "tank/db")
    assert records(state) == []


def test_nothing_is_made_that_cannot_be_recorded(state: Path, tank: Path) -> None:
    state.write_text("a file is in the way")
    with pytest.raises(PlaceError, match="cannot be recorded there"):
        place.directory(str(tank), "tank/db")
    assert list(tank.iterdir()) == []


def test_a_record_is_never_seen_by_halves(state: Path, tank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(os, "fsync", lambda _: seen.append(records(state)))
    new = place.directory(str(tank), "tank/db")
    part = f"part-{new.id}-{new.pid}-{new.started}"
    first, again = [[part], [f"place-{new.id}.json"]], [[part, f"place-{new.id}.json"], [f"place-{new.id}.json"]]
    assert seen == first + again  # a clean in between finds nothing to damage


def test_half_a_record_of_a_dead_process_is_removed_and_that_of_a_living_one_stays(state: Path, tank: Path) -> None:
    mine = place.directory(str(tank), "tank/db")
    ledger_says = records(state)
    for name in (f"part-{'0' * 16}-{2**22}-1", f"part-{'0' * 16}-{mine.pid}-1"):
        (state / name).write_text("{")
    for name in (f"part-{mine.id}-{mine.pid}-{mine.started}", "part-theirs"):
        (state / name).write_text("{")
    assert list(place.clean(FakeZfs())) == []
    assert set(records(state)) - set(ledger_says) == {f"part-{mine.id}-{mine.pid}-{mine.started}", "part-theirs"}


# -- removing -----------------------------------------------------------------------------------------------------


def test_only_files_of_ours_are_removed(state: Path, tank: Path) -> None:
    (tank / "zaudit.theirs").write_text("beside it")
    new = place.directory(str(tank), "tank/db")
    for name in ("zaudit.log.0.0", "zaudit.job.fio"):
        (Path(new.path) / name).write_text("ours")
    place.remove(new, FakeZfs())
    assert [path.name for path in tank.iterdir()] == ["zaudit.theirs"]
    assert records(state) == []


@pytest.mark.parametrize("name", ["theirs", "zaudit", "Zaudit.x", " zaudit.x"])
def test_a_foreign_file_stays_and_is_reported(state: Path, tank: Path, name: str) -> None:
    new = died(place.directory(str(tank), "tank/db"))
    (Path(new.path) / name).write_text("precious")
    (Path(new.path) / "zaudit.log.0.0").write_text("ours")
    for _ in range(2):  # and again, as long as it is there
        assert [(left.path, name in wrong) for left, wrong in place.clean(FakeZfs())] == [(new.path, True)]
        assert (Path(new.path) / name).read_text() == "precious"
    assert not (Path(new.path) / "zaudit.log.0.0").exists()
    (Path(new.path) / name).unlink()
    assert [wrong for _, wrong in place.clean(FakeZfs())] == [""]
    assert records(state) == []


def test_a_folder_in_it_stays(state: Path, tank: Path) -> None:
    new = place.directory(str(tank), "tank/db")
    (Path(new.path) / "zaudit.folder").mkdir()
    with pytest.raises(PlaceError, match="zaudit did not create"):
        place.remove(new, FakeZfs())
    assert records(state) == [f"place-{new.id}.json"]


def test_a_link_in_place_of_the_directory_is_not_followed(state: Path, tank: Path, tmp_path: Path) -> None:
    new = died(place.directory(str(tank), "tank/db"))
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "zaudit.log.0.0").write_text("precious")
    os.rmdir(new.path)
    os.symlink(tmp_path / "theirs", new.path)
    ((_, wrong),) = place.clean(FakeZfs())
    assert wrong
    assert (tmp_path / "theirs" / "zaudit.log.0.0").read_text() == "precious"
    assert records(state) == [f"place-{new.id}.json"]


def test_a_link_in_it_is_removed_and_what_it_leads_to_is_not(state: Path, tank: Path) -> None:
    (tank / "precious").write_text("theirs")
    new = place.directory(str(tank), "tank/db")
    os.symlink(tank / "precious", Path(new.path) / "zaudit.log.0.0")
    place.remove(new, FakeZfs())
    assert (tank / "precious").read_text() == "theirs"
    assert records(state) == []


def test_a_directory_of_another_user_is_left_alone(state: Path, tank: Path) -> None:
    new = place.directory(str(tank), "tank/db")
    (Path(new.path) / "zaudit.log.0.0").write_text("now theirs")
    with pytest.raises(PlaceError, match="belongs to another user"):
        place.remove(new._replace(uid=os.getuid() + 1), FakeZfs())
    assert (Path(new.path) / "zaudit.log.0.0").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"path": "/etc"},
        {"path": "/tank/.zaudit-0000000000000000"},
        {"id": "../x"},
        {"id": ""},
        {"kind": "dataset", "id": "x"},
    ],
)
def test_a_record_that_names_something_else_removes_nothing(state: Path, tank: Path, changes: dict[str, str]) -> None:
    new = place.directory(str(tank), "tank/db")
    with pytest.raises(PlaceError, match="the record is damaged"):
        place.remove(new._replace(**changes), FakeZfs({"tank/db": ""}))  # type: ignore[arg-type]
    assert Path(new.path).is_dir()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"id": "x"}', "[" * 100_000, "\x00"])
def test_a_damaged_record_is_reported_and_kept(state: Path, tank: Path, text: str) -> None:
    new = place.directory(str(tank), "tank/db")
    record = state / f"place-{new.id}.json"
    record.write_text(text)
    ((_, wrong),) = place.clean(FakeZfs())
    assert f"{record} is not a place that zaudit uses: the record is damaged" in wrong
    assert record.exists()
    assert Path(new.path).is_dir()


def test_what_lies_on_an_unmounted_file_system_is_not_forgotten(state: Path, tank: Path) -> None:
    new = died(place.directory(str(tank), "tank/db"))
    os.rmdir(new.path)  # as it looks when tank/db is not mounted
    ((_, wrong),) = place.clean(FakeZfs({"tank/db": "-"}))
    assert f"tank/db is not mounted on {tank}" in wrong
    assert records(state) == [f"place-{new.id}.json"]
    ((_, wrong),) = place.clean(FakeZfs())  # and when tank/db was destroyed
    assert wrong == ""
    assert records(state) == []


def test_what_is_gone_from_where_it_is_mounted_is_forgotten(
    state: Path, monkeypatch: pytest.MonkeyPatch, tank: Path
) -> None:
    new = place.directory(str(tank), "tank/db")
    os.rmdir(new.path)
    monkeypatch.setattr(os.path, "ismount", lambda path: path == str(tank))
    place.remove(new, FakeZfs(fails="get is not to be asked"))
    assert records(state) == []


# -- dead and alive -----------------------------------------------------------------------------------------------


def test_the_place_of_a_living_process_is_left_alone(state: Path, tank: Path) -> None:
    mine, theirs = place.directory(str(tank), "tank/db"), place.directory(str(tank), "tank/db")
    died(theirs)
    assert [(left.id, wrong) for left, wrong in place.clean(FakeZfs())] == [(theirs.id, "")]
    assert Path(mine.path).is_dir()
    assert list(ledger.places()) == [mine]


@pytest.mark.parametrize("changes", [{"started": 1}, {"boot": "another"}, {"pid": 2**22}])
def test_a_number_that_was_given_again_is_not_the_same_process(
    state: Path, tank: Path, changes: dict[str, object]
) -> None:
    assert not ledger.in_use(place.directory(str(tank), "tank/db")._replace(**changes))  # type: ignore[arg-type]


@pytest.mark.slow
def test_two_at_once(state: Path, tank: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from auditor.verify import ledger, place\n"
        "ledger.name = lambda: Path(sys.argv[2])\n"
        "for _ in range(40):\n"
        "    new = place.directory(sys.argv[1], 'tank/db')\n"
        "    wrong = [text for _, text in place.clean(lambda argv: (1, 'not asked'))]\n"
        "    assert not wrong, wrong\n"
        "    assert new in list(ledger.places())\n"
        "    place.remove(new, lambda argv: (1, 'not asked'))\n"
    )
    argv = (sys.executable, "-c", script, str(tank), str(state))
    both = [subprocess.Popen(argv, stderr=subprocess.PIPE) for _ in range(2)]
    said = [each.communicate(timeout=120)[1] for each in both]
    assert [each.returncode for each in both] == [0, 0], said
    assert list(tank.iterdir()) == []
    assert records(state) == []


# -- scratch zvols ------------------------------------------------------------------------------------------------


def test_a_scratch_zvol(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "_appears", lambda device: None)
    zfs = FakeZfs()
    seen: list[list[str]] = []
    zfs.before = lambda: seen.append([each.dataset for each in ledger.places()])
    new = place.zvol("tank/vm one", 1 << 20, (("volblocksize", "16384"),), zfs)
    assert seen == [[], [new.dataset], [new.dataset]], (
        "recorded before it is made, and not where it could not be destroyed"
    )
    assert new.dataset == f"tank/zaudit-{new.id}"
    create = ("zfs", "create", "-s", "-V", "1048576", "-o", "volblocksize=16384", "-o", f"zaudit:scratch={new.id}")
    assert zfs.asked[1] == (*create, new.dataset)
    assert new.guid == GUID
    assert list(ledger.places()) == [new]
    assert place.node(new) == f"/dev/zvol/{new.dataset}"
    assert list(Path(new.path).iterdir()) == []
    place.remove(new, zfs)
    assert zfs.there == {}
    assert records(state) == []


def test_a_zvol_that_cannot_be_made_leaves_nothing(state: Path) -> None:
    with pytest.raises(PlaceError, match="out of space"):
        place.zvol("tank/vm", 1 << 20, (), FakeZfs(fails="create out of space"))
    assert records(state) == []


def test_a_zvol_without_a_node_is_removed_again(state: Path) -> None:
    zfs = FakeZfs()
    with pytest.raises(PlaceError, match="udev made no node"):
        place.zvol("tank/vm", 1 << 20, (), zfs)
    assert zfs.there == {}
    assert records(state) == []


def left(**changes: object) -> Place:
    """What a run that was killed has left on record."""
    ledger.folder()
    id = "f" * 16
    path = str(ledger.folder() / f"link-{id}")
    return died(Place(id, "zvol", path, f"tank/zaudit-{id}", 0, 0, "", 0.0, guid=GUID), **changes)


@pytest.mark.parametrize(
    "mark", [("-", ""), ("0123456789abcdef", "tank/zaudit-" + "f" * 16), ("f" * 16, "tank"), ("", "")]
)
def test_what_does_not_bear_our_mark_itself_is_left_alone(state: Path, mark: tuple[str, str]) -> None:
    old = left()
    zfs = FakeZfs({old.dataset: Dataset(GUID, mark)})
    ((_, wrong),) = place.clean(zfs)
    assert "does not have the mark" in wrong
    assert list(zfs.there) == [old.dataset]
    assert records(state) == [f"place-{old.id}.json"]


def test_who_gives_the_name_and_the_mark_to_another_dataset_has_it_destroyed_by_nobody(state: Path) -> None:
    old = left()
    zfs = FakeZfs({old.dataset: old.id, "tank/victim": VICTIM})
    zfs.rename(old.dataset, "tank/away")
    zfs.rename("tank/victim", old.dataset)
    zfs.there[old.dataset] = zfs.there[old.dataset]._replace(mark=(old.id, old.dataset))
    assert [wrong for _, wrong in place.clean(zfs)] == [""]
    assert [each.guid for each in zfs.there.values()] == [VICTIM.guid]  # and ours, wherever it is called away, is gone
    assert records(state) == []


def test_another_dataset_of_that_name_stays_where_ours_is_gone(state: Path) -> None:
    old = left()
    zfs = FakeZfs({old.dataset: VICTIM._replace(mark=(old.id, old.dataset))})
    assert [wrong for _, wrong in place.clean(zfs)] == [""]
    assert list(zfs.there) == [old.dataset]


@pytest.mark.parametrize("created", [1e9, 0.0])
def test_what_is_renamed_at_once_is_not_taken_for_the_new_one(
    state: Path, monkeypatch: pytest.MonkeyPatch, created: float
) -> None:
    """Of what is there after zfs create the GUID is recorded, and it may be another by then."""
    monkeypatch.setattr(place, "_appears", lambda device: None)

    def swapped(zfs: FakeZfs) -> None:
        (name,) = (each for each in zfs.there if each != "tank/victim")
        mark = zfs.there[name].mark
        zfs.rename(name, "tank/away")
        zfs.rename("tank/victim", name)
        zfs.there[name] = zfs.there[name]._replace(mark=mark, created=created)

    zfs = FakeZfs({"tank/victim": VICTIM}, after=swapped)
    with pytest.raises(PlaceError, match="was replaced as soon as it was created"):
        place.zvol("tank/vm", 1 << 20, (), zfs)
    (recorded,) = ledger.places()
    assert recorded.guid == ""
    with pytest.raises(PlaceError, match="left alone"):
        place.remove(recorded, zfs)
    assert len(zfs.there) == 2


def test_a_record_without_a_guid_says_what_to_look_at(state: Path) -> None:
    old = left(guid="")
    zfs = FakeZfs({old.dataset: old.id})
    ((_, wrong),) = place.clean(zfs)
    assert f"zfs get creation,used,{ledger.PROPERTY} {old.dataset}" in wrong
    assert wrong.endswith(f"zfs destroy {old.dataset}")
    assert list(zfs.there) == [old.dataset]
    assert records(state) == [f"place-{old.id}.json"]
    del zfs.there[old.dataset]  # as the administrator did
    assert [wrong for _, wrong in place.clean(zfs)] == [""]
    assert records(state) == []


@pytest.mark.parametrize("said", ["program must be root", "program unrecognized command 'program'", "program {}"])
def test_where_nothing_can_be_destroyed_by_its_guid_nothing_is_made(state: Path, said: str) -> None:
    zfs = FakeZfs(fails=said)
    with pytest.raises(PlaceError, match="by which alone zaudit destroys"):
        place.zvol("tank/vm", 1 << 20, (), zfs)
    assert [argv[1] for argv in zfs.asked] == ["program"]
    assert records(state) == []
    old = left()
    zfs = FakeZfs({old.dataset: old.id}, fails=said)
    ((_, wrong),) = place.clean(zfs)
    assert "by which alone zaudit destroys" in wrong
    assert list(zfs.there) == [old.dataset]
    assert records(state) == [f"place-{old.id}.json"]


def test_what_is_gone_already_is_forgotten(state: Path) -> None:
    left()
    assert [wrong for _, wrong in place.clean(FakeZfs())] == [""]
    assert records(state) == []


@pytest.mark.parametrize("busy", [3, ledger.TRIES])
def test_what_is_open_still_is_tried_again_and_stays_on_record(state: Path, busy: int) -> None:
    old = left()
    zfs = FakeZfs({old.dataset: old.id}, busy=busy)
    ((_, wrong),) = place.clean(zfs)
    assert ("Device or resource busy" in wrong) == (busy == ledger.TRIES)
    assert records(state) == [f"place-{old.id}.json"] * bool(wrong)


# -- the ledger ---------------------------------------------------------------------------------------------------


def test_where_the_ledger_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable moves that of root: what stands in it decides what is removed."""
    for name in ("ZAUDIT_STATE", "XDG_STATE_HOME", "HOME", "TMPDIR"):
        monkeypatch.setenv(name, "/home/me/state")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert ledger.name() == Path("/var/lib/zaudit")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert ledger.name() == Path("/home/me/state/zaudit")


def test_a_record_of_an_older_zaudit_is_read_and_removed(state: Path, tank: Path) -> None:
    new = place.directory(str(tank), "tank/db")
    old = {name: value for name, value in codec.plain(new).items() if name not in ("uid", "gid", "inode")}
    (state / f"place-{new.id}.json").write_text(json.dumps({**old, "pid": 2**22}))
    (Path(new.path) / "zaudit.job.fio").write_text("of old")
    assert [wrong for _, wrong in place.clean(FakeZfs())] == [""]
    assert list(tank.iterdir()) == []
    assert records(state) == []


def test_what_acts_for_an_owner_is_his_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """He may trace a process that has his rights, and make it print without end."""
    monkeypatch.setattr("auditor.host.request.OUTPUT_BYTES", 1 << 20)
    code, said = ledger.call(("yes",))
    assert (code, said) == (124, "yes: more than 1 MiB of output")


def test_a_chain_of_processes_is_counted_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """fio is its owner's as well, and so is what he makes it start: each with a child, deeper than Python calls itself."""
    script = "import os\nfor n in range(5):\n if os.fork(): break\nos.write(1, b'x' * (n + 1))\nos.read(0, 1)"
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout
    assert process.stdin
    for _ in range(1 + 2 + 3 + 4 + 5 + 5):
        assert process.stdout.read(1) == b"x"
    try:
        assert execution.written(process.pid) == 20
        monkeypatch.setattr(execution, "PROCESSES", 3)
        assert execution.written(process.pid) == 6
    finally:
        process.stdin.close()
        process.wait(5)
        process.stdout.close()
