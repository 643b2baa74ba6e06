"""What of module, commands and kernel together nobody tests."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Unknown, Value, known
from auditor.model.kernels import LAST, NEWEST, OLDEST, untested
from auditor.sources.zfs import versions

DKMS, KERNEL = "/usr/lib/modules/{}/updates/dkms/zfs.ko", "/usr/lib/modules/{}/kernel/zfs/zfs.ko"


def judged(
    text: str = "2.3.9-1",
    kernel: str = "6.12.57",
    *,
    commands: str = "",
    build: str = "#1 SMP PREEMPT_DYNAMIC",
    at: str = DKMS,
    on_disk: str = "",
    platform: str = "debian",
    lacks: str = "",
) -> tuple[str, str] | None:
    """(how far it is off, what nobody tests); None where that is not known."""
    path, facts = at.format(kernel), Facts()
    facts.put_all(versions("zfs_version", text, ""))
    facts.put_all(versions("zfs_userland_version", commands or text, ""))
    there: dict[str, Value] = {
        "kernel_release": kernel,
        "kernel_build": build,
        "platform": platform,
        "zfs_is_module": True,
        "zfs_modules": (f"{kernel} {path}",),
        "zfs_module_versions": (f"{path} {on_disk or text} {kernel}",),
    }
    facts.put_all(Fact(HOST, name, known(value, "")) for name, value in there.items() if name != lacks)
    found = {each.name: each.value for each in untested.derive(HOST, facts)}
    told, gap = found["untested"], found["untested_gap"]
    if isinstance(told, Unknown) or isinstance(gap, Unknown):
        return None
    assert isinstance(told.value, tuple)
    return str(gap.value), "; ".join(map(str, told.value))


@pytest.mark.parametrize(
    ("text", "kernel", "expected"),
    [
        ("2.2.2-1", "6.6.11-1-lts", "none"),
        ("2.2.2-1", "6.7.0", "untested"),
        ("2.2.2", "6.8.0-31", "untested"),
        ("2.2.2-pve1", "6.8.4-2-pve", None),
        ("2.2.2-pve1", "6.5.13-5-pve", "none"),
        ("2.1.5-1ubuntu6~22.04.4", "6.8.0-40-generic", None),
        ("2.1.5-1ubuntu6~22.04.4", "5.15.0-25-generic", "none"),
        ("0.8.3-1", "5.5.0", "untested"),
        ("2.1.16-1", "6.12.1", "untested"),
        ("2.1.17-1", "6.12.1", None),
        ("2.3.9-1", "3.10.0-1160.el7.x86_64", "untested"),
        ("2.2.6-1", "3.10.0-1160.el7.x86_64", "none"),
        ("2.4.4-1", "7.2.0", "none"),
        ("2.4.5-1", "7.3.0", None),
        ("0.7.13-1", "4.9.0", None),
        ("2.2.9-1", "no number", None),
    ],
)
def test_kernels_that_a_release_was_not_made_for(text: str, kernel: str, expected: str | None) -> None:
    found = judged(text, kernel)
    assert (found and found[0]) == expected


def test_what_to_run_instead_is_named() -> None:
    found = judged("2.2.2-1", "6.8.0-31")
    assert found == (
        "untested",
        "Linux 6.8.0-31: OpenZFS 2.2.2-1 is made for Linux 3.10 to 6.6; run one of these, or OpenZFS 2.2.4 or later of 2.2",
    )


@pytest.mark.parametrize(
    ("text", "kernel", "instead"),
    [
        ("2.4.0-1", "7.0.1", "OpenZFS 2.4.2 or later of 2.4"),
        ("2.3.0-1", "6.15.0", "OpenZFS 2.3.3 or later of 2.3"),
        ("2.1.5-1", "6.15.0", "OpenZFS 2.2.8 or later of 2.2"),
        ("0.8.3-1", "5.5.0", "OpenZFS 2.1.0 or later of 2.1"),
    ],
)
def test_what_to_run_instead_is_of_no_older_line_and_of_none_that_ended(text: str, kernel: str, instead: str) -> None:
    """A pool whose features an older line does not know cannot be imported there."""
    found = judged(text, kernel)
    assert found
    assert found[1].endswith(f"run one of these, or {instead}")


def test_a_module_that_is_a_part_of_the_kernel_relies_on_its_distribution() -> None:
    for text, kernel in (("2.2.2-pve1", "6.8.4-2-pve"), ("2.2.2-1", "6.8.0"), ("2.4.0-rc3", "6.18.0")):
        assert judged(text, kernel, at=KERNEL) == ("none", "")
        assert judged(text, kernel, platform="truenas") == ("none", "")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2.4.0-rc3", "a candidate"),
        ("2.3.99-1", "the branch of development"),
        ("2.2.5-12_g0123abcde", "the branch of development"),
    ],
)
def test_what_is_no_release(text: str, says: str) -> None:
    found = judged(text, "6.6.1")
    assert found
    assert found[0] == "untested"
    assert says in found[1]


def test_a_kernel_with_preempt_rt() -> None:
    assert judged(build="#1 SMP PREEMPT_RT Debian 6.12.57-1") == (
        "untested",
        "a kernel with PREEMPT_RT: run one without",
    )
    assert judged(lacks="kernel_build") is None


@pytest.mark.parametrize(
    ("on_disk", "expected"),
    [("2.3.9-1", "none"), ("2.3.10-1", "patch"), ("2.4.4-1", "upgrade"), ("2.1.5-1", "untested")],
)
def test_the_file_of_the_module_that_runs(on_disk: str, expected: str) -> None:
    """All of it is well until the host starts again."""
    found = judged(on_disk=on_disk)
    assert found
    assert found[0] == expected
    assert expected == "none" or f"is now of {on_disk}" in found[1]


@pytest.mark.parametrize(
    ("module", "commands", "expected"),
    [
        ("2.3.9-1", "2.3.9-1", "none"),
        ("2.3.2-1", "2.3.9-1", "patch"),
        ("2.3.9-1", "2.1.5-1", "patch"),
        ("2.2.2-1", "2.4.1-1", "upgrade"),
        ("2.0.6-1", "0.8.3-1", "untested"),
    ],
)
def test_commands_of_another_release(module: str, commands: str, expected: str) -> None:
    found = judged(module, "5.10.1" if module < "2.1" else "6.6.1" if module < "2.3" else "6.12.1", commands=commands)
    assert found
    assert found[0] == expected


def test_one_that_is_found_is_enough() -> None:
    found = judged("2.4.0-rc3", "6.18.1", lacks="kernel_build")
    assert found
    assert found[0] == "untested"


def test_each_line_begins_with_its_first_release_and_goes_up() -> None:
    for line, steps in NEWEST.items():
        assert 0 in steps
        assert max(steps) <= LAST[line]
        assert list(steps.values()) == sorted(steps.values())
    assert list(OLDEST) == sorted(OLDEST)
