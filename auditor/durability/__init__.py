"""Where is an acknowledged commit, and which copy of it survives which event?

To be read in this order: answers (four ranks, and how they join), host (what the model knows of a host, and what each event
destroys), legs (what a leg keeps), copies (where a dataset's bytes are), table (commits, consistency and pool at all events),
repairs (what can be broken, and which of it a cell hangs on). Nothing here reads a file or asks a host: what is in force now
and what the next boot puts in force are two hosts.

Names of OpenZFS's functions are those of zfs-2.4.4; where 2.1.11 or 2.3.9 differ, the text says so.
"""
