"""Where is an acknowledged commit, and which copy of it survives which event?

Read in this order: answers (four ranks, and how they join), host (its parts and the events), legs (what a leg keeps),
copies (where a dataset's bytes are), table (all events), repairs (which broken element a cell hangs on). Nothing here
reads a file or asks a host: what is in force now and after the next boot are two hosts. Functions of OpenZFS are those
of zfs-2.4.4, unless noted.
"""
