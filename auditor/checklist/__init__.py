"""``zaudit checklist``: the lines that people tick off before they trust a log device, a figure or a benchmark, answered.

::

    auditor/data/checklists.toml ──┐
    an audit ──────────────────────┤
    a verification (if any) ───────┼──> judged, measured, watched ──> answers ──> report
    a diagnosis (if any) ──────────┘

Pure: everything was seen by ``check``, ``verify`` and ``diagnose``. A line is *yes* only where everything that it names was
decided and passed; what was not seen leaves it open, with the command that would show it, and what only a person can answer
stays open for a person.
"""
