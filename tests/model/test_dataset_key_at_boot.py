"""What loads a key when the host starts."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, known, unknown
from auditor.model.dataset import key_loaded_at_boot

SECRET = Subject("dataset", "tank/secret")
OTHER_ROOT = "29 1 8:1 / / rw - ext4 /dev/sda1 rw"


def loaded(
    *, wanted: tuple[str, ...] = (), lists: tuple[str, ...] = (), root: str = OTHER_ROOT, systemd: bool = True
) -> object:
    """True, False or what is not known."""
    facts = Facts()
    given: dict[str, bool | tuple[str, ...]] = {
        "systemd": systemd,
        "zfs_units_wanted": wanted,
        "zfs_units_masked": ("zfs-load-key-masked.service",),
        "generated_pools": lists,
        "mount_table": (root,),
    }
    for name, value in given.items():
        facts.put(Fact(HOST, name, known(value, name)))
    for name, text in (("encryption", "aes-256-gcm"), ("keylocation", "file:///etc/zfs/key")):
        facts.put(Fact(SECRET, name, known(text, text)))
    (found,) = key_loaded_at_boot.derive(SECRET, facts)
    return found.value.value if isinstance(found.value, Known) else found.value


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, False),
        ({"wanted": ("multi-user.target zfs-mount.service",)}, False),
        ({"wanted": ("zfs-mount.service zfs-load-key.service",)}, False),
        ({"wanted": ("local-fs.target zfs-load-key-masked.service",)}, False),
        ({"lists": ("tank",)}, True),
        ({"lists": ("rpool",)}, False),
        ({"root": "29 1 0:26 / / rw - zfs tank/secret/root rw"}, True),
        ({"root": "29 1 0:26 / / rw - zfs tank/secrets rw"}, False),
    ],
)
def test_what_loads_it(given: dict[str, tuple[str, ...]], expected: bool) -> None:
    assert loaded(**given) is expected  # type: ignore[arg-type]


def test_without_systemd_it_is_not_known() -> None:
    assert isinstance(loaded(systemd=False), Unknown)


def test_what_a_unit_loads_is_not_seen() -> None:
    """It may be the key of another dataset."""
    wanted = ("local-fs.target zfs-mount.service", "zfs-mount.service zfs-load-key@rpool.service")
    assert loaded(wanted=wanted) == unknown(
        "zfs-load-key@rpool.service is enabled, and of which datasets it loads the key is not looked at"
    )


def test_what_is_not_encrypted_has_no_key() -> None:
    facts = Facts()
    for name, text in (("encryption", "off"), ("keylocation", "none")):
        facts.put(Fact(SECRET, name, known(text, text)))
    (found,) = key_loaded_at_boot.derive(SECRET, facts)
    assert found.value == unknown("tank/secret has no separate key")
