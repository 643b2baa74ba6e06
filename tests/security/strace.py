"""What ``strace -ff -y`` saw of a whole run, and whether any of it could change something.

The proof goes by lists of what is allowed: a system call that stands in none of them is a problem, and so is a line that
cannot be read. One file a thread (``-ff``), so that no call is printed in two pieces; ``-y`` puts the path behind each
descriptor. (man 1 strace; man 2 of each call)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

# Not traced, because they come by the thousand: what they touch is memory, or a descriptor whose opening was traced.
QUIET = (
    *("read", "pread64", "readv", "preadv", "preadv2", "write", "pwrite64", "writev", "lseek", "close", "close_range"),
    *("mmap", "munmap", "mprotect", "mremap", "madvise", "brk", "msync", "fsync", "fdatasync"),
    *("futex", "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "nanosleep", "clock_nanosleep"),
    *(
        "rt_sigaction",
        "rt_sigprocmask",
        "rt_sigreturn",
        "sigaltstack",
        "restart_syscall",
        "sched_yield",
        "wait4",
        "waitid",
    ),
)
# These change nothing but the process itself.
HARMLESS = frozenset(
    (
        *("access", "faccessat", "faccessat2", "stat", "lstat", "fstat", "newfstatat", "statx", "statfs", "fstatfs"),
        *("readlink", "readlinkat", "getcwd", "chdir", "fchdir", "getdents64", "getxattr", "lgetxattr", "fgetxattr"),
        *("name_to_handle_at", "listxattr", "llistxattr", "flistxattr", "inotify_init1", "fadvise64", "umask", "flock"),
        *("dup", "dup2", "dup3", "fcntl", "pipe", "pipe2", "epoll_create1", "epoll_ctl", "eventfd2", "signalfd4"),
        *("exit", "exit_group", "arch_prctl", "prctl", "capget", "prlimit64", "getrlimit", "setrlimit", "getrusage"),
        *("set_tid_address", "set_robust_list", "get_robust_list", "rseq", "membarrier", "sched_getaffinity"),
        *("sched_getparam", "sched_getscheduler", "get_mempolicy", "getcpu", "getpriority"),
        *("getpid", "gettid", "getppid", "getpgrp", "getpgid", "getsid", "setsid", "setpgid", "personality"),
        *("getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups", "capget"),
        *("rt_sigpending", "rt_sigtimedwait", "rt_sigsuspend", "pause", "alarm", "setitimer", "getitimer"),
        *("timer_create", "timer_settime", "timer_delete", "timerfd_create", "timerfd_settime", "times", "time"),
        *(
            "clock_gettime",
            "clock_getres",
            "gettimeofday",
            "uname",
            "sysinfo",
            "getrandom",
            "getpeername",
            "getsockname",
        ),
        *("getsockopt", "pidfd_open", "landlock_create_ruleset", "seccomp", "memfd_create"),
    )
)
# The reader of files of others gives up its rights and goes into their namespaces: allowed to this interpreter only.
STEPPING_DOWN = frozenset(
    (
        "setns",
        "unshare",
        "chroot",
        "setgroups",
        "setgid",
        "setuid",
        "setresgid",
        "setresuid",
        "setfsuid",
        "setfsgid",
        "capset",
    )
)
FORKS = frozenset(("clone", "clone3", "fork", "vfork"))
OPENS = frozenset(("open", "openat", "openat2", "creat"))
EXECS = frozenset(("execve", "execveat"))
KILLS = frozenset(("kill", "tkill", "tgkill", "pidfd_send_signal"))
SOCKETS = frozenset(
    ("socket", "socketpair", "connect", "bind", "listen", "accept4", "sendto", "sendmsg", "recvmsg", "recvfrom")
)
# Allowed where every path that they name lies in the folder of the output.
IN_THE_OUTPUT = frozenset(
    (
        *("mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2", "ftruncate"),
        *("chmod", "fchmod", "fchmodat", "fchmodat2", "utimensat", "link", "linkat"),
    )
)
WRITING = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE")
LOOKING = ("O_PATH", "O_DIRECTORY")
NODES = frozenset(("/dev/null", "/dev/kmsg"))  # that zaudit itself may open for reading
IOCTLS = frozenset(("TCGETS", "TCGETS2", "TIOCGWINSZ", "FIOCLEX", "FIONBIO", "FIONREAD", "FS_IOC_GETFLAGS"))

LINE = re.compile(r"(\w+)\((.*)\)\s+= (.*)", re.DOTALL)
# The kernel runs no call of a thread that was killed where it stops before it: strace asks in vain which it was
# (include/linux/ptrace.h ptrace_report_syscall_entry(); strace src/syscall.c syscall_entering_decode(), stub_sysent)
KILLED = re.compile(r"\?\?\?\(\)\s+= \?(?: <unavailable>)?")
NOISE = re.compile(r"(\+\+\+|---) .* (\+\+\+|---)|strace: .*")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
AT = re.compile(r'(?:[\w-]+<([^>]*)>(?:\(deleted\))?, )?"((?:[^"\\]|\\.)*)"')
DESCRIPTOR = re.compile(r"\d+<([^>]*)>")
ARGUMENTS = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\.\.\.)?')


class Call(NamedTuple):
    """One system call: its arguments and its result as strace prints them."""

    name: str
    arguments: str
    result: str


class Program(NamedTuple):
    """What a process runs. ours: zaudit or its reader; argv: as far as strace prints it."""

    path: str
    argv: tuple[str, ...]
    ours: bool
    reader: bool = False


@dataclass
class Seen:
    """What a run did, each with its count; of: the name of the program that did it."""

    executed: Counter[str] = field(default_factory=Counter)
    programs: Counter[tuple[str, ...]] = field(default_factory=Counter)
    opened_for_writing: Counter[tuple[str, str]] = field(default_factory=Counter)  # (of, path)
    nodes: Counter[str] = field(default_factory=Counter)  # what zaudit itself opened for reading below /dev
    opened: int = 0
    calls: int = 0
    sockets: Counter[tuple[str, str]] = field(default_factory=Counter)  # (of, the call)
    ioctls: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # (of, device or empty, request)
    in_the_output: Counter[str] = field(default_factory=Counter)
    processes: int = 0
    problems: list[str] = field(default_factory=list)


class Devices(NamedTuple):
    """What tools may do, as patterns. opened: paths that they may open for writing; asked: paths on which they may make the
    ioctls of requests, which only read. refused: ioctls that they may try, as long as the kernel refuses."""

    opened: re.Pattern[str] = re.compile(r"(?!)")
    asked: re.Pattern[str] = re.compile(r"(?!)")
    requests: re.Pattern[str] = re.compile(r"(?!)")
    refused: re.Pattern[str] = re.compile(r"(?!)")


class Permitted(NamedTuple):
    """zaudit: the words that start it, the interpreter first. allows: whether it may start a tool (name, argument...).
    folders: where the tools are. output: the folder of -o, or empty. devices: what tools may do."""

    zaudit: tuple[str, ...]
    allows: Callable[[tuple[str, ...]], bool]
    folders: tuple[str, ...]
    output: str = ""
    devices: Devices = Devices()

    def tool(self, path: str, argv: tuple[str, ...]) -> bool:
        """Whether it is one of the commands that only read, by an absolute path of the fixed PATH."""
        folder, _, name = path.rpartition("/")
        return folder in self.folders and self.allows((name, *argv[1:]))


def parse(text: str) -> Iterator[Call]:
    """The calls of one thread. Raises ValueError for a line that is none."""
    lines = [line for line in text.splitlines() if line and not NOISE.fullmatch(line)]
    if lines and KILLED.fullmatch(lines[-1]):
        lines.pop()
    for line in lines:
        if found := LINE.fullmatch(line):
            yield Call(*found.groups())
        elif line.endswith((" <unfinished ...>", " <detached ...>")):  # the process was ended in it
            yield Call(line.partition("(")[0], line.partition("(")[2], "?")
        else:
            raise ValueError(f"strace: {line[:200]}")


def files(folder: Path) -> dict[str, str]:
    """What :func:`command` wrote there: "calls.NUMBER" -> text."""
    return {path.name: path.read_text(errors="replace") for path in folder.glob("calls.*")}


def command(folder: Path) -> list[str]:
    """What stands before the command that is traced."""
    quiet = ",".join(f"?{name}" for name in QUIET)  # "?": on this architecture the call may not exist
    return [
        "strace",
        "-ff",
        "--seccomp-bpf",
        "-qq",
        "-y",
        "-s",
        "20000",
        "-e",
        f"trace=!{quiet}",
        "-o",
        f"{folder}/calls",
    ]


def read(traced: Mapping[str, str], permitted: Permitted) -> Seen:
    """Everything that a run did, judged. traced: a file for each thread. Raises ValueError where there are none, and for a
    line that is not understood."""
    if not traced:
        raise ValueError("strace traced nothing")
    calls = {int(name.rpartition(".")[2]): list(parse(text)) for name, text in traced.items()}
    born = {int(call.result.split("<")[0]) for each in calls.values() for call in each
            if call.name in FORKS and call.result[:1].isdigit()}  # fmt: skip
    seen = Seen(processes=len(calls))
    waiting: list[tuple[int, Program | None]] = [(thread, None) for thread in calls if thread not in born]
    if len(waiting) != 1:
        seen.problems.append(f"{len(waiting)} processes were not started by one that was traced")
    while waiting:
        thread, program = waiting.pop()
        for call in calls.get(thread, ()):
            seen.calls += 1
            if call.name in FORKS:
                if call.result[:1].isdigit():
                    waiting.append((int(call.result.split("<")[0]), program))
            elif call.name in EXECS:
                program = _executed(call, program, permitted, seen)
            else:
                _judge(call, program or Program("", (), ours=True), permitted, born, seen)
    return seen


def _executed(call: Call, before: Program | None, permitted: Permitted, seen: Seen) -> Program | None:
    """What a process runs after it; a failed attempt is judged as well."""
    words = tuple(_plain(word) for word in ARGUMENTS.findall(call.arguments))
    if not words:
        seen.problems.append(f"executed, and strace does not say what: {call.arguments[:120]}")
        return before
    path, argv = words[0], words[1:]
    if before is None and argv[: len(permitted.zaudit)] == permitted.zaudit:
        return Program(path, argv, ours=True)
    seen.executed[path] += 1
    seen.programs[(path, *argv[1:3])] += 1
    reader = path == permitted.zaudit[0] and argv[1:3] == ("-I", "-S")
    if before is None or not before.ours or before.reader:
        seen.problems.append(f"{before.path if before else 'before zaudit'} started {path} {' '.join(argv[1:])[:120]}")
    elif not reader and not permitted.tool(path, argv):
        seen.problems.append(f"zaudit started {path} {' '.join(argv[1:])[:120]} ({call.result})")
    if call.result.startswith("-1"):
        return before
    return Program(path, argv, ours=reader, reader=reader)


def _judge(call: Call, program: Program, permitted: Permitted, born: set[int], seen: Seen) -> None:
    of = "zaudit" if program.ours else PurePosixPath(program.path).name
    devices = Devices() if program.ours else permitted.devices
    match call.name:
        case name if name in HARMLESS or (name in STEPPING_DOWN and program.reader):
            return
        case name if name in OPENS:
            seen.opened += 1
            flags = STRING.sub("", call.arguments)
            path = _opened(call)
            if name != "creat" and not any(flag in flags for flag in WRITING):
                if not (program.ours and path.startswith("/dev/")) or any(flag in flags for flag in LOOKING):
                    return
                seen.nodes[path] += 1
                if path in NODES:
                    return
                seen.problems.append(f"{of}: {call.name}({call.arguments[:200]}) = {call.result[:60]}")
                return
            shown = "(in the folder of the output)" if _inside(path, permitted.output) else path
            seen.opened_for_writing[of, re.sub(r"(?<=/)\d+(?=/|$)", "N", shown)] += 1
            if path == "/dev/null" or _inside(path, permitted.output) or devices.opened.fullmatch(path):
                return
        case "ioctl":
            node, request = _ioctl(call)
            plain = request in IOCTLS
            seen.ioctls[of, "" if plain else node, request] += 1
            may = devices.requests.fullmatch(request) or (call.result[0] == "-" and devices.refused.fullmatch(request))
            if plain or (may and devices.asked.fullmatch(node)):
                return
        case name if name in SOCKETS:
            seen.sockets[of, f"{name}({call.arguments[:100]})"] += 1
        case name if name in KILLS:
            number = re.match(r"-?(\d+)", call.arguments)
            if number and int(number[1]) in born:
                return
        case name if name in IN_THE_OUTPUT:
            paths = _paths(call)
            if paths and all(_inside(path, permitted.output) for path in paths):
                seen.in_the_output[name] += 1
                return
    seen.problems.append(f"{of}: {call.name}({call.arguments[:200]}) = {call.result[:60]}")


def _opened(call: Call) -> str:
    """The path behind the descriptor that it gave; where it gave none, the path that was asked for."""
    if found := DESCRIPTOR.match(call.result):
        return _plain(found[1])
    paths = _paths(call)
    return paths[0] if paths else "?"


def _paths(call: Call) -> list[str]:
    """Every path that a call names, absolute as far as the descriptor before it says; of fchmod and ftruncate the path of
    their descriptor."""
    if call.name in ("fchmod", "ftruncate"):
        return [_plain(path) for path in DESCRIPTOR.findall(call.arguments)[:1]]
    return [str(PurePosixPath(_plain(folder)) / _plain(name)) for folder, name in AT.findall(call.arguments)]


def _inside(path: str, folder: str) -> bool:
    return bool(folder) and ".." not in path.split("/") and PurePosixPath(path).is_relative_to(folder)


def _ioctl(call: Call) -> tuple[str, str]:
    found = re.match(r"\d+(?:<([^>]*)>(?:\(deleted\))?)?, (\w+\([^)]*\)|\w+)", call.arguments)
    return (_plain(found[1] or ""), found[2]) if found else ("?", call.arguments[:60])


def _plain(text: str) -> str:
    r"""What strace escapes: \" \\ \n, and bytes as \ooo or \xhh."""
    return re.sub(r"\\(x[0-9a-f]{2}|[0-7]{1,3}|.)", _unescaped, text)


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] == "x" and len(code) == 3:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code.isdigit() else {"n": "\n", "t": "\t", "r": "\r"}.get(code, code)
