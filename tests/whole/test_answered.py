"""What nobody asked of a made-up host is answered by the healthy pair of the collector, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor.facts import HOST, Facts
from auditor.host.request import Read, Run
from auditor.sources import machine, units
from tests import pairs
from tests.answered import answered
from tests.golden import GREEN
from tests.shared import host


def test_a_host_that_was_asked_everything_stays_as_it_is() -> None:
    assert answered(host(GREEN)) == host(GREEN)


@pytest.mark.parametrize("healthy", [True, False])
def test_what_was_not_asked_is_answered_by_a_healthy_pair_alone(healthy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    run, read = units.zed.request(HOST, Facts()), machine.taint.request(HOST, Facts())
    assert isinstance(run, Run)
    assert isinstance(read, Read)
    past, original = host(GREEN), pairs.of
    wanted = {name: original(name)[0] for name in ("zed", "taint")}
    marked = {name: each._replace(expected={**each.expected, "healthy": healthy}) for name, each in wanted.items()}
    monkeypatch.setattr(pairs, "of", lambda name: (marked[name],) if name in marked else ())
    commands = {argv: each for argv, each in past.commands.items() if argv != run.argv}
    files = {patterns: each for patterns, each in past.files.items() if patterns != read.patterns}
    made = answered(replace(past, commands=commands, files=files))
    assert (run.argv in made.commands, read.patterns in made.files) == (healthy, healthy)
    if healthy:
        assert made.commands[run.argv].stdout == pairs.output("zed", wanted["zed"].case).encode()
        assert made.files[read.patterns].text == wanted["taint"].reply[0]
