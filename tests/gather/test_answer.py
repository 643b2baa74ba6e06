"""What is over a bound is not parsed, and said so; what a parser raises by mistake is called a mistake of zaudit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from auditor.facts import HOST, Fact, Unknown
from auditor.gather import answer
from auditor.gather.answer import answer_of
from auditor.host.request import Capture, Files, Output, Read, Run
from auditor.sources import block_devices, zpool_status
from auditor.sources.source import document, integer, rows, source, texts


class Asked:
    """A host, as far as a reason asks, and a collector that counts how often it was shown something."""

    euid, now = 0, 0.0

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.seen = error, 0

    def parse(self, reply: Any, subject: Any) -> Iterator[Fact]:
        self.seen += 1
        if self.error:
            raise self.error
        yield from ()


def reason(asked: Asked, reply: Capture | Files) -> str:
    request = Read(("/proc/x",)) if isinstance(reply, Files) else Run(("tool", "x"))
    answer = answer_of(source("x", "host", ask=request, facts={})(asked.parse), HOST, request, reply, asked)  # type: ignore[arg-type]
    assert isinstance(answer.failure, Unknown)
    return answer.failure.reasons[0].text


def test_a_long_line_is_not_parsed_wherever_it_comes_from() -> None:
    for reply in (
        Capture(0, b"a\n" + b"\t" * 70_000 + b"\nb\n"),
        Capture(0, b"a", b"x" * 70_000),
        Files({"/proc/x": "a" * 70_000}),
        Files({"/proc/1/cmdline": "a\0" + "b" * 70_000 + "\0c"}),
    ):
        asked = Asked()
        assert "a line of more than 64 KiB" in reason(asked, reply)
        assert asked.seen == 0


def test_the_longest_line_that_is_parsed() -> None:
    asked = Asked()
    reason(asked, Capture(0, (b"x" * answer.LINE + b"\n") * 40))
    reason(asked, Files({"/proc/1/cmdline": "a\0" * 200_000}))
    assert asked.seen == 2


def test_a_command_that_puts_all_on_one_line_may_have_a_long_one() -> None:
    """dmsetup table --concise of 800 multipath disks."""
    table = (
        "0 23437770752 multipath 2 queue_if_no_path retain_attached_hw_handler 1 alua 2 1 service-time 0 1 2 8:1 1 1"
    )
    text = ";".join(f"mpath{i},mpath-{i:017x},{i},rw,{table} service-time 0 1 2 65:1 1 1" for i in range(800)) + "\n"
    assert len(text) > answer.LINE
    assert not answer.over(Output(text, "dmsetup table --concise"), block_devices.dmsetup.form)
    assert len(list(block_devices.dmsetup.parse(Output(text, "dmsetup table --concise"), HOST))) == 800
    assert "a line of more than 4096 KiB" in answer.over(
        Output("x" * answer.ONE_LINE + "x", ""), block_devices.dmsetup.form
    )


def test_json_may_stand_on_one_line_and_not_nest_for_ever() -> None:
    text = json.dumps({"a": ["x" * 100_000, '"}{[[[[' * 100, "\\"]})
    assert answer.over(Output(text, "x"), "json") == ""
    assert "64 KiB" in answer.over(Output(text, "x"), "text")
    assert answer.over(Output("[" * 64 + "{" * 64, "x"), "json") == "JSON nested deeper than 64"
    assert "64 KiB" in answer.over(Output("x" * 70_000, "x"), "json"), "text where JSON was asked for"


def test_size_lines_and_files(monkeypatch: Any) -> None:
    monkeypatch.setattr(answer, "BYTES", 100)
    monkeypatch.setattr(answer, "LINES", 10)
    monkeypatch.setattr(answer, "FILES", 3)
    monkeypatch.setattr(answer, "JSON", 50)
    assert "MiB at most" in answer.over(Files({"a": "x" * 60, "b": "y" * 60}), "text")
    assert answer.over(Output("\n" * 11, "x"), "text") == "more than 10 lines"
    assert "4 files" in answer.over(Files({"a": ""}, {"b": ""}, {"c": "", "d": ""}), "text")
    assert "of JSON" in answer.over(Output("{" + " " * 60, "x"), "json")
    assert answer.over(Files({"a": "x\n"}), "text") == ""


def test_a_parser_refuses_or_zaudit_is_at_fault() -> None:
    reply = Capture(0, b"x\n")
    assert reason(Asked(ValueError("cut off")), reply) == "tool x: output not understood: cut off"
    assert reason(Asked(KeyError("key")), reply) == "tool x: zaudit failed on this answer: KeyError: 'key'"
    assert "RecursionError" in reason(Asked(RecursionError("too deep")), reply)


def test_numbers_are_of_64_bits() -> None:
    assert [integer(each) for each in ("0", "-9223372036854775808", "18446744073709551615")] == [
        *(0, -(1 << 63), (1 << 64) - 1)
    ]
    for text in ("", "-", "--1", "1 ", "²", "１", "1" + "0" * 20, "9" * 5_000_000, "-9223372036854775809", "0x1", "+1"):
        with pytest.raises(ValueError, match="is not a number of 64 bits"):
            integer(text)


def test_json_of_another_shape_names_the_key() -> None:
    for text, why in (("[]", "the document"), ('{"a": 1}', "settings"), ('{"settings": [1]}', "settings")):
        with pytest.raises(ValueError, match=why):
            rows(document(text), "settings", 2)
    with pytest.raises(ValueError, match="nested too deeply"):
        document("[" * 100_000)
    assert texts({"roles": [[None, "a"]]}, "roles", 2) == [["", "a"]]
    with pytest.raises(ValueError, match="roles is 1, not str"):
        texts({"roles": [[1, "a"]]}, "roles", 2)


def test_a_status_of_many_columns_is_none() -> None:
    table = f"  pool: tank\nconfig:\n\n\tNAME STATE READ WRITE CKSUM {'SLOW ' * 9}\n\ttank ONLINE 0 0 0\n"
    with pytest.raises(ValueError, match="9 columns after CKSUM"):
        list(zpool_status.status.parse(Output(table, "zpool status"), HOST._replace(kind="pool", name="tank")))
