"""Guests, targets, pods and swap on the datasets of a host: what is kept of their command lines, and what is made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from auditor import audit, rulebook
from auditor.facts import AGAIN, HOST, Fact, Facts, Known, Subject, Unknown
from auditor.gather import users
from auditor.gather.layers import Paths
from auditor.host.live import allowed_part
from auditor.host.request import WITNESS, Capture, Files
from auditor.judge.verdict import Verdict
from auditor.recording import redaction
from auditor.recording.recording import STEADY, Recording
from auditor.report import audit_page, report_reader
from auditor.report import report_json as json_report
from auditor.report.formats import pages
from auditor.sources import block_devices, guests, machine, shares
from auditor.sources.block_tree import Holders
from tests import question
from tests.gather.test_layers import EXT4, ON_ZVOL, TANK, VOLUME, looked, mounted, recorded, sync
from tests.whole.test_states import Edit

RULES = tuple(rulebook.load(examples=False))
UID = "01234567-89ab-cdef-0123-456789abcdef"
KUBELET = "/var/lib/kubelet"
DOTTED = {"driver": "raw", "cache.no-flush": True, "file.driver": "host_device", "file.filename": "/dev/zd0"}
NODE = {"driver": "host_device", "filename": "/dev/zvol/tank/v", "cache": {"direct": False, "no-flush": True}}


def files(
    patterns: tuple[str, ...],
    text: Mapping[str, str],
    links: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
) -> Edit:
    """An answer that was not recorded."""
    return lambda past: replace(past, files={**past.files, patterns: Files(text, links or {}, errors or {})})


def line(*words: str) -> str | None:
    return guests.keep_command_line("".join(f"{each}\0" for each in words))


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (("-drive", "file=/dev/zvol/tank/v,if=none,cache=unsafe"), "drops /dev/zvol/tank/v"),
        (("-drive", "file=/dev/zvol/tank/v,if=none,cache=writeback"), "keeps /dev/zvol/tank/v"),
        (("-drive", "file=/dev/zvol/tank/v,if=none"), "keeps /dev/zvol/tank/v"),
        (("-drive", "file=/iso/a,,b.iso,media=cdrom,cache=unsafe"), "keeps /iso/a,b.iso"),
        (("-drive", "file.filename=/dev/zd0,file.cache.no-flush=on"), "drops /dev/zd0"),
        (("-blockdev", json.dumps(NODE)), "drops /dev/zvol/tank/v"),
        (
            ("-blockdev", json.dumps({"driver": "raw", "file": {**NODE, "cache": {"no-flush": False}}})),
            "keeps /dev/zvol/tank/v",
        ),
        (("-blockdev", json.dumps({"cache": {"no-flush": True}, "file": {"filename": "/a"}})), "drops /a"),
        (("-blockdev", '{"filename": '), "unsure"),
        (("-blockdev", '{"file":' * 2000), "unsure"),
        (("-drive", "file=a.img"), "unsure"),
        (("-hda", "/a.img"), "keeps /a.img"),
        (("-readconfig", "/etc/vm"), "unsure"),
        (("-drive", "file=host_device:/dev/zd0,cache=unsafe"), "drops /dev/zd0"),
        (("-drive", "file=file:/mnt/volume/vm.img,cache=unsafe"), "drops /mnt/volume/vm.img"),
        (("-drive", f"file=json:{json.dumps(NODE).replace(',', ',,')}"), "drops /dev/zvol/tank/v"),
        (("-drive", f"file=json:{json.dumps(DOTTED).replace(',', ',,')}"), "drops /dev/zd0"),
        (("-drive", 'file=json:{"file.filename":"/dev/zd0"},cache=unsafe'), "drops /dev/zd0"),
        # as qemu-system-x86_64 7.2 says of itself in query-block
        (("-drive", "file=/d,cache.no-flush"), "drops /d"),
        (("-drive", "file=/d,cache=writeback,cache.no-flush=on"), "drops /d"),
        (("-drive", "file=/d,cache.no-flush=on,cache=writeback"), "drops /d"),
        (("-drive", "file=/d,cache=unsafe,cache.no-flush=off"), "keeps /d"),
        (("-drive", "file=/d,cache.direct=on,cache=unsafe"), "drops /d"),
        (("-drive", "file=json:[1]"), "unsure"),
        (("-drive", f"file={'json:{'}"), "unsure"),
        (("-set", "drive.d0.cache=unsafe"), "unsure"),
        (("-pflash", "/dev/zd0"), "keeps /dev/zd0"),
        (("-drive", "file=rbd:pool/image:key=secret"), ""),
    ],
)
def test_a_command_line_comes_down_to_disks(words: tuple[str, ...], kept: str) -> None:
    found = line("/usr/bin/kvm", "-name", "db1,debug-threads=on", "-object", "secret,id=a,data=topsecret", *words)
    assert found == "guest db1\n" + (f"{kept}\n" if kept else "")
    assert guests.keep_command_line(str(found)) == found


@pytest.mark.parametrize(
    ("words", "by"),
    [
        (("-id", "100", "-name", "db1,debug-threads=on"), "by proxmox\n"),
        (("-name", "guest=db1,debug-threads=on"), "by libvirt\n"),
        (("-name", "db1"), ""),
    ],
)
def test_who_started_a_guest_is_kept(words: tuple[str, ...], by: str) -> None:
    found = line("/usr/bin/kvm", *words, "-hda", "/a.img")
    assert found == f"guest db1\n{by}keeps /a.img\n"
    assert guests.keep_command_line(found) == found


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (
            ("qemu-nbd", "-c", "/dev/nbd0", "-f", "raw", "--cache=unsafe", "/dev/zd0"),
            "guest qemu-nbd\ndrops /dev/zd0\n",
        ),
        (("/usr/bin/qemu-nbd", "--cache", "unsafe", "/vm.img"), "guest qemu-nbd\ndrops /vm.img\n"),
        (("qemu-nbd", "-x", "unsafe", "/vm.img"), "guest qemu-nbd\nkeeps /vm.img\n"),
        (("qemu-nbd", "--image-opts", "driver=raw,file.filename=/vm.img"), "guest qemu-nbd\nunsure\n"),
        (("qemu-nbd", "nbd://password@host/x"), "guest qemu-nbd\n"),
        (("qemu-nbd",), "guest qemu-nbd\nunsure\n"),
        (("qemu-nbd", "--cach=unsafe", "/vm.img"), "guest qemu-nbd\nunsure\n"),
        (("/usr/bin/firecracker", "--api-sock", "/run/x"), "guest firecracker\nunsure\n"),
        (("nbdkit", "file", "/vm.img"), "guest nbdkit\nunsure\n"),
        (("/opt/kata/bin/qemu-system-x86_64-snp-experimental", "-hda", "/d"), "guest (withheld)\nkeeps /d\n"),
        (("/usr/libexec/xen-qemu-system-i386", "-hda", "/d"), "guest (withheld)\nkeeps /d\n"),
        (("qemu-system-x86_64-" + "x" * 500, "-hda", "/d"), None),
        (
            ("qemu-storage-daemon", "--blockdev", json.dumps(NODE), "--object", "secret,id=a,data=x"),
            "guest qemu-storage-daemon\ndrops /dev/zvol/tank/v\n",
        ),
        (("qemu-img", "convert", "/a", "/b"), None),
    ],
)
def test_programs_that_serve_disks_to_others_are_guests_too(words: tuple[str, ...], kept: str | None) -> None:
    assert line(*words) == kept
    assert kept is None or guests.keep_command_line(kept) == kept


def test_of_other_processes_nothing_is_kept() -> None:
    path = "/proc/7/cmdline"
    assert allowed_part(path, "bash\0-c\0password=x\0", wide=True) is None
    assert allowed_part(path, "postgres\0-D\0/x\0", wide=True) is None
    assert allowed_part(path, "bash\0-c\0password=x\0") == "(withheld)\0"
    assert allowed_part(path, "guest a\npassword=x\n", wide=True) == "guest (withheld)\nunsure\n"


def test_a_redacted_recording_does_not_name_guests() -> None:
    past = recorded(ON_ZVOL, running("drops"))
    texts = [text for files in redaction.redact(past).files.values() for text in files.text.values()]
    assert [text for text in texts if text.startswith("guest ")] == ["guest (withheld)\ndrops /dev/zd0\n"] * 2


def test_a_redacted_recording_does_not_name_volumes_of_pods_and_backstores() -> None:
    pods = (
        f"34 25 230:0 / {KUBELET}/pods/{UID}/volumes/kubernetes.io~csi/payroll-db/mount rw - ext4 /dev/zd0 rw",
        f"35 25 0:6 /zd0 {KUBELET}/plugins/kubernetes.io/csi/volumeDevices/publish/payroll-db/{UID} rw - devtmpfs dev rw",
    )
    table = mounted(TANK, EXT4, *pods)
    past = redaction.redact(recorded(ON_ZVOL, running("keeps", "/dev/zd0"), table, lio("1", "payroll-lun")))
    said = repr((past.files, past.paths, past.commands))
    assert "payroll" not in said
    used = looked(past).facts.get(VOLUME, "used_by")
    assert isinstance(used, Known)
    assert [str(each).partition(" ")[0] for each in used.words()] == ["guest", "target", "pod"]


def processes(namespace: int) -> Edit:
    """Whose processes are seen."""
    return files((machine.OWN,), {}, links={machine.OWN: f"pid:[{namespace}]"})


BY_NUMBER = f"{guests.NUMBERS}*"
OPEN = {
    "/dev/zd": "w block 230:0",
    "/mnt/volume": "w file 230:0 ext4",
    "/tank": "w file 0:28 zfs",
    "/memfd": "w file 0:1 -",
}


def asked(*numbers: int) -> tuple[str, ...]:
    return (*(f"/proc/{each}/{name}" for each in numbers for name in ("fd/*", "cmdline")), BY_NUMBER)


def held(number: int, *opened: str, device: str = "", line: str = "guest his\n") -> Files:
    """What a process has open. device: of the first, where it is not the one that its name says. line: what was kept of its
    command line."""
    links = {f"/proc/{number}/fd/{i}": path for i, path in enumerate(opened)}
    devices = {
        link: next((each for start, each in OPEN.items() if path.startswith(start)), "neither")
        for link, path in links.items()
    }
    if device:
        devices[f"/proc/{number}/fd/0"] = device
    numbers = {f"{guests.NUMBERS}230:0": "../../devices/virtual/block/zd0"}
    none = {} if opened else {f"/proc/{number}/fd/*": "no such file"}
    return Files({f"/proc/{number}/cmdline": line}, {**links, **numbers}, none, devices)


def together(*answers: Files) -> Files:
    text, links, errors, devices = (
        {key: value for each in answers for key, value in getattr(each, name).items()}
        for name in ("text", "links", "errors", "devices")
    )
    return Files(text, links, errors, devices)


def running(how: str, *opened: str, refused: bool = False, device: str = "") -> Edit:
    """A virtual machine whose disk is the zvol of the recorded host."""
    disk = f"{how} /dev/zd0\n" if how != "unsure" else "unsure\n"
    line = "/proc/4711/cmdline"
    unread = {line: "no answer within 1.5 s"} if how == "unread" else {}
    said = {} if unread else {line: f"guest db1\n{disk}"}
    found = files(question.patterns(guests.running), {guests.FIRST: "(withheld)\0", **said}, errors=unread)
    answer = held(4711, *opened, device=device, line=said.get(line, ""))
    if unread:
        answer = answer._replace(text={}, errors={**answer.errors, **unread})
    if refused:
        answer = answer._replace(errors={"/proc/4711/fd/*": "permission denied"})
    targets = question.patterns(shares.block_targets)
    none = files(targets, {WITNESS: "nodev\tsysfs\n"}, errors=dict.fromkeys(targets[:-1], "no such file"))
    table = mounted(TANK, EXT4)

    def edited(past: Recording) -> Recording:
        past = table(found(none(processes(machine.FIRST)(past))))
        return replace(past, files={**past.files, asked(4711): answer})

    return edited


def saying(line: str) -> Edit:
    """The same guest with another command line."""

    def edited(past: Recording) -> Recording:
        text = {"/proc/4711/cmdline": line}
        first = {question.patterns(guests.running): Files({guests.FIRST: "(withheld)\0", **text})}
        return replace(past, files={**past.files, **first, asked(4711): past.files[asked(4711)]._replace(text=text)})

    return edited


def both(one: Edit, other: Edit) -> Edit:
    return lambda past: other(one(past))


def judged(past: Recording, rule: str = "guest-ignores-flushes", subject: Subject = VOLUME) -> Verdict:
    report = audit.judge(looked(past), [each for each in RULES if each.id == rule], (), "low")
    (found,) = [each for each in report.verdicts if each.rule.id == rule and each.subject == subject]
    return found


def test_a_guest_that_drops_flushes_of_what_it_has_open() -> None:
    found = judged(recorded(ON_ZVOL, running("drops", "/dev/zd0", "/dev/null")))
    assert (found.outcome, found.severity) == ("fail", "critical")
    assert "guest db1 (process 4711): its disk /dev/zd0 has cache=unsafe" in str(found.message)


@pytest.mark.parametrize(
    ("edit", "outcome"),
    [
        (running("keeps", "/dev/zd0"), "pass"),
        (running("drops", "/dev/null"), "pass"),  # it only says so
        (running("drops", refused=True), "unknown"),
        (running("unsure", "/dev/zd0"), "unknown"),
        (running("unsure", "/dev/null"), "pass"),
        (running("unsure", refused=True), "unknown"),
        (running("unread", "/dev/zd0"), "unknown"),  # it lets its reader wait, and may be a guest
        (running("unread", "/dev/null"), "pass"),
    ],
)
def test_a_guest_is_believed_what_it_has_open(edit: Edit, outcome: str) -> None:
    assert judged(recorded(ON_ZVOL, edit)).outcome == outcome


def beside(edit: Edit, count: int, *, closed: bool) -> Edit:
    """The same, and so many processes of somebody that call themselves virtual machines and have nothing open; or may not be
    looked into."""
    his = range(5000, 5000 + count)
    lines = {f"/proc/{each}/cmdline": f"guest his{each}\ndrops /dev/zd0\n" for each in his}
    error = "no answer within 1.5 s" if closed else "no such file"

    def edited(past: Recording) -> Recording:
        past = edit(past)
        lines_of = question.patterns(guests.running)
        found, fds = past.files[lines_of], past.files[asked(4711)]
        more = fds._replace(
            text={**fds.text, **lines}, errors={**fds.errors, **{f"/proc/{n}/fd/*": error for n in his}}
        )
        both = found._replace(text={**found.text, **lines})
        return replace(past, files={**past.files, lines_of: both, asked(4711, *his): more})

    return edited


@pytest.mark.parametrize(
    ("how", "closed", "outcome"),
    [
        ("drops", False, "fail"),
        ("drops", True, "fail"),
        ("keeps", False, "pass"),
        ("keeps", True, "unknown"),  # one of those that nobody could look into may be one
    ],
)
def test_a_thousand_that_call_themselves_guests_hide_none(how: str, closed: bool, outcome: str) -> None:
    found = judged(recorded(ON_ZVOL, beside(running(how, "/dev/zd0"), 1500, closed=closed)))
    assert found.outcome == outcome
    if outcome == "unknown":
        assert "/proc/5000/fd/*: no answer within 1.5 s, and 1,499 more of them" in str(found.reasons)


def named(number: int, count: int, *opened: str) -> Edit:
    """A process that has something open, and calls so many other names its disks."""

    def edited(past: Recording) -> Recording:
        lines_of = question.patterns(guests.running)
        found, fds = past.files[lines_of], past.files[asked(4711)]
        disks = "".join(f"keeps /nowhere/{number}/{each}\n" for each in range(count))
        lines = {f"/proc/{number}/cmdline": f"guest his\n{disks}"}
        both = {lines_of: found._replace(text={**found.text, **lines})}
        answer = together(fds, held(number, *opened, line=lines[f"/proc/{number}/cmdline"]))
        return replace(past, files={**past.files, **both, asked(4711, number): answer})

    return edited


def test_names_that_lead_nowhere_hide_no_guest_of_another() -> None:
    """The file of the other guest is called by a link, which has to be looked up."""
    there = recorded(ON_ZVOL, running("drops", "/dev/zd0"), named(400, 5000, "/tank/x"))
    assert judged(there).outcome == "fail"


@pytest.mark.parametrize(("mine", "outcome"), [(49, "fail"), (60, "fail")])
def test_more_guests_than_are_named_are_counted(mine: int, outcome: str) -> None:
    def edited(past: Recording) -> Recording:
        lines_of = question.patterns(guests.running)
        found, fds = past.files[lines_of], past.files[asked(4711)]
        his = range(5000, 5000 + mine)
        lines = {f"/proc/{each}/cmdline": f"guest his{each}\ndrops /dev/zd0\n" for each in his}
        both = {lines_of: found._replace(text={**found.text, **lines})}
        answer = together(fds, *(held(each, "/dev/zd0", line=lines[f"/proc/{each}/cmdline"]) for each in his))
        return replace(past, files={**past.files, **both, asked(4711, *his): answer})

    found = judged(recorded(ON_ZVOL, running("drops", "/dev/zd0"), edited))
    assert found.outcome == outcome
    assert ("11 more" in str(found.message)) is (mine == 60)


def test_no_guest_has_thousands_of_disks() -> None:
    found = line("/usr/bin/kvm", *(word for i in range(3000) for word in ("-hda", f"/{i}")))
    assert str(found).count("keeps") == guests.DISKS
    assert str(found).endswith("\nunsure\n")


@pytest.mark.parametrize(
    ("device", "outcome"),
    [
        ("w file 0:77 tmpfs", "pass"),  # a file of his own in mounts of his own
        ("w file 254:0 ext4", "pass"),  # on the disk of the system
        ("r block 230:0", "pass"),
        ("neither", "pass"),
        ("w block 230:0", "fail"),
        ("w file 230:0 ext4", "fail"),  # what is on the volume
        ("w file 0:77 overlay", "unknown"),  # an overlay that is not among the mounts of the host
        ("w block 230:16", "unknown"),
        ("w file 230:0 -", "fail"),  # through a mount that was taken away since
    ],
)
def test_what_a_process_calls_the_volume_is_not_the_volume(device: str, outcome: str) -> None:
    """unshare --user --mount, and a file of any kind under the name of a device."""
    assert judged(recorded(ON_ZVOL, running("drops", "/dev/zd0", device=device))).outcome == outcome


def test_a_file_that_was_removed_is_no_memory() -> None:
    """Of a guest in a container whose mount was taken away: its number is that of a file system of this host."""
    gone = started(opened=("/vm (deleted)",), device="w file 230:0 -")
    assert judged(recorded(ON_ZVOL, gone)).outcome == "unknown"
    assert judged(recorded(ON_ZVOL, started(opened=("/vm (deleted)",), device="w file 0:1 -"))).outcome == "pass"


def test_a_guest_in_a_container_has_the_volume_under_another_name() -> None:
    past = recorded(
        ON_ZVOL, started("-drive", "file=/dev/pvc,cache=unsafe", opened=("/dev/pvc",), device="w block 230:0")
    )
    found = judged(past)
    assert (found.outcome, found.severity) == ("fail", "critical")
    assert judged(recorded(ON_ZVOL, started(opened=("/dev/pvc",), device="w block 230:0"))).outcome == "unknown"


def test_the_number_of_a_guest_that_ended_is_another_process() -> None:
    """Between the question who is a guest and the one what it has open: the second one tells who has it."""
    there = recorded(ON_ZVOL, running("drops", "/dev/zd0"))
    second = there.files[asked(4711)]
    for line, outcome in (("(withheld)\0", "pass"), ("guest other\nkeeps /dev/zd0\n", "pass")):
        text = second._replace(text={"/proc/4711/cmdline": line})
        assert judged(replace(there, files={**there.files, asked(4711): text})).outcome == outcome
    gone = second._replace(text={}, errors={"/proc/4711/cmdline": "no such process"})
    assert judged(replace(there, files={**there.files, asked(4711): gone})).outcome == "pass"


def test_who_reads_a_file_uses_nothing() -> None:
    seen = looked(recorded(ON_ZVOL, running("drops", "/mnt/volume/x", device="r file 230:0 ext4")))
    assert seen.facts.get(VOLUME, "used_by").words() == ()


def test_who_has_a_file_on_a_volume_has_not_the_volume() -> None:
    seen = looked(recorded(ON_ZVOL, running("keeps", "/mnt/volume/x")))
    assert seen.facts.get(VOLUME, "used_by").words() == ("guest db1",)
    assert seen.facts.get(VOLUME, "opened_by").words() == ()
    seen = looked(recorded(ON_ZVOL, running("keeps", "/dev/zd0")))
    assert seen.facts.get(VOLUME, "opened_by").words() == ("guest db1",)


def test_a_guest_on_an_overlay_that_is_mounted_volatile() -> None:
    upper = "50 25 0:77 / /run/c rw - overlay overlay rw,lowerdir=/a,upperdir=/tank/u,workdir=/tank/w,volatile"
    on = running("keeps", "/run/c/x", device="w file 0:77 overlay")
    past = recorded(ON_ZVOL, on, mounted(TANK, EXT4, upper), saying("guest db1\nkeeps /run/c/x\n"))
    past = replace(past, paths={**past.paths, f"{STEADY}/tank/u": "/tank/u"})
    found = judged(past, subject=Subject("dataset", "tank"))
    assert found.outcome == "unknown"
    assert "mounted volatile: every fsync there is left out" in str(found.reasons)
    assert judged(past).outcome == "pass"


def test_who_has_many_disks_keeps_none_of_another_from_being_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "ALL_LOOKUPS", 2)
    there = recorded(ON_ZVOL, started("-drive", "file=/vm,cache=unsafe", real={"/vm": "/dev/zd0"}))
    assert judged(named(400, 16, "/tank/x")(there)).outcome == "fail"


def test_a_recording_that_has_the_names_alone_does_not_decide() -> None:
    past = recorded(ON_ZVOL, running("drops", "/dev/zd0"))
    names = Files({}, {"/proc/4711/fd/0": "/dev/zd0"})
    past = replace(past, files={**{k: v for k, v in past.files.items() if k != asked(4711)}, asked(4711)[:1]: names})
    found = judged(past)
    assert found.outcome == "unknown"
    assert {each.remedy for each in found.reasons} == {AGAIN}


@pytest.mark.parametrize(
    ("opened", "outcome"),
    [(("/mnt/volume/vm.img",), "fail"), (("/mnt/volume/other.img",), "unknown"), (("/dev/null",), "pass")],
)
def test_a_disk_in_a_file_is_the_one_that_is_open(opened: tuple[str, ...], outcome: str) -> None:
    """Else its path is followed, which it is not where others may have moved it."""
    there = recorded(ON_ZVOL, running("drops", *opened))
    assert judged(saying("guest db1\ndrops /mnt/volume/vm.img\n")(there)).outcome == outcome


def started(
    *words: str, opened: tuple[str, ...] = ("/dev/zd0",), real: Mapping[str, str] | None = None, device: str = ""
) -> Edit:
    """A virtual machine with this command line. real: where links lead."""
    there = both(running("keeps", *opened, device=device), saying(str(line("/usr/bin/kvm", "-name", "db1", *words))))
    paths = {f"{STEADY}{link}": to for link, to in (real or {}).items()}
    return lambda past: replace(there(past), paths={**there(past).paths, **paths})


@pytest.mark.parametrize(
    ("edit", "outcome"),
    [
        (started(), "unknown"),  # plugged in while it runs
        (started("-hda", "/dev/zd0"), "pass"),
        (started("-hda", "/dev/zvol/tank/volume"), "pass"),
        (started("-drive", "file=host_device:/dev/zd0,cache=unsafe"), "fail"),
        (started("-drive", "file=nbd:unix:/run/nbd"), "unknown"),
        (started("-hda", "/dev/zd0", opened=("/dev/zd0", "/mnt/volume/vm.img")), "unknown"),
        (started("-hda", "/mnt/volume/vm.img", opened=("/mnt/volume/vm.img",)), "pass"),
        (started("-hda", "/mnt/volume/vm.img", opened=("/mnt/volume/vm.img", "/mnt/volume/2.img")), "unknown"),
        (started("-drive", "file=/vm,cache=unsafe", real={"/vm": "/dev/zd0"}), "fail"),
        (started("-drive", "file=/vm", real={"/vm": "/dev/zd0"}), "pass"),
        (started(opened=("/memfd:ram (deleted)", "/dev/null", "/dev/kvm")), "pass"),
    ],
)
def test_what_a_guest_has_open_is_one_of_its_disks(edit: Edit, outcome: str) -> None:
    """Else its monitor gave it that, and nobody said with which cache."""
    found = judged(recorded(ON_ZVOL, edit))
    assert found.outcome == outcome
    if outcome == "unknown":
        assert "guest db1 (process 4711): its command line does not name " in found.reasons[0].text


def test_a_guest_leaves_undecided_what_it_has_open_and_nothing_else() -> None:
    """Whoever calls his process QEMU."""
    past = recorded(ON_ZVOL, started(opened=("/tank/his",)))
    assert judged(past, subject=Subject("dataset", "tank")).outcome == "unknown"
    assert judged(past).outcome == "pass"


def test_a_guest_on_a_volume_without_a_name_may_be_on_any() -> None:
    past = recorded(ON_ZVOL, started("-drive", "file=/dev/zd0,cache=unsafe"), udev({"S: zvol/tank/volume\n": ""}))
    assert "has /dev/zd0 open: udev does not say" in str(judged(past).reasons)
    assert judged(past, subject=Subject("dataset", "tank")).outcome == "pass"


def test_an_older_recording_knows_nothing_of_guests() -> None:
    assert judged(recorded(ON_ZVOL)).outcome == "unknown"


def test_what_uses_a_volume_is_named() -> None:
    pod = (
        "34 25 230:0 / /var/lib/kubelet/pods/01234567-89ab-cdef-0123-456789abcdef/volumes/kubernetes.io~csi/pvc-1/mount"
    )
    seen = looked(recorded(ON_ZVOL, running("keeps", "/dev/zd0"), mounted(TANK, f"{pod} rw - ext4 /dev/zd0 rw")))
    used = seen.facts.get(VOLUME, "used_by")
    assert isinstance(used, Known)
    assert used.value == ("guest db1", "pod volume pvc-1")
    assert [(each.text, each.command.partition(" ")[0]) for each in used.evidence] == [
        ("guest db1 (process 4711)", "ls"),
        ("volume pvc-1 of pod 01234567-89ab-cdef-0123-456789abcdef", "findmnt"),
    ]
    report = audit.judge(seen, RULES, (), "low")
    assert "tank/volume (guest db1, pod volume pvc-1)\n" in audit_page.write_text(report)
    verbose = audit_page.write_text(report, verbose=2, width=300)
    assert "tank/volume is used by guest db1 (process 4711)   ls -l /proc/4711/fd\n" in verbose
    assert ">tank/volume (guest db1, pod volume pvc-1)</h3>" in audit_page.write_html(report)
    document = json_report.document(report)
    assert [(each["dataset"], each["by"]) for each in document["used_by"]] == [("tank/volume", list(used.value))]
    assert "`tank/volume` (`guest db1`, `pod volume pvc-1`)" in pages.markdown(report_reader.parse_report(document))


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (f"230:0 / {KUBELET}/pods/{UID}/volumes/kubernetes.io~local-volume/pv1 rw - ext4 /dev/zd0 rw", "pv1"),
        (f"0:6 /zd0 {KUBELET}/plugins/kubernetes.io/csi/volumeDevices/publish/pv2/{UID} rw - devtmpfs dev rw", "pv2"),
        (f"0:6 /vda {KUBELET}/plugins/kubernetes.io/csi/volumeDevices/publish/pv3/{UID} rw - devtmpfs dev rw", ""),
        (f"0:9 /zd0 {KUBELET}/plugins/kubernetes.io/csi/volumeDevices/publish/pv4/{UID} rw - tmpfs x rw", ""),
        (
            f"230:0 / {KUBELET}/pods/{UID}/volumes/kubernetes.io~csi/{'p' * 99}/mount rw - ext4 /dev/zd0 rw",
            "p" * 60 + "...",
        ),
    ],
)
def test_volumes_of_pods(line: str, name: str) -> None:
    seen = looked(recorded(ON_ZVOL, running("keeps", "/dev/null"), mounted(TANK, f"34 25 {line}")))
    used = seen.facts.get(VOLUME, "used_by")
    assert isinstance(used, Known)
    assert used.value == ((f"pod volume {name}",) if name else ())


@pytest.mark.parametrize(
    ("name", "point", "by"),
    [
        ("rpool/data/subvol-101-disk-0", "/rpool/data/subvol-101-disk-0", ("container 101",)),
        ("tank/incus/containers/web", "/var/lib/incus/storage-pools/default/containers/web", ("container web",)),
        ("tank/containers/web", "/tank/containers/web", ()),
    ],
)
def test_datasets_of_containers(name: str, point: str, by: tuple[str, ...]) -> None:
    facts, dataset = Facts(), Subject("dataset", name)
    facts.put(Fact(dataset, "mountpoint", Known(point, ())))
    facts.put(Fact(HOST, "mount_table", Known((), ())))
    (found,) = [each for each in users.users(facts, Holders(facts, Facts()), Paths(str)) if each.name == "used_by"]
    assert found.value.words() == by


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-id", "100"), "qm config VMID"),
        (("-name", "guest=db1"), "virsh edit"),
        ((), "Start the guest with cache=none"),
    ],
)
def test_a_fix_speaks_to_who_started_the_guest(words: tuple[str, ...], says: str) -> None:
    past = recorded(ON_ZVOL, started("-drive", "file=/dev/zd0,cache=unsafe", *words))
    assert judged(past).fix.text.startswith(says)


def test_a_guest_and_a_target_on_one_volume_have_no_one_fix() -> None:
    assert judged(recorded(ON_ZVOL, running("keeps", "/dev/null"), lio("0"))).fix.text.startswith("targetcli")
    edits = (started("-drive", "file=/dev/zd0,cache=unsafe"), lio("0"))
    assert judged(recorded(ON_ZVOL, *edits)).fix.text.startswith("Have each of them")


def lio(wce: str, name: str = "d1") -> Edit:
    folder = f"{shares.LIO_CORE}fileio_0/{name}/"
    info = "Status: ACTIVATED\n        TCM FILEIO ID: 0        File: /mnt/volume/pg  Size: 1  Mode: Buffered-WCE Async: 0\n"
    texts = {f"{folder}info": info, f"{folder}enable": "1\n", f"{folder}udev_path": "/mnt/volume/pg\n"}
    texts |= {f"{folder}attrib/emulate_write_cache": f"{wce}\n", WITNESS: "nodev\tsysfs\n"}
    patterns = question.patterns(shares.block_targets)
    answer = files(patterns, texts, errors=dict.fromkeys(patterns[4:-1], "no such file"))
    return lambda past: replace(answer(past), paths={f"{STEADY}/mnt/volume/pg": "/mnt/volume/pg"})


def nvme(path: str) -> Edit:
    folder = f"{shares.ROOT}nqn.2024-01.org.example:db/namespaces/1/"
    texts = {f"{folder}device_path": f"{path}\n", f"{folder}enable": "1\n", WITNESS: "nodev\tsysfs\n"}
    return files(question.patterns(shares.nvme_targets), texts)


def test_a_namespace_of_nvme_over_fabrics_passes_flushes_on() -> None:
    """The block device's, and of a file with or without the page cache."""
    past = recorded(ON_ZVOL, running("keeps", "/dev/null"), nvme("/dev/zvol/tank/volume"))
    assert judged(past).outcome == "pass"
    name = "target NVMe nqn.2024-01.org.example:db/1"
    assert looked(past).facts.get(VOLUME, "used_by").words() == (name,)
    redacted = redaction.redact(past)
    assert "example:db" not in repr((redacted.files, redacted.paths))


@pytest.mark.parametrize(("wce", "outcome"), [("0", "fail"), ("1", "pass")])
def test_a_target_that_hides_its_cache(wce: str, outcome: str) -> None:
    """Its file lies on an ext4 on the zvol."""
    found = judged(recorded(ON_ZVOL, running("keeps", "/dev/null"), lio(wce)))
    assert found.outcome == outcome
    if outcome == "fail":
        assert "LIO d1: /mnt/volume/pg, Buffered-WCE, emulate_write_cache=0" in str(found.message)


def tgt(store: str, *, answers: bool = True, path: str = "/dev/zd0") -> Edit:
    """A daemon of tgt with the zvol as its logical unit, or a file."""
    patterns = question.patterns(shares.block_targets)
    texts = {"/run/tgtd/socket.0.lock": "", WITNESS: "nodev\tsysfs\n"}
    runs = files(patterns, texts, errors=dict.fromkeys(patterns[:-2], "no such file"))
    unit = f"  LUN: 1\n  Readonly: No\n  Backing store type: {store}\n  Backing store path: {path}\n"
    unit = f"Target 1: x\n{unit}  ACL information:\n"
    said = Capture(0, unit.encode(), keep=shares.KEEP)
    refused = Capture(107, b"", b"tgtadm: failed to send request hdr to tgt daemon\n")
    asked = {tuple(shares.COMMAND.split()): said if answers else refused}
    paths = {f"{STEADY}{path}": path}
    return lambda past: replace(runs(past), commands={**past.commands, **asked}, paths={**past.paths, **paths})


@pytest.mark.parametrize(
    ("edit", "outcome"),
    [
        (tgt("rdwr"), "pass"),
        (tgt("aio"), "fail"),
        (both(tgt("aio"), sync(VOLUME.name, "always")), "pass"),
        (tgt("later"), "unknown"),
        (both(tgt("aio", path="/mnt/volume/pg"), sync(VOLUME.name, "always")), "fail"),  # ext4 stands between
        (tgt("rdwr", answers=False), "unknown"),
    ],
)
def test_a_target_in_user_space(edit: Edit, outcome: str) -> None:
    """The backing store "aio" answers a flush and does nothing."""
    found = judged(recorded(ON_ZVOL, running("keeps", "/dev/null"), edit))
    assert found.outcome == outcome
    if outcome == "fail":
        assert ", backing store aio" in str(found.message)


def test_a_recording_that_did_not_ask_for_tgt_stays_decided() -> None:
    past = recorded(ON_ZVOL, running("keeps", "/dev/null"))
    patterns = question.patterns(shares.block_targets)
    older = tuple(each for each in patterns if each != shares.TGT)
    answer = past.files[patterns]
    errors = {path: error for path, error in answer.errors.items() if path != shares.TGT}
    others = {asked: said for asked, said in past.files.items() if asked != patterns}
    assert judged(replace(past, files={**others, older: answer._replace(errors=errors)})).outcome == "pass"


@pytest.mark.parametrize(
    ("rows", "outcome"),
    [("", "pass"), ("/dev/zd0 partition\t1\t0\t-2\n", "fail"), ("/dev/sdzz partition\t1\t0\t-2\n", "unknown")],
)
def test_swap(rows: str, outcome: str) -> None:
    heading = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    edit = files((machine.PATH,), {machine.PATH: heading + rows})
    assert judged(recorded(ON_ZVOL, edit), "swap-on-zvol", HOST).outcome == outcome


def udev(change: Mapping[str, str]) -> Edit:
    """What udev says, with some of its lines changed."""
    asked = ("udevadm", "info", "--export-db")

    def edit(past: Recording) -> Recording:
        said = past.commands[asked].stdout.decode()
        for old, new in change.items():
            assert old in said
            said = said.replace(old, new)
        return replace(past, commands={**past.commands, asked: Capture(0, said.encode())})

    return edit


def mapping(uuid: str, below: str = "zd0p3") -> Edit:
    """A device of device mapper that lies in this one, which may be a partition of the zvol."""
    blocks, devices = "/sys/class/block/", "../../devices/virtual/block/"
    texts = {
        "/sys/block/dm-7/dm/name": "guest-root\n",
        "/sys/block/dm-7/dm/uuid": f"{uuid}\n",
        f"{blocks}zd0p3/partition": "3\n",
    }
    links = {f"{blocks}dm-7": f"{devices}dm-7", f"{blocks}zd0p3": f"{devices}zd0/zd0p3"}
    links |= {f"{blocks}dm-7/slaves/{below}": f"../../{below}"} if below else {}
    asked = question.patterns(block_devices.sysfs)

    def edit(past: Recording) -> Recording:
        said = past.files[asked]
        errors = {each: why for each, why in said.errors.items() if "/dm/" not in each and "/slaves/" not in each}
        new = said._replace(text={**said.text, **texts}, links={**said.links, **links}, errors=errors)
        return replace(past, files={**past.files, asked: new})

    return edit


@pytest.mark.parametrize(
    ("uuid", "below", "mapped"),
    [
        ("LVM-cMg1rMsS", "zd0p3", ("guest-root (lvm)",)),
        ("LVM-cMg1rMsS", "zd0", ("guest-root (lvm)",)),
        ("mpath-3600", "zd0", ("guest-root (multipath)",)),
        ("CRYPT-LUKS2-e9c9", "zd0", ()),  # somebody opened it by its name
        ("LVM-cMg1rMsS", "vda", ()),
        ("LVM-cMg1rMsS", "", None),
    ],
)
def test_what_the_host_holds_in_a_volume(uuid: str, below: str, mapped: tuple[str, ...] | None) -> None:
    found = looked(recorded(ON_ZVOL, running("keeps", "/dev/null"), mapping(uuid, below))).facts.get(VOLUME, "mapped")
    assert (found.value if isinstance(found, Known) else None) == mapped


@pytest.mark.parametrize(("opened", "outcome"), [("/dev/null", "pass"), ("/dev/zd0", "fail")])
def test_lvm_of_a_guest_is_none_of_the_host(opened: str, outcome: str) -> None:
    past = recorded(ON_ZVOL, running("keeps", opened), mapping("LVM-cMg1rMsS"))
    assert judged(past, "volume-mapped-by-host").outcome == outcome


def test_processes_that_are_hidden_leave_all_open() -> None:
    hidden = files(question.patterns(guests.running), {}, errors={guests.FIRST: "no such file or directory"})
    seen = looked(recorded(ON_ZVOL, running("keeps", "/dev/zd0"), hidden))
    assert isinstance(seen.facts.get(VOLUME, "flushes_dropped"), Unknown)


def test_in_a_container_the_guests_of_the_host_are_not_seen() -> None:
    past = recorded(ON_ZVOL, running("keeps", "/dev/null"))
    assert judged(past).outcome == "pass"
    assert judged(processes(4026532198)(past)).outcome == "unknown"
