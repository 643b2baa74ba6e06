"""Machines of the tests: network namespaces on one bridge. Skipped without root, iproute2 or namespaces."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest

NET = "10.213.77"
HUB = f"zf{os.getpid()}h"  # has the bridge, and the address NET.1
NEEDS = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("ip"), reason="needs root and ip (apt install iproute2)"
)


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no network namespaces here: {done.stderr.strip()}")


def address(number: int) -> str:
    """Of a machine, by its place in the list."""
    return f"{NET}.{number + 2}"


@contextmanager
def network(size: int) -> Iterator[list[str]]:
    """A bridge in a namespace of its own, and more namespaces on it: their names."""
    names = [f"zf{os.getpid()}{number}" for number in range(size)]
    with ExitStack() as left:
        for name in (HUB, *names):
            ip("netns", "add", name)
            left.callback(subprocess.run, ["ip", "netns", "delete", name], check=False)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", HUB, "link", "add", "bridge0", "type", "bridge")
        ip("-n", HUB, "address", "add", f"{NET}.1/24", "dev", "bridge0")
        ip("-n", HUB, "link", "set", "bridge0", "up")
        for number, name in enumerate(names):
            ip("link", "add", f"port{number}", "netns", HUB, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", HUB, "link", "set", f"port{number}", "master", "bridge0", "up")
            ip("-n", name, "address", "add", f"{address(number)}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
        yield names


def inside(name: str, *words: object) -> list[str]:
    """The command that runs another in a namespace."""
    return ["ip", "netns", "exec", name, *map(str, words)]


@contextmanager
def ended(process: subprocess.Popen[Any], *signals: signal.Signals) -> Iterator[subprocess.Popen[Any]]:
    """With all that it started, when it is left."""
    try:
        yield process
    finally:
        end(process, *signals)


def end(process: subprocess.Popen[Any], *signals: signal.Signals) -> None:
    """With all that it started, which is in a session of its own. signals: tried before it is killed."""
    for each in (*signals, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, each)
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)


def until(true: Callable[[], bool], process: subprocess.Popen[Any]) -> None:
    """Wait for it, as long as the process runs that is to make it so."""
    while not true():
        assert process.poll() is None
        time.sleep(0.02)
