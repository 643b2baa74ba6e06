"""Whatever pools, drives and reasons are called, the page has the elements of the page and no others."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from auditor import audit
from auditor.facts import Evidence, Fact, Facts, Judged, Known, Reason, Subject, Unknown
from auditor.recording import recording
from auditor.recording.recording import ReplayHost
from auditor.report import audit_page
from tests import shared
from tests.shared import HOSTS

EVIL = "\"'><img src=x onerror=alert(1)></code></p><script>x</script><!--&#60;\x1b[2J\u202e"
NAMED = ("model", "state", "hostname", "kernel_release")
RULES = shared.rules()


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen |= {tag, *(f"{tag} {name}" for name, _ in attrs)}

    def handle_comment(self, data: str) -> None:
        self.seen.add("!--")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def evil(facts: Facts) -> Facts:
    """The same host, where all names and texts are hostile."""
    found = Facts(facts.now)
    for subject, name, value in facts:
        found.put(Fact(_subject(subject), name, _judged(name, value)))
    return found


def _subject(subject: Subject) -> Subject:
    if subject.kind in ("pool", "vdev", "leaf", "disk", "dataset", "database"):
        return subject._replace(name=f"{subject.name}{EVIL}", within=subject.within and f"{subject.within}{EVIL}")
    return subject


def _judged(name: str, judged: Judged) -> Judged:
    if isinstance(judged, Unknown):
        return Unknown(tuple(Reason(f"{each.text}{EVIL}", f"{each.remedy}{EVIL}") for each in judged.reasons))
    value = judged.value
    if isinstance(value, Subject):
        value = _subject(value)
    elif isinstance(value, tuple) and value and isinstance(value[0], Subject):
        value = tuple(_subject(each) for each in value if isinstance(each, Subject))
    elif name in NAMED:
        value = f"{value}{EVIL}"
    return Known(value, tuple(Evidence(*(f"{each}{EVIL}" for each in seen)) for seen in judged.evidence))


@pytest.mark.parametrize("name", ["2.3-sync-disabled-local", "2.1-degraded-mirror", "2.3-db-postgres-healthy"])
def test_no_name_becomes_an_element(name: str) -> None:
    past = recording.load(HOSTS / name)
    seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    plain, hostile = (
        audit_page.write_html(audit.judge(each, RULES, past.targets, "low"), verbose=2)
        for each in (seen, seen._replace(facts=evil(seen.facts)))
    )
    before, after = Elements(plain), Elements(hostile)
    assert after.seen <= before.seen | {"small", "span", "code", "span class", "code class"}
    text = "".join(after.text)
    assert "<img src=x onerror=alert(1)>" in text
    assert "\x1b" not in hostile
    assert "\u202e" not in hostile
