"""How much zaudit takes in, and how long it waits. Over a bound stands a reason in place of the answer, never silently less."""

from __future__ import annotations

MIB = 1 << 20

FILE_BYTES = 4 * MIB  # of one file of the machine
MACHINE_BYTES = 128 * MIB  # of the machine's own files in one question; a member of a recording may have as much
MACHINE_ENTRIES = 1_000_000  # of one folder of the machine: /proc has 4 million processes at most, a pool its datasets

# of files that belong to others, which one of them may have made for zaudit to stumble over: each of their lines is looked
# at, and 4 MiB of the shortest lines take seconds; an honest configuration has some kilobytes
OTHERS_FILE_BYTES = 1 * MIB  # of one file
QUESTION_BYTES = 4 * MIB  # in one question
USER_BYTES = 8 * MIB  # in all questions about processes of one user
QUESTION_FILES = 1_000  # that are opened in one question
FOLDER_ENTRIES = 10_000  # of one folder
DATA_ENTRIES = 100_000  # of one folder with data files, of which the sizes of blocks alone are asked

# of the process that reads them
READER_BYTES = 256 * MIB  # its address space
READER_CPU_S = 10
READER_DESCRIPTORS = 32

# of database servers that run: how many are looked at one by one
SERVERS_OF_A_USER = 10
SERVERS = 40

# of commands and of a whole run
OUTPUT_BYTES = 128 << 20
"""Of what one command prints, on both streams together."""
HISTORY_BYTES = 1 << 30
"""The same of a history of which only some lines are kept, and none of the others held. (OpenZFS: zpool history is a ring of
1 GiB at most, spa_history_create_obj() of module/zfs/spa_history.c)"""
LINE_BYTES = 64 << 10
"""Of a line of a history of which only some lines are kept. (OpenZFS: a record of zpool history has 8 KiB at most,
HIS_MAX_RECORD_LEN of include/sys/fs/zfs.h)"""
HALF_BYTES = 64 << 10
"""Of each stream that are kept of a command that gave no answer."""
PART_BYTES = 16 << 20
"""The same of one of which a part is an answer, too: zfs get of 10,000 datasets."""
ANSWERS_BYTES = 512 << 20
"""Of all answers of one run together."""
AT_ONCE = 32
"""Questions that are open beside each other; a host with 24 drives has 150."""
AFTER_KILL_S = 2.0
"""In which a command that was killed is waited for: a suspended pool leaves processes in uninterruptible sleep."""
DEADLINE_S = 900.0
"""Of a whole run, unless --deadline says otherwise."""
