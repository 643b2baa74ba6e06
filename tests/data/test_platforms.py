"""Fixes and remedies are in words of the platform."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from auditor import audit, data
from auditor.data import platforms
from auditor.data.platforms import ANY, filled, here, installed
from auditor.facts import HOST, Unknown, unknown
from auditor.gather.gatherer import of_platform
from auditor.host.request import Capture
from auditor.judge.rule import Rule
from auditor.recording.recording import Recording, ReplayHost
from tests import shared
from tests.folded import for_each

OS = "/etc/os-release"
ROCKY = 'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\nPRETTY_NAME="Rocky Linux 9.4 (Blue Onyx)"\n'
NIXOS = 'ID=nixos\nID_LIKE=""\nPRETTY_NAME="NixOS 24.11 (Vicuna)"\n'
# words that only these platforms understand, and words that others use and they do not
OWN = {
    "debian": r"apt|apt-get|apt-mark|dpkg|update-initramfs|lsinitramfs|initramfs-tools|hdparm\.conf|grub-reboot|Debian|Ubuntu",
    "proxmox": r"proxmox-\S+|pveupgrade",
    "rhel": r"dnf|yum|dracut|lsinitrd|grubby|rpm-ostree|Fedora|RHEL",
    "suse": r"zypper|dracut|lsinitrd|SUSE",
    "arch": r"pacman|mkinitcpio|lsinitcpio|IgnorePkg|Arch",
    "alpine": r"apk|mkinitfs|rc-update|rc-service|rc-status|Alpine",
    "nixos": r"nixos-\S+|NixOS|nixpkgs|services\.\S+|boot\.\S+|networking\.hostId|environment\.\S+",
    "truenas": r"TrueNAS|truenas-\S+|web interface|init scripts?",
}
UNITS = r"systemctl (?:enable|mask)\b|zfs-\S+\.timer"
FILES = rf"{UNITS}|zgenhostid|/etc/(?:exports|samba|zfs/zed\.d)|modprobe\.d|dkms"
NOT_THERE = {"alpine": UNITS, "nixos": rf"{FILES}|/etc/fstab", "truenas": FILES}
LIKE = {"proxmox": "debian"}


def others(platform: str) -> re.Pattern[str]:
    """What must not be said on a platform."""
    mine = {platform, LIKE.get(platform, "")}
    spoken = {word for each in mine for word in OWN.get(each, "").split("|")}
    words = [word for each in OWN if each not in mine for word in OWN[each].split("|") if word not in spoken]
    return re.compile("|".join([rf"(?<![\w.-])(?:{'|'.join(words)})(?![\w-])", NOT_THERE.get(platform, "(?!)")]))


@for_each("rule", shared.rules(), ids=lambda rule: rule.id)
def test_a_fix_is_in_words_of_the_platform(rule: Rule) -> None:
    """All rules, as each platform has them; a command that only looks may look where nothing is."""
    for platform in platforms.load():
        fix = rule._replace(platform=platform).fix
        command = fix.command.source if fix.command else ""
        looks = command.startswith(("grep", "stat"))
        said = [fix.text, *([] if looks else [command])]
        assert [found[0] for each in said if (found := others(platform).search(each))] == [], (platform, said)
        assert not re.search(r"[{}]", fix.text)
        assert fix.text[0].isupper() or fix.text[0].isdigit() or fix.text.startswith(("fsync", "services."))
        assert fix.text.endswith((".", "?", ")"))
        assert ".." not in fix.text.replace("...", "")


def test_the_test_would_see_words_of_others() -> None:
    assert others("rhel").search("run update-initramfs -u")
    assert others("proxmox").search("dracut -f")
    assert not others("proxmox").search("apt install x, proxmox-boot-tool refresh")
    assert others("nixos").search("systemctl enable --now x")
    assert others(ANY).search("apt install x")
    assert not others("suse").search("dracut -f")


@pytest.mark.parametrize(
    ("platform", "says"),
    [
        (ANY, "Remove the option from /etc/modprobe.d and rebuild the initramfs,"),
        ("debian", "rebuild the initramfs (update-initramfs -u -k all), or"),
        ("proxmox", "(update-initramfs -u -k all, then proxmox-boot-tool refresh)"),
        ("rhel", "(dracut -f --regenerate-all)"),
        ("nixos", "Remove the option from boot.extraModprobeConfig and boot.kernelParams and run nixos-rebuild boot"),
        ("truenas", "Remove the command that sets it from the init scripts (System, Advanced Settings)"),
    ],
)
def test_a_module_option(platform: str, says: str) -> None:
    (rule,) = (each for each in shared.rules() if each.id == "zfs-nocacheflush")
    assert says in rule._replace(platform=platform).fix.text
    assert says in filled("{drop_option}, or", platform)


@pytest.mark.parametrize(
    ("ids", "kernel", "platform"),
    [
        ((), "", ANY),
        (("plan9",), "4.0", ANY),
        (("ubuntu", "debian"), "6.14.0-33-generic", "debian"),
        (("rocky", "rhel", "centos", "fedora"), "5.14.0-570.12.1.el9_6.x86_64", "rhel"),
        (("ol", "fedora"), "5.15.0-el9uek", "rhel"),
        (("opensuse-tumbleweed", "opensuse", "suse"), "6.11", "suse"),
        (("nixos",), "6.12.57", "nixos"),
        (("debian",), "6.17.2-1-pve", "proxmox"),
        (("debian",), "6.12.33-production+truenas", "truenas"),
        ((), "6.12.33-production+truenas", "truenas"),
        (("debian",), "6.12.57+deb13-amd64", "debian"),
    ],
)
def test_which_platform_it_is(ids: tuple[str, ...], kernel: str, platform: str) -> None:
    assert here(ids, kernel) == platform


@pytest.mark.parametrize(
    ("platform", "package", "remedy"),
    [
        (ANY, "nvme-cli", "install nvme-cli"),
        ("debian", "nvme-cli", "apt install nvme-cli"),
        ("proxmox", "nvme-cli", "apt install nvme-cli"),
        ("rhel", "smartmontools", "dnf install smartmontools"),
        ("rhel", "zfsutils-linux", "dnf install zfs"),
        ("nixos", "hdparm", "hdparm in environment.systemPackages"),
        ("nixos", "dmsetup", "lvm2 in environment.systemPackages"),
        ("truenas", "hdparm", "hdparm (TrueNAS takes no packages)"),
    ],
)
def test_a_package(platform: str, package: str, remedy: str) -> None:
    (reason,) = of_platform(unknown("it is not installed", f"apt install {package}"), platform).reasons
    assert (reason.text, reason.remedy) == ("it is not installed", remedy)


def test_every_way_out_of_several() -> None:
    assert (
        installed("pip install 'zaudit[a]' or apt install python3-a", "rhel")
        == "pip install 'zaudit[a]' or dnf install python3-a"
    )


FIRST = '[[platform]]\nname = "any"\npackage = "install {}"\nrebuild = "rebuild it"\n'
SECOND = '[[platform]]\nname = "a"\nids = ["b"]\n'


def test_a_platform_has_the_words_of_the_first_but_its_own() -> None:
    text = FIRST + SECOND + 'rebuild = "mk"\n[[platform]]\nname = "c"\nlike = "a"\n'
    found = platforms.parse(data.toml(platforms.FILE, text))
    assert [dict(each.words) for each in found.values()] == [
        {"package": "install {}", "rebuild": "rebuild it"},
        {"package": "install {}", "rebuild": "mk"},
        {"package": "install {}", "rebuild": "mk"},
    ]


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
    [
        (ROCKY, "rocky", "dnf install nvme-cli"),
        (NIXOS, "nixos", "nvme-cli in environment.systemPackages"),
        ("ID=plan9\n", "plan9", "install nvme-cli"),
    ],
)
def test_a_host_is_told_in_its_own_words(release: str, system: str, remedy: str) -> None:
    facts = audit.look(ReplayHost(without_nvme(release)), (), audit.Options()).facts
    assert facts.get(HOST, "os_ids").words()[0] == system
    reasons = {
        reason.remedy
        for disk in facts.subjects("disk")
        for value in facts.of(disk).values()
        if isinstance(value, Unknown)
        for reason in value.reasons
    }
    assert remedy in reasons
    assert not [each for each in reasons if each.startswith("apt")]
