"""``zaudit verify``: a short honest fio run that follows every fsync to the flush on the device.

::

    profile ──> plan ──> run ──────> trial ──> result ──> chain, latency ──> facts ──> judge ──> report
    (fio's own  (where,  (fio, in a  (raw, as  (counts,   (is each sync                (rules
     job file)   what,    place that  recorded) latencies)  followed?)                  on runs)
                 bytes)   is held)

``trial`` is everything that was seen, as text: a recording of it is judged anew to the same report. ``place`` makes and removes
what is written to, ``ledger`` remembers it, ``held`` keeps it from being exchanged, and whatever is written there is written by
an ``actor``: a process with the rights of the owner of the place, never with those of root. ``preflight`` refuses where a run
would harm or say nothing.
"""
