"""Tables without code, as TOML; each with one loader beside it that refuses whatever it does not understand."""

from __future__ import annotations

from importlib import resources


def text(name: str) -> str:
    """One file of this folder; also out of a zip archive (zaudit.pyz)."""
    return resources.files(__name__).joinpath(name).read_text("utf-8")
