"""``zaudit verify``: a short honest fio run that follows every fsync to the flush on the device.

::

    profile ──> fio ───> run ──────> trial ──> fio, result ──> chain ──> verification ──> judge ──> report
    (fio's own  (plan:   (fio, in a  (raw, as  (counts,        (is each  (facts for the
     job file)   where,   place that  recorded) latencies)      sync      rules)
                 bytes)   is held)                              followed?)

``trial`` is everything that was read, as text: a recording of it is judged again to the same report. ``place`` makes, holds and
removes what is written to, ``ledger`` remembers it, and whatever is written there is written by a process with the rights of
the owner of the place, never with those of root. ``fio`` plans the runs, and refuses where a run would harm or say nothing.
"""
