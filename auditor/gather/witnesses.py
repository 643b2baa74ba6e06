"""What several witnesses report about one thing is compared before anything is concluded from it.

Each of the modules here knows one such thing. Where the witnesses differ, what depends on it becomes Unknown with both sides
named, whatever one of them said; where only one was heard, it is believed.
"""

from __future__ import annotations

from auditor.databases import redis
from auditor.facts import Facts, Kind
from auditor.gather import database_walk, mounted, past_commands, past_events, same_disk, vdev_trees
from auditor.sources import block_tree, zpool_status

_UNSEEN: dict[Kind, tuple[str, ...]] = {
    kind: tuple(
        name.partition(".")[2]
        for name in (*zpool_status.status.facts, *block_tree.PROVIDES)
        if name.startswith(f"{kind}.")
    )
    for kind in ("vdev", "leaf")
}


def compare(facts: Facts) -> None:
    """All of it; replaces in the store what is not believed any more."""
    vdev_trees.compare(facts, _UNSEEN)
    same_disk.compare(facts)
    mounted.compare(facts)
    database_walk.compare(facts)
    past_events.compare(facts)
    past_commands.compare(facts)
    redis.compare(facts)
