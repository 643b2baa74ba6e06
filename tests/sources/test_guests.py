"""Guests that Proxmox VE and libvirt will start with cache=unsafe: what is kept of their files, and what is made of it."""

from __future__ import annotations

import pytest

from auditor.facts import Subject
from auditor.host.live import allowed_part
from auditor.host.request import WITNESS
from auditor.recording import redaction
from auditor.sources import guests as guest_source
from tests import question
from tests.gather.test_layers import ON_ZVOL, recorded
from tests.gather.test_users import files, judged, mapping, running
from tests.whole.test_states import Edit

RULE = "guest-set-to-ignore-flushes"
PVE, XML = "/etc/pve/qemu-server/100.conf", "/etc/libvirt/qemu/db1.xml"
CONF = """#password=topsecret
boot: order=scsi0
cipassword: topsecret
ide2: local:iso/a.iso,media=cdrom,cache=unsafe
scsi0: local-zfs:vm-100-disk-0,cache=unsafe,size=32G
scsi1: local-zfs:vm-100-disk-1,cache=writeback
virtio0: file=/dev/zvol/tank/db,cache=unsafe
[PENDING]
virtio0: file=/dev/zvol/tank/db,cache=none
scsi2: local-zfs:vm-100-disk-2,cache=unsafe
[before]
scsi3: local-zfs:vm-100-disk-3,cache=unsafe
"""


def domain(disk: str, kind: str = "disk") -> str:
    return (
        "<!--\nWARNING: THIS IS AN AUTO-GENERATED FILE.\n-->\n<domain type='kvm'><name>db1</name>"
        f"<devices><disk type='block' device='{kind}'>{disk}</disk><graphics passwd='topsecret'/></devices></domain>\n"
    )


UNSAFE = "<driver name='qemu' type='raw' cache='unsafe'/><source dev='/dev/zvol/tank/db'/>"


@pytest.mark.parametrize(
    ("path", "text", "kept"),
    [
        (PVE, CONF, "drops local-zfs:vm-100-disk-0\ndrops local-zfs:vm-100-disk-2\n"),
        (XML, domain(UNSAFE), "drops /dev/zvol/tank/db\n"),
        (XML, domain(UNSAFE.replace("unsafe", "none")), ""),
        (XML, domain(UNSAFE + "<readonly/>"), ""),
        (XML, domain(UNSAFE, "cdrom"), ""),
        (XML, domain("<driver cache='unsafe'/><source pool='p' volume='v'/>"), "unsure\n"),
        (XML, "<domain><devices>", "unsure\n"),
        (XML, "<!DOCTYPE a [<!ENTITY b 'c'>]><domain>&b;</domain>", "unsure\n"),
        (
            guest_source.STORAGES,
            "dir: local\n\tpath /var/lib/vz\n\n"
            "lvmthin: thin\n\tthinpool data\n\tvgname pve\n\n"
            "zfspool: local-zfs\n\tpool rpool/data\n\ncifs: nas\n\tusername root\n",
            "dir local /var/lib/vz\nlvmthin thin pve\nzfspool local-zfs rpool/data\n",
        ),
    ],
)
def test_disks_and_nothing_else_are_kept(path: str, text: str, kept: str) -> None:
    assert allowed_part(path, text, wide=True) == kept
    assert allowed_part(path, kept, wide=True) == kept


def configured(text: str, **errors: str) -> Edit:
    """libvirt knows one guest, and nobody knows Proxmox VE."""
    patterns = question.patterns(guest_source.configs)
    none = dict.fromkeys((guest_source.PROXMOX_CONFIGS, guest_source.STORAGES), "no such file")
    found = files(patterns, {WITNESS: "nodev\tsysfs\n", XML: text}, errors={**none, **errors})
    guests = running("keeps", "/dev/zd0")
    return lambda past: found(guests(past))


@pytest.mark.parametrize(
    ("text", "outcome"),
    [("drops /dev/zd0\n", "fail"), ("", "pass"), ("unsure\n", "unknown"), ("drops /dev/gone\n", "unknown")],
)
def test_what_a_guest_will_start_with_is_judged(text: str, outcome: str) -> None:
    found = judged(recorded(ON_ZVOL, configured(text)), RULE)
    assert found.outcome == outcome
    if outcome == "fail":
        assert "guest db1: /dev/zd0 is set to cache=unsafe" in str(found.message)
        assert found.fix.text.startswith("virsh edit")


STORAGES = "lvmthin local-lvm guest\nlvm other pve\nzfspool local-zfs tank\n"


@pytest.mark.parametrize(
    ("disk", "below", "outcome"),
    [
        ("local-lvm:vm-100-disk-0", "vda", "pass"),
        ("local-lvm:vm-100-disk-0", "zd0p3", "fail"),
        ("local-lvm:vm-100-disk-0", "", "unknown"),
        ("other:vm-100-disk-0", "vda", "unknown"),  # nothing of it is active
        ("ceph:vm-100-disk-0", "vda", "unknown"),
        ("local-zfs:volume", "vda", "fail"),
    ],
)
def test_a_storage_on_lvm_is_where_its_volume_group_is(disk: str, below: str, outcome: str) -> None:
    patterns = question.patterns(guest_source.configs)
    texts = {WITNESS: "nodev\tsysfs\n", PVE: f"drops {disk}\n", guest_source.STORAGES: STORAGES}
    found = files(patterns, texts, errors={guest_source.LIBVIRT_CONFIGS: "no such file"})
    past = recorded(ON_ZVOL, running("keeps", "/dev/zd0"), found, mapping("LVM-cMg1rMsS", below))
    assert judged(past, RULE).outcome == outcome
    if disk.startswith("other"):
        assert judged(past, RULE, Subject("dataset", "tank")).outcome == "pass"


def test_settings_that_were_not_read_are_not_known() -> None:
    assert judged(recorded(ON_ZVOL, running("keeps", "/dev/zd0")), RULE).outcome == "unknown"
    denied = configured("", **{guest_source.LIBVIRT_CONFIGS: "permission denied"})
    assert judged(recorded(ON_ZVOL, denied), RULE).outcome == "unknown"


def test_a_redacted_recording_does_not_name_the_guest() -> None:
    past = redaction.redact(recorded(ON_ZVOL, configured("drops /dev/zd0\n")))
    paths = [path for each in past.files.values() for path in each.text if path.startswith("/etc/libvirt")]
    assert len(paths) == 1
    assert "db1" not in paths[0]
    assert judged(past, RULE).outcome == "fail"
