"""Facts from facts, one module a subject of the field. ``derivation`` says what a derivation is.

A fact is derived when it is asked for; a derivation says what it needs, and what is missing makes its facts unknown, with
the same reasons. Devices: ``disk``, ``write_cache``, ``flushes``, ``vdev``. Pools: ``pool``,
``intent_log``, ``dataset``. Databases: ``database``. The host:
``release``, ``kernels``, ``next_boot``, ``fault_log``. ``stores`` and ``whole_host`` derive nothing: they make a
host of the durability model of the facts, as it is now and from the next boot on.
"""
