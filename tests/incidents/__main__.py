"""``python -m tests.incidents``: writes pages.txt."""

from tests import incidents

incidents.PAGES.write_text("".join(incidents.written()), encoding="utf-8")
