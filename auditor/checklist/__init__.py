"""``zaudit checklist``: the lines that people tick off before they trust a log device, a figure or a benchmark, answered.

Pure: everything was read by ``check``, ``verify`` and ``diagnose``. ``lists`` says what an audit answers, ``responses`` what a
verification and a diagnosis do. A line is *yes* only where everything that it names was decided and passed; what was not read
leaves it open, with the command that would show it, and what only a person can answer stays open for a person.
"""
