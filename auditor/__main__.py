"""``python -m auditor``, and the entry of ``zaudit.pyz``."""

from auditor.cli import run

run()
