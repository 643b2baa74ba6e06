"""``zaudit diagnose``: who commits under the current load, how long it takes, and where the time goes.

::

    observe ──> observation ──> counters, histograms ──> shares, causes ──> diagnosis ──> report
    (reads,     (raw, as        (numbers)                (arithmetic)       (one answer)
     tracing)    recorded)

``tracing`` is the only part that changes anything on a host: events of its own in tracefs, which it takes back one by one. What
was seen is recorded as text, and judged anew from there. Without tracing (not root, lockdown, a container) counters alone are
read, which say how busy the log is and which device is slow, and not how long a commit takes.
"""
