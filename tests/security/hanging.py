"""What a user without rights executes in a process of his so that whoever asks the kernel for it waits: a FUSE file system in
a user namespace of his own, and something of the process that waits for an answer of it.

The daemon is his own process, too, and dies with the one that waits.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from tests.security.fakes import Refused, server

# As root: where /dev/fuse is root's alone (many containers), the user has one of his own that all may open, as distributions
# have it.
_DEVICE = """
import stat
NEWNS, PRIVATE = 0x20000, 0x44000
must(libc.unshare(NEWNS))
must(libc.mount(b"none", b"/", None, PRIVATE, None))
must(libc.mount(b"none", b"/mnt", b"tmpfs", 0, None))
os.umask(0)
try:
    os.mknod("/mnt/fuse", stat.S_IFCHR | 0o666, os.stat("/dev/fuse").st_rdev)
except OSError as error:
    print(f"/dev/fuse: {error.strerror}", flush=True)
    sys.exit(1)
"""
# fd: of /dev/fuse; file: on the file system. Opcodes and structures are those of linux/fuse.h.
_MOUNT = """
NEWUSER, PDEATHSIG = 0x10000000, 1
must(libc.unshare(NEWUSER | NEWNS))
open("/proc/self/setgroups", "w").write("deny")
open("/proc/self/uid_map", "w").write(f"0 {user} 1")
open("/proc/self/gid_map", "w").write(f"0 {user} 1")
try:
    fd = os.open("/mnt/fuse", os.O_RDWR)
except OSError as error:
    print(f"/dev/fuse: {error.strerror}", flush=True)
    sys.exit(1)
must(libc.mount(b"x", b"/tmp", b"fuse", 0, f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()))
"""
_FUSE = (
    _MOUNT
    + """
def attributes(inode):
    mode, size = (0o40777, 4096) if inode == 1 else (0o100777, 1 << 20)
    return struct.pack("<QQQQQQIIIIIIIIII", inode, size, 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
ANSWERS = {
    26: lambda inode: struct.pack("<IIIIHHIIHH", 7, 31, 65536, 0, 12, 12, 65536, 1, 0, 0).ljust(64, b"\\0"),  # INIT
    1: lambda inode: struct.pack("<QQQQII", 2, 0, 1000, 1000, 0, 0) + attributes(2),  # LOOKUP
    3: lambda inode: struct.pack("<QII", 1000, 0, 0) + attributes(inode),  # GETATTR
    14: lambda inode: struct.pack("<QII", 1, 0, 0),  # OPEN
}
def serve():
    while True:
        request = os.read(fd, 1 << 20)
        _, operation, unique, inode = struct.unpack("<IIQQ", request[:24])
        if operation in (15, 25):  # READ and FLUSH are never answered
            print("ready", flush=True)
        if operation in (15, 25, 2, 36, 42):  # and the others need no answer
            continue
        data = ANSWERS[operation](inode) if operation in ANSWERS else b""
        os.write(fd, struct.pack("<IiQ", 16 + len(data), 0 if operation in ANSWERS else -38, unique) + data)
parent = os.getpid()
if os.fork() == 0:
    libc.prctl(PDEATHSIG, 9, 0, 0, 0)
    try:
        while os.getppid() == parent:
            serve()
    finally:
        os._exit(0)
file = os.open("/tmp/file", os.O_RDWR)
os.close(fd)
"""
)
# one thread reads its own memory, which lies on the file system; another one wants to change what lies there
MEMORY = f"""{_FUSE}
mapped = mmap.mmap(file, 1 << 20, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
memory = os.open("/proc/self/mem", os.O_RDONLY)
threading.Thread(target=os.pread, args=(memory, 8, address), daemon=True).start()
libc.prctl(15, name.encode(), 0, 0, 0)
time.sleep(0.2)
mmap.mmap(-1, 4096)
"""
# it becomes another program, which closes the file
PROGRAM = f"""{_FUSE}
libc.prctl(15, name.encode(), 0, 0, 0)
os.execv("/bin/sleep", [name, "100"])
"""


@contextlib.contextmanager
def hanging(how: str, name: str, user: int) -> Iterator[int]:
    """The number of a process of this name that lets wait who asks for it. Raises Refused."""
    with server(name=name, user=user, before=_DEVICE, after=how) as number:
        (daemon,) = Path(f"/proc/{number}/task/{number}/children").read_text().split()
        try:
            until = time.monotonic() + 10
            while how == MEMORY and "\nState:\tD" not in Path(f"/proc/{number}/status").read_text():
                if time.monotonic() > until:
                    raise Refused("it does not hang")
                time.sleep(0.01)
            yield number
        finally:  # nothing else ends what waits for an answer of it
            os.kill(int(daemon), signal.SIGKILL)


def missing() -> str:
    """Why there can be no such process here, or empty."""
    if os.geteuid() != 0:
        return "needs root, to be another user"
    if not os.path.exists("/dev/fuse"):
        return "needs FUSE"
    try:
        with server(before=_DEVICE, after=_MOUNT):
            return ""
    except Refused as why:
        return f"a user may have no file system of his own here: {why}"
