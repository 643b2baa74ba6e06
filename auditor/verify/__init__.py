"""``zaudit verify``: a short honest fio run that follows every fsync to the flush on the device.

::

    profile ──> plan ──> run ──────> trial ──> result ──> chain, latency ──> facts ──> judge ──> report
    (fio's own  (where,  (the only   (raw, as  (counts,   (is each sync                (rules
     job file)   what,    module that recorded) latencies)  followed?)                  on runs)
                 bytes)   writes)

``trial`` is everything that was seen, as text: a recording of it is judged anew to the same report. ``place`` makes and
removes what is written to; ``preflight`` refuses where a run would harm or say nothing.
"""
