"""``zaudit checklist``: the lines that people tick off before they trust a log device, a figure or a benchmark,
answered.

Pure: ``lists`` says what an audit answers, ``responses`` what a verification and a diagnosis do. A line is *yes* only
where all that it names was decided and passed; what was not read leaves it open with the command that shows it, or open
for a person.
"""
