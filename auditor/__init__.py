"""zaudit: does fsync mean anything on this host? A durability auditor for OpenZFS under databases.

The folder listing is the way the data goes::

    targets ──> gather ──> facts ──> derive ──> judge ──> report
                (which     (known,   (facts     (rules,    (terminal,
                 question)  unknown)  from       three      JSON)
                   │                  facts)     values)
                   ├─ collect   one module a question: what to ask, what the answer says
                   └─ host      the machine: commands, files, libraries, and nothing else touches it

``recording`` keeps what a host answered, and answers in its place. ``audit`` is that drawing as a program; ``cli`` and
``commands`` turn arguments into it and its report into an exit code; ``selftest`` runs it on answers that are at fault.

``databases`` is what is known of each engine: how its processes and files are told, which of their settings matter, and so
what of them is kept at all.

``verify`` is a second pipeline over the same parts: it writes as a database does, and follows what it wrote.

Who may import whom: ``facts`` imports nothing of ours; ``host`` knows no facts, and ``databases`` their
types alone; ``collect``, ``derive`` and ``judge`` import
``facts`` (and ``data``, tables and their loaders); ``report`` imports ``judge`` and ``facts``, and the words of ``verify``;
``audit``, ``commands``, ``verify`` and ``selftest`` join them all. So a rule cannot touch the machine, a parser cannot run
a command, and a report cannot look anything up. ``tests/test_layers.py`` holds it.
"""

__version__ = "0.1.0"
