"""Mounts that a generator of systemd has made: which units for keys they are bound to. What is mounted, and with which options,
among which may be passwords, is left out. (man 5 systemd.unit, BindsTo=; OpenZFS zfs-mount-generator.c)"""

from __future__ import annotations

import re

from auditor.text import unescaped

FOLDER = "/run/systemd/generator/"
BOUND = "BindsTo="
UNIT = re.compile(r"zfs-load-key@([\w:.\\-]{1,255})\.service", re.ASCII)


def kept(name: str, text: str) -> str | None:
    """Its lines ``BindsTo=UNIT...`` with units that load keys; None for another file. What was kept is kept again."""
    if not name.startswith(FOLDER):
        return None
    rows = (line.removeprefix(BOUND).split() for line in text.split("\n") if line.startswith(BOUND))
    bound = ([each for each in row if UNIT.fullmatch(each)] for row in rows)
    return "".join(f"{BOUND}{' '.join(each)}\n" for each in bound if each)


def encryption_root(instance: str) -> str:
    """Its name, of which systemd has made the instance of a unit: a dash stands for each slash. (man 1 systemd-escape)"""
    return unescaped(instance.replace("-", "/"))
