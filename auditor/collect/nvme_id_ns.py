"""``nvme id-ns``: the block sizes that an NVMe namespace has and could have. (NVM Express NVM Command Set
Specification, Identify Namespace; nvme-cli src/nvme-print-stdout.c)

Bit 5 of *this* NSFEAT is part of OPTPERF (since NVMe 2.1). "Volatile write cache not present" is bit 5 of the NSFEAT of
another structure, I/O Command Set Independent Identify Namespace (``nvme cmdset-ind-id-ns``): QEMU prints nsfeat 52
here with its cache on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from auditor.collect._json import integer
from auditor.collect.device_reply import document, non_negative, only_nvme, pairs
from auditor.facts import Fact, Facts, Subject, Value, known, number, words
from auditor.host.request import Output, Run, Skip

PER = "disk"
SUBJECT = "disk"
FORM = "json"
FACTS = {
    "nvme_lba_bytes": number("logical block size in use"),
    "nvme_lba_metadata_bytes": number("metadata per logical block in use"),
    "nvme_lba_sizes": words("logical block sizes without metadata that it can be formatted with, in bytes, ascending"),
    "nvme_lba_rank": number("relative performance of the format in use: 0 is the best, 3 degraded"),
    "nvme_lba_best_rank": number("relative performance of the best format without metadata"),
    "nvme_lba_best_bytes": number("logical block size of that format; the smallest of several"),
    "nvme_nawupf": number("as AWUPF, for this namespace; only where it differs from the controller's"),
}
COMMAND = "nvme id-ns /dev/{subject}"

_PLAIN = re.compile(r"^lbaf +(\d+) : ms:(\d+) +(?:lbads|ds):(\d+) +rp:\S++ *+(\(in use\))? *+$", re.MULTILINE)
_HUMAN = re.compile(
    r"^LBA Format +(\d+) : Metadata Size: (\d+) +bytes - Data Size: (\d+) +bytes - "
    r"Relative Performance: (?:[^(\n]|\((?!in use\) *+$))*+(\(in use\))? *+$",
    re.MULTILINE,
)
Format = tuple[int, int]  # bytes of data, bytes of metadata


def request(disk: Subject, facts: Facts) -> Run | Skip:
    return only_nvme(disk, facts) or Run(("nvme", "id-ns", f"/dev/{disk.name}", "-o", "json"), package="nvme-cli")


def parse(reply: Output, disk: Subject) -> Iterator[Fact]:
    fields = document(reply.text)
    if fields is not None:
        formats = _from_json(fields.get("lbafs"))
    elif "NVME Identify Namespace" in reply.text:
        fields = dict(pairs(reply.text))
        formats = _from_text(reply.text[: reply.text.rfind("\n") + 1])
    else:
        raise ValueError("neither JSON nor an Identify Namespace listing")
    flbas, count = non_negative(fields.get("flbas")), non_negative(fields.get("nlbaf"))
    if flbas is None or count is None:
        raise ValueError("no Identify Namespace data in it")

    def fact(name: str, value: Value, text: str) -> Fact:
        return Fact(disk, name, known(value, text, COMMAND))

    used = formats.get(flbas & 0xF | (flbas & 0x60) >> 1 if count > 15 else flbas & 0xF)
    if used:
        yield fact("nvme_lba_bytes", used[0], f"LBA format in use: {used[0]} bytes of data")
        yield fact("nvme_lba_metadata_bytes", used[1], f"LBA format in use: {used[1]} bytes of metadata")
    if len(formats) > count:  # nlbaf counts from 0: all of them were seen
        sizes = tuple(sorted({each[0] for each in formats.values() if each and not each[1]}))
        yield fact("nvme_lba_sizes", sizes, "LBA formats without metadata: " + ", ".join(map(str, sizes)))
        yield from _ranks(fields.get("lbafs"), used, fact)
    features, nawupf = non_negative(fields.get("nsfeat")), non_negative(fields.get("nawupf"))
    if features is not None and features & 2 and nawupf is not None and nawupf <= 0xFFFF:
        yield fact("nvme_nawupf", nawupf, f"nawupf : {nawupf}")


def _ranks(listed: object, used: Format | None, fact: Callable[[str, Value, str], Fact]) -> Iterator[Fact]:
    """Relative performance (RP) of the format in use and of the best one without metadata, where JSON gives it."""
    ranked: dict[Format, int] = {}
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, Mapping):
            shift, metadata, rank = (non_negative(each.get(key)) for key in ("ds", "ms", "rp"))
            if shift is not None and metadata is not None and rank in (0, 1, 2, 3) and _format(shift, metadata):
                ranked[1 << shift, metadata] = rank
    plain = {size: rank for (size, metadata), rank in ranked.items() if not metadata}
    if used in ranked and plain:
        best = min(plain, key=lambda size: (plain[size], size))
        yield fact("nvme_lba_rank", ranked[used], f"LBA format in use: rp {ranked[used]}")
        yield fact("nvme_lba_best_rank", plain[best], f"best LBA format: {best} bytes, rp {plain[best]}")
        yield fact("nvme_lba_best_bytes", best, f"best LBA format: {best} bytes, rp {plain[best]}")


def _format(data_shift: int, metadata: int) -> Format | None:
    """Formats that are not in use have 0 for their data size; anything beyond 64 KiB is no block size."""
    return (1 << data_shift, metadata) if 9 <= data_shift <= 16 else None


def _from_json(listed: object) -> dict[int, Format | None]:
    found: dict[int, Format | None] = {}
    for index, each in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(each, Mapping):
            shift, metadata = non_negative(each.get("ds")), non_negative(each.get("ms"))
            if shift is not None and metadata is not None:
                found[index] = _format(shift, metadata)
    return found


def _from_text(text: str) -> dict[int, Format | None]:
    plain = {
        integer(index): _format(integer(shift), integer(metadata)) for index, metadata, shift, _ in _PLAIN.findall(text)
    }
    human = {
        integer(index): _format(integer(size).bit_length() - 1, integer(metadata))
        for index, metadata, size, _ in _HUMAN.findall(text)
    }
    return plain | human
