"""What is not installed is said in words of the platform."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor import audit
from auditor.facts import HOST, Unknown, unknown, words_of
from auditor.gather import packages
from auditor.host.request import Capture
from auditor.recording.recording import Recording, ReplayHost
from tests import shared

OS = "/etc/os-release"
ROCKY = 'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\nPRETTY_NAME="Rocky Linux 9.4 (Blue Onyx)"\n'
NIXOS = 'ID=nixos\nID_LIKE=""\nPRETTY_NAME="NixOS 24.11 (Vicuna)"\n'


@pytest.mark.parametrize(
    ("systems", "package", "remedy"),
    [
        ((), "nvme-cli", "apt install nvme-cli"),
        (("ubuntu", "debian"), "nvme-cli", "apt install nvme-cli"),
        (("rocky", "rhel", "centos", "fedora"), "smartmontools", "dnf install smartmontools"),
        (("almalinux", "rhel"), "zfsutils-linux", "dnf install zfs"),
        (("nixos",), "hdparm", "hdparm in environment.systemPackages"),
        (packages.systems(("debian",), "6.12.33-production+truenas"), "hdparm", "hdparm (TrueNAS takes no packages)"),
        (packages.systems(("debian",), "6.12.57+deb13-amd64"), "hdparm", "apt install hdparm"),
        (("plan9",), "hdparm", "apt install hdparm"),
    ],
)
def test_a_package_in_words_of_the_platform(systems: tuple[str, ...], package: str, remedy: str) -> None:
    (reason,) = packages.here(unknown("it is not installed", f"apt install {package}"), systems).reasons
    assert (reason.text, reason.remedy) == ("it is not installed", remedy)


def test_every_way_out_of_several() -> None:
    (reason,) = packages.here(unknown("x", "pip install 'zaudit[a]' or apt install python3-a"), ("fedora",)).reasons
    assert reason.remedy == "pip install 'zaudit[a]' or dnf install python3-a"


def without_nvme(release: str) -> Recording:
    """A host of this system on which nvme-cli is missing."""
    past = shared.host("2.4-healthy-mirrored-slog")
    commands = {
        argv: Capture(None, fault="not installed") if argv[0] == "nvme" else each
        for argv, each in past.commands.items()
    }
    files = {
        patterns: each._replace(text={path: release if path == OS else text for path, text in each.text.items()})
        for patterns, each in past.files.items()
    }
    return replace(past, commands=commands, files=files)


@pytest.mark.parametrize(
    ("release", "system", "remedy"),
    [(ROCKY, "rocky", "dnf install nvme-cli"), (NIXOS, "nixos", "nvme-cli in environment.systemPackages")],
)
def test_a_host_is_told_in_its_own_words(release: str, system: str, remedy: str) -> None:
    facts = audit.look(ReplayHost(without_nvme(release)), (), audit.Options()).facts
    assert words_of(facts.get(HOST, "os_ids"))[0] == system
    reasons = {
        reason.remedy
        for disk in facts.subjects("disk")
        for value in facts.of(disk).values()
        if isinstance(value, Unknown)
        for reason in value.reasons
    }
    assert remedy in reasons
    assert not [each for each in reasons if each.startswith("apt")]
