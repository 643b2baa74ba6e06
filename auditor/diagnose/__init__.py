"""``zaudit diagnose``: who commits under the current load, how long it takes, and where the time goes.

::

    watch ────> observation ──> commits, causes ──> conclusion ──> diagnosis ──> report
    (reads,     (raw, as        (arithmetic)        (one answer)   (types)
     tracing)    recorded)

``tracing`` is the only part that changes anything on a host: events of its own in tracefs, which it takes back one by one. What
was read is recorded as text, and judged again from there. Without tracing (lockdown, a container, a kernel without histograms,
another user than root) counters alone are read, which say how busy the log is and which device is slow, and not how long a
commit takes.
"""
