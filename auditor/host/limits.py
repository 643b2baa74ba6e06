"""How much zaudit reads, at most. What lies above a limit is an error that names it, never silently less."""

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

# of the process that reads them
READER_BYTES = 256 * MIB  # its address space
READER_CPU_S = 10
READER_DESCRIPTORS = 32

# of database servers that run: how many are looked at one by one
SERVERS_OF_A_USER = 10
SERVERS = 40
