"""``zaudit diagnose``: who commits under the current load, how long it takes, and where the time goes.

::

    watch ────> observation ──> commits, causes ──> conclusion ──> diagnosis ──> report
    (reads,     (raw, as        (arithmetic)        (one answer)   (types)
     tracing)    recorded)

``tracing`` alone changes something on a host: its events in tracefs, which it removes. A recording is judged again. Without
tracing (lockdown, a container, a kernel without histograms, another user than root) counters show how busy the log is and
which device is slow, but not how long a commit takes.
"""
