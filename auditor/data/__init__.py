"""Tables without code, as TOML; each with one loader beside it that refuses whatever it does not understand."""

from __future__ import annotations

import pkgutil


def text(name: str) -> str:
    """One file of this folder; also out of a zip archive (zaudit.pyz)."""
    content = pkgutil.get_data(__name__, name)
    assert content is not None
    return content.decode()
