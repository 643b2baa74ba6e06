"""zaudit: does fsync mean anything on this host? A durability auditor for OpenZFS under databases.

The folder listing is the way the data goes::

    targets ──> gather ──> facts ──> model ───> judge ──> report
                (which     (known,   (facts     (rules,    (terminal,
                 question)  unknown)  from       three      JSON)
                   │                  facts)     values)
                   ├─ sources   one module a source: what to ask, what the answer says
                   └─ host      the machine: commands, files, libraries, and nothing else touches it

``recording`` keeps what a host answered, and answers in its place. ``audit`` is that drawing as a program; ``cli`` and
``commands`` turn arguments into it and its report into an exit code; ``selftest`` runs it on answers that are at fault.

``databases`` has one class for each engine (files, arguments, settings, SQL, services, and what its settings promise), and the
questions about servers, their settings, paths and services.

``durability`` models where an acknowledged commit is, and which copy of it survives which event, from plain fields;
``model.whole_host`` fills these from facts.

``report`` has one type of document, and its writers: a terminal, a page for a browser. ``report.audit_page`` builds that of an
audit; ``verify``, ``diagnose``, ``checklist``, ``fleet`` and ``advice`` build theirs.

``verify`` is a second pipeline over the same parts: it writes as a database does, and follows what it wrote. ``diagnose`` is a
third: it watches the existing load. ``checklist`` puts what the three saw next to lists that people tick off. ``advice``
judges again and again what a fix would make of the facts. ``powercut`` is apart: it writes, cuts and counts.

Imports point downwards: each room knows those below it and none next to it, as ``LAYERS`` of ``tests/whole/test_layers.py`` has
them. Few modules touch the machine. So a rule cannot, a parser cannot run a command, and a report cannot look anything up.

Ten nouns that mean one thing each in here:

=========  ==========================================================================================================
subject    what a fact is about: a pool, vdev, leaf, disk, dataset, database, the host
leaf       a device of a pool as ``zpool status`` lists it; the disk is the physical device behind it
fact       a value of one subject: known with evidence, or unknown with reasons
reason     why a fact is unknown, in a sentence that names the command or file; its remedy is what would help
rule       what must hold of the facts of a subject, with the elements that its failure breaks, examples and sources
verdict    what one rule says of one subject: pass, fail, unknown, not applicable, waived
finding    equal verdicts that did not pass, told as one, with where to fix them
element    a part of the path of a commit that can be broken (auditor/durability/repairs.py)
cell       what one event costs one dataset: no loss, no loss that relies on somebody, unknown or lost
recording  all answers of one host, from which every report can be made again
=========  ==========================================================================================================
"""

from __future__ import annotations

import errno

__version__ = "0.3.0"

EXIT_BROKE, EXIT_USAGE, EXIT_NOTHING, EXIT_INTERRUPTED = 1, 2, 3, 130
NO_MEMORY = "not enough memory (see ulimit -v, and the limit of a container)"
DISK = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
)  # a disk that is full or fails: no fault of the words


class Stop(Exception):
    """The text is one sentence for the user. exit_code: of the command."""

    exit_code = EXIT_USAGE
