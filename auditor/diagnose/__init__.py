"""``zaudit diagnose``: who commits under the current load, how long it takes, and where the time goes.

::

    observe ──> observation ──> counters, histograms ──> shares, causes ──> diagnosis ──> report
    (reads,     (raw, as        (numbers)                (arithmetic)       (one answer)
     tracing)    recorded)

``tracing`` is the only part that changes anything on a host: events of its own in tracefs, which it takes back one by one. What
was seen is recorded as text, and judged anew from there. Without tracing (lockdown, a container, a kernel without histograms)
root looks at ``stacks`` of threads now and then, which say who waits, and about how long. Others read counters alone, which say
how busy the log is and which device is slow, and not how long a commit takes. ``watching`` tells each second what it came to.
"""
