"""Twice as many disks or datasets take about twice as many steps, in every function: counted, not timed."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import CodeType, FrameType
from typing import Any

import pytest

from auditor import audit
from auditor.durability import repairs
from auditor.host.request import Capture, Files
from auditor.judge import precedence
from auditor.judge.rule import Rule
from auditor.recording import recording
from auditor.recording.recording import Recording, ReplayHost
from tests import shared
from tests.bench import pools, synthetic
from tests.bench.__main__ import RECORDING

pytestmark = pytest.mark.slow

FEW = 24
ENOUGH = 1_000  # steps of a function; below that it does not matter how they grow
MOST = 3.0  # times as many steps for twice as many subjects; four times as many is quadratic


Trace = Callable[[FrameType, str, Any], Any]


@contextmanager
def counted(steps: Counter[CodeType]) -> Iterator[None]:
    """Counts the lines that every function of zaudit runs, and each turn of a loop, also of one that stands on one line."""
    lines: dict[CodeType, list[int]] = {}
    tracers: dict[int, tuple[CodeType, Trace | None]] = {}  # by id(): to hash code takes longer than all else here

    def tracer(code: CodeType) -> Trace | None:
        if "/auditor/" not in code.co_filename:
            return None
        count = lines.setdefault(code, [0])

        def local(frame: FrameType, event: str, argument: Any) -> Trace:
            if event == "line":
                count[0] += 1
            return local

        return local

    def trace(frame: FrameType, event: str, argument: Any) -> Trace | None:
        code = frame.f_code
        if id(code) not in tracers:
            tracers[id(code)] = code, tracer(code)
        return tracers[id(code)][1]

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
        steps.update({code: count for code, (count,) in lines.items()})


def growing(few: Counter[CodeType], many: Counter[CodeType]) -> list[str]:
    """The functions that take more than MOST times as many steps."""
    return [
        f"{code.co_filename.partition('/auditor/')[2]}:{code.co_firstlineno} {code.co_qualname}: {few[code]} -> {count}"
        for code, count in many.items()
        if count > ENOUGH and count > MOST * few[code]
    ]


@pytest.fixture(autouse=True)
def _searched_each_time() -> None:
    """The steps of what other tests have found already are counted, too."""
    repairs.search.cache_clear()


@pytest.fixture(scope="module")
def small() -> Recording:
    return recording.load(RECORDING)


@pytest.fixture(scope="module")
def rules() -> tuple[Rule, ...]:
    return shared.audited()


@pytest.fixture(autouse=True)
def without_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each trial of a fix looks at the whole host. They are limited in number, and by the size of the host."""
    monkeypatch.setattr(precedence, "MOST", 0)


def without(host: Recording, *words: str) -> Recording:
    """The same where these commands are refused and these files cannot be read."""
    commands = {
        argv: Capture(1, b"", b"permission denied\n") if argv[0] in words else capture
        for argv, capture in host.commands.items()
    }
    files = {
        patterns: Files({}, errors=dict.fromkeys(patterns, "permission denied"))
        if any(word in patterns[0] for word in words)
        else each
        for patterns, each in host.files.items()
    }
    return replace(host, commands=commands, files=files)


def unnamed(host: Recording) -> Recording:
    """The same with drives that give neither model nor serial number: each may be any other."""
    host = without(host, "nvme", "smartctl", "/sys/class/nvme")
    commands = {
        argv: capture._replace(stdout=re.sub(rb"E: ID_(?:SERIAL|MODEL|WWN)\w*=.*\n", b"", capture.stdout))
        for argv, capture in host.commands.items()
    }
    names = ("/serial", "/model", "/wwid", "/subsysnqn")
    files = {
        patterns: each._replace(text={path: text for path, text in each.text.items() if not path.endswith(names)})
        for patterns, each in host.files.items()
    }
    return replace(host, commands=commands, files=files)


def alike(host: Recording) -> Recording:
    """The same with one serial number for all disks, which are a hypervisor's."""
    commands = {
        argv: capture._replace(stdout=re.sub(rb"LABNVME\d+", b"LABNVME", capture.stdout))
        if argv[0] in ("nvme", "smartctl")
        else capture
        for argv, capture in host.commands.items()
    }
    return replace(host, commands=commands)


def logged(host: Recording, drives: int) -> Recording:
    """The same with a failed flush of every drive in the kernel's log."""
    lines = "".join(
        f"[{number + 10:5d}.000000] I/O error, dev nvme{number}n1, sector 0 op 0x1:(WRITE) flags 0x800 phys_seg 0 "
        "prio class 2\n"
        for number in range(drives)
    )
    log = Capture(0, f"[    0.000000] Linux version 6.12.48 (ann@build7) #1 SMP\n{lines}".encode())
    return replace(host, commands={**host.commands, ("dmesg", "--kernel"): log})


def audited(host: Recording, rules: tuple[Rule, ...]) -> None:
    seen = audit.look(ReplayHost(host), host.targets, audit.Options.from_words(host.options))
    audit.judge(seen, rules, host.targets, "low")


def steps(host: Recording, rules: tuple[Rule, ...]) -> Counter[CodeType]:
    found: Counter[CodeType] = Counter()
    with counted(found):
        audited(host, rules)
    return found


HOSTS: dict[str, Callable[[Recording, int], Recording]] = {
    "as it is": lambda small, drives: synthetic.large(small, drives, 10),
    "no udev": lambda small, drives: without(synthetic.large(small, drives, 10), "udevadm"),
    "nothing of drives": lambda small, drives: without(
        synthetic.large(small, drives, 10), "udevadm", "nvme", "smartctl", "/sys/class/nvme"
    ),
    "no names of drives": lambda small, drives: unnamed(synthetic.large(small, drives, 10)),
    "one name for all drives": lambda small, drives: alike(synthetic.large(small, drives, 10)),
    "no devices": lambda small, drives: without(synthetic.large(small, drives, 10), "/sys/class/block", "/sys/block"),
    "no status": lambda small, drives: without(synthetic.large(small, drives, 10), "zpool"),
    "flush errors": lambda small, drives: logged(synthetic.large(small, drives, 10), drives),
    # both have one with its own sync=disabled, and no folder that inherits it: of more kinds there is more to judge
    "datasets": lambda small, drives: synthetic.large(small, 4, 4 * drives),
    "pools": lambda small, drives: pools.with_pools(synthetic.large(small, 4, 10), drives // 2),
}


@pytest.mark.parametrize("name", HOSTS)
def test_twice_as_many_take_twice_as_many_steps(name: str, small: Recording, rules: tuple[Rule, ...]) -> None:
    audited(HOSTS[name](small, 4), rules)  # what is made once is not of the smaller one
    few, many = (steps(HOSTS[name](small, drives), rules) for drives in (FEW, 2 * FEW))
    assert sum(many.values()) > 1.1 * sum(few.values())  # it is what was made larger that was looked at
    assert growing(few, many) == []


def test_a_quadratic_function_would_be_seen() -> None:
    code = compile("found = [one for one in many for other in many if one == other]", "/auditor/x.py", "exec")
    few, many = Counter[CodeType](), Counter[CodeType]()
    for size, count in ((100, few), (200, many)):
        with counted(count):
            exec(code, {"many": list(range(size))})
    assert len(growing(few, many)) == 1
