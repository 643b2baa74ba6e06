"""``zaudit powercut``: what a power cut leaves on the user's own drives.

    sectors   what lies on disk: sectors that identify themselves, and the checker of what is left
    wire      frames between host and witness, authenticated and in order, and the log of a witness
    witness   the server: keeps what hosts report, and answers when it is synced
    proof     was it a power cut, could it have shown a lie, and what do so many cuts prove
    target    where a run may write: a partition, or a new folder
    report    the page with a timeline of each cut, the JSON, and entries that others can compute again
    campaign  the host's side: write and report, check after the boot

A loss can be missed and never invented: an acknowledgement counts when the witness has it. No clock takes part in a verdict.
"""
