"""Of zed.rc is kept whom it tells by which way, and no address or token."""

from __future__ import annotations

import pytest

from auditor.host.live import allowed_part
from auditor.sources import units


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('ZED_EMAIL_ADDR="root"\n', "ZED_EMAIL_ADDR\n"),
        ("#ZED_EMAIL_ADDR=root\n", ""),
        ('ZED_EMAIL_ADDR=""\n', ""),
        ("ZED_EMAIL_ADDR=\n", ""),
        ("ZED_EMAIL_ADDR= # nobody\n", ""),
        ("ZED_EMAIL_ADDR=a@example.org\nZED_EMAIL_ADDR=''\n", ""),
        ("  export ZED_SLACK_WEBHOOK_URL=https://hooks.example.org/secret\n", "ZED_SLACK_WEBHOOK_URL\n"),
        ("ZED_NOTIFY_VERBOSE=1\nPASSWORD=secret\nsecret\n", ""),
        ("ZED_NTFY_TOPIC\n", "ZED_NTFY_TOPIC\n"),
    ],
)
def test_names(text: str, kept: str) -> None:
    assert allowed_part(units.ZED_RC, text) == kept
    assert allowed_part(units.ZED_RC, kept) == kept


def test_of_scripts_nothing_is_kept() -> None:
    assert allowed_part(f"{units.ZED_FOLDER}statechange-pager.sh", "curl https://token@example.org") == ""
