"""Whether the running kernel is newer than the newest one that this release of OpenZFS was made for.

Linux-Maximum of META at each tag; from 2.3.0 on configure refuses newer ones without --enable-linux-experimental. A
distribution patches older releases for its newer kernels, which its version does not tell: of its builds it is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.data import releases
from auditor.derive.combine import values
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Subject, Unknown, flag, unknown

SUBJECT = "host"
FACTS = {"kernel_unsupported": flag("the running kernel is newer than any that this release of OpenZFS supports")}
# of each line: from its release N on, kernels up to this one
NEWEST: dict[tuple[int, int], dict[int, tuple[int, int]]] = {
    (0, 8): {0: (5, 1), 2: (5, 3), 3: (5, 4), 4: (5, 6), 6: (5, 9)},
    (2, 0): {0: (5, 9), 1: (5, 10), 4: (5, 11), 5: (5, 12), 6: (5, 14), 7: (5, 15)},
    (2, 1): {
        0: (5, 13),
        1: (5, 14),
        2: (5, 15),
        3: (5, 16),
        4: (5, 17),
        5: (5, 18),
        6: (5, 19),
        7: (6, 0),
        8: (6, 1),
        10: (6, 2),
        12: (6, 3),
        13: (6, 5),
        15: (6, 7),
    },
    (2, 2): {
        0: (6, 5),
        1: (6, 6),
        3: (6, 7),
        4: (6, 8),
        5: (6, 9),
        6: (6, 10),
        7: (6, 12),
        8: (6, 15),
        9: (6, 17),
    },
    (2, 3): {
        0: (6, 12),
        1: (6, 13),
        2: (6, 14),
        3: (6, 15),
        4: (6, 16),
        5: (6, 17),
        6: (6, 19),
        7: (7, 0),
        9: (7, 2),
    },
    (2, 4): {0: (6, 18), 1: (6, 19), 2: (7, 0), 4: (7, 2)},
}
LAST = {(0, 8): 6, (2, 0): 7, (2, 1): 16, (2, 2): 11, (2, 3): 9, (2, 4): 4}  # the newest that was looked at
_PUBLISHED = re.compile(r"\d+\.\d+\.\d+(-1)?")
_KERNEL = re.compile(r"(\d{1,3})\.(\d{1,3})\b")


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    found = values(facts, HOST, "zfs_version", "zfs_version_text", "kernel_release")
    yield Fact(HOST, "kernel_unsupported", found if isinstance(found, Unknown) else _judged(*found))


def _judged(version: Known, text: Known, kernel: Known) -> Judged:
    running = _KERNEL.match(str(kernel.value))
    numbers = tuple(each for each in version.value if isinstance(each, int)) if isinstance(version.value, tuple) else ()
    if running is None or len(numbers) != 3:
        return unknown(f"{text.value} on {kernel.value}: no release, or no kernel, that zaudit knows")
    if isinstance(version.value, tuple) and (why := releases.untold(version.value, numbers)):
        return unknown(why, releases.REMEDY)
    line, patch = (numbers[0], numbers[1]), numbers[2]
    steps = NEWEST.get(line, {})
    if not steps:
        return unknown(f"for which kernels OpenZFS {text.value} was made is not known")
    newest = next(steps[at] for at in sorted(steps, reverse=True) if at <= patch)
    seen = (Evidence(f"Linux {kernel.value}; OpenZFS {text.value} supports up to {newest[0]}.{newest[1]}", "uname -r"),)
    if (int(running[1]), int(running[2])) <= newest:
        return Known(False, seen)
    if patch > LAST[line]:
        return unknown(f"OpenZFS {text.value} is newer than what zaudit knows of its kernels")
    if not _PUBLISHED.fullmatch(str(text.value)):
        why = f"OpenZFS {text.value} is the build of a distribution, which may have made it fit Linux {kernel.value}"
        return unknown(why, "look into its changelog")
    return Known(True, seen)
