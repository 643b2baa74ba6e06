"""The names of the settings of zed.rc by which the ZFS Event Daemon tells somebody, as far as they are set: all that is kept
of it. (OpenZFS cmd/zed/zed.d/zed.rc: shell assignments)"""

from __future__ import annotations

import re

FOLDER = "/etc/zfs/zed.d/"
PATH = f"{FOLDER}zed.rc"
WAYS = (  # what each way needs
    ("ZED_EMAIL_ADDR",),
    ("ZED_EMAIL",),  # before 0.7, and still taken for ZED_EMAIL_ADDR
    ("ZED_PUSHBULLET_ACCESS_TOKEN",),
    ("ZED_SLACK_WEBHOOK_URL",),
    ("ZED_PUSHOVER_TOKEN", "ZED_PUSHOVER_USER"),
    ("ZED_NTFY_TOPIC",),
    ("ZED_GOTIFY_URL", "ZED_GOTIFY_APPTOKEN"),
)
_NAMES = frozenset(name for way in WAYS for name in way)
_SET = re.compile(r"(?:export )?(ZED_[A-Z_]{1,40})=(\S?\S?)")


def names(text: str) -> str:
    """A line for each; the last assignment counts. What was kept is kept again."""
    found: dict[str, bool] = {}
    for line in text.splitlines():
        bare = line.strip(" \t")
        if match := _SET.match(bare):
            found[match[1]] = match[2] not in ("", '""', "''") and not match[2].startswith("#")
        elif bare in _NAMES:
            found[bare] = True
    return "".join(f"{name}\n" for name in sorted(found) if found[name] and name in _NAMES)
