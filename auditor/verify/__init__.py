"""``zaudit verify``: a short honest fio run that follows every fsync to the flush on the device.

::

    profile ──> fio ───> run ──────> trial ──> fio, result ──> chain ──> verification ──> judge ──> report
    (fio's own  (plan:   (fio, in a  (raw, as  (counts,        (is each  (facts for the
     job file)   where,   place that  recorded) latencies)      sync      rules)
                 bytes)   is held)                              followed?)

``trial`` is everything that was read, as text: judged again, it gives the same report. ``place`` makes, holds and removes what
is written to, always with the rights of its owner; ``ledger`` records it. ``fio`` plans the runs, and refuses harmful ones.
"""
