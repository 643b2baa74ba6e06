"""Boots a throw-away OpenZFS guest, runs a script in it, brings its results back.

    with VM(zfs="2.4", disks=["nvme:2G", "sata:1G:physical_block_size=4096"]) as vm:
        result = vm.start("zpool create tank /dev/disk/by-id/nvme-*LABNVME0", {"helper.py": "..."}).wait()

The input files travel as a second cpio archive behind the initrd (guest: /lab). What the script prints, and a tar of
/lab/out, come back over virtio-serial ports; a third port (lab.ack) is a socket both ways, for guests that report while
they run. There is no network, but where a port of this host is forwarded to the guest's server of ssh, and no login but by a
key that the script puts there. The root disk is a snapshot: nothing that a guest does is kept.

A disk is ``KIND:SOURCE[:DEVICE_OPTIONS]``. KIND: nvme, sata (not on lines 2.1 and 2.2: their kernel has no AHCI), scsi,
vblk; the serial numbers are LABNVME0, LABNVME1, LABSATA0... SOURCE: a size (a new sparse file), SIZE!flush (one
whose flushes fail with EIO), SIZE!read (one that cannot read its sector 1048576), @PATH (an existing raw file),
nbd=PATH (the unix socket of an NBD server). DEVICE_OPTIONS go to the QEMU device as they are.
"""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from . import cpio
from .machine import CACHE, LabError, accelerator, image, qemu

# blkdebug, a filter of QEMU (docs/devel/blkdebug.txt)
FAILS = {
    "flush": '[inject-error]\nevent = "none"\niotype = "flush"\nerrno = "5"\nonce = "off"\n',
    "read": '[inject-error]\nevent = "none"\niotype = "read"\nerrno = "5"\nonce = "off"\nsector = "1048576"\n',
}
GUEST = Path(__file__).parent / "guest"
KERNEL_ARGS = (
    "console=ttyS0 quiet loglevel=4 random.trust_cpu=on cryptomgr.notests audit=0 mitigations=off "
    "rcupdate.rcu_expedited=1 net.ifnames=0 panic=-1 labinit=/lab/pid1"  # a panic ends QEMU (-no-reboot)
)
CLOCK = {"tcg": "clocksource=hpet tsc=unstable", "kvm": ""}
"""Under TCG on a busy host the calibration of the TSC fails, and the guest's clock runs several times too fast."""


@dataclass(frozen=True)
class Result:
    """What a guest left. ``rc`` is the exit status of the script, -1 when it did not finish."""

    rc: int
    log: str
    console: str
    qemu: str
    seconds: float
    timed_out: bool
    out: dict[str, bytes] = field(default_factory=dict)


def die_with_parent() -> None:
    """For ``preexec_fn``: the child gets SIGKILL when the thread that started it is gone, whatever ended that."""
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)


def clean_up_on_signals() -> None:
    """SIGTERM and SIGHUP end the program as SIGINT does: through the ``with`` blocks that remove what was started."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)


def scratch(kind: str = "vm") -> Path:
    """A new folder below the cache, named after this process; those of processes that were killed are removed."""
    run = CACHE / "run"
    run.mkdir(parents=True, exist_ok=True)
    for old in run.glob("*.*.*"):
        owner = old.name.split(".")[1]
        if owner.isdecimal() and not Path("/proc", owner).exists():
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{kind}.{os.getpid()}.", dir=run))


class VM:
    """One guest."""

    def __init__(
        self,
        zfs: str = "2.4",
        disks: Sequence[str] = (),
        mem: str = "2G",
        cpus: int = 2,
        *,
        cache: str = "writeback",
        append: str = "",
        accel: str | None = None,
        ssh: int = 0,
    ) -> None:
        """``cache`` is QEMU's mode of the disks: writeback passes flushes on, unsafe drops them. ``ssh``: the port of
        127.0.0.1 that leads to port 22 of the guest, which has the address 10.0.2.15 and reaches nothing itself."""
        self.image = image(zfs)
        if len(str(CACHE)) > 65:  # the address of a unix socket holds 108 bytes
            raise LabError(f"lab: {CACHE} is too long for unix sockets: set ZAUDIT_LAB to a shorter path")
        self.accel = accel or accelerator(lambda seconds: run("true", zfs=zfs, accel="kvm", timeout=seconds).rc == 0)
        self.disks, self.mem, self.cpus, self.cache, self.append = list(disks), mem, cpus, cache, append
        self.ssh = ssh
        self.dir = scratch()
        self.proc: subprocess.Popen[bytes] | None = None
        self.timed_out, self.started = False, 0.0

    def start(self, script: str, files: Mapping[str, str | bytes] | None = None) -> Self:
        """Boot; the guest runs the script (bash, as root, in /lab) with the files beside it."""
        content = {path.name: path.read_bytes() for path in GUEST.iterdir() if path.is_file()}
        content |= {name: data.encode() if isinstance(data, str) else data for name, data in (files or {}).items()}
        archive = cpio.pack(cpio.files("in", {**content, "run.sh": script.encode()}))
        (self.dir / "initrd").write_bytes((self.image / "initrd.cpio").read_bytes() + archive)
        words, environment = qemu()
        self.started = time.monotonic()
        with (self.dir / "qemu.log").open("wb") as log:
            # the names in the argv, the files of snapshot=on (TMPDIR) and the sockets all belong to this folder
            self.proc = subprocess.Popen(
                [*words, *self._arguments()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.dir,
                env={**os.environ, **environment, "TMPDIR": str(self.dir)},
                preexec_fn=die_with_parent,
            )
        return self

    def connect(self, name: str, timeout: float = 20) -> socket.socket:
        """A connected socket: ``ack`` (the guest's port lab.ack) or ``qmp``."""
        end = time.monotonic() + timeout
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(str(self.dir / f"{name}.sock"))
                return connection
            except OSError:
                connection.close()
                if time.monotonic() > end or self.proc is None or self.proc.poll() is not None:
                    raise
                time.sleep(0.05)

    def qmp(self, command: str, **arguments: object) -> Any:
        """One command to QEMU over a new connection; its ``return`` value."""
        with self.connect("qmp") as connection, connection.makefile("rw") as stream:
            stream.readline()
            answer: Any = None
            for name, words in (("qmp_capabilities", {}), (command, arguments)):
                stream.write(json.dumps({"execute": name, "arguments": words}) + "\n")
                stream.flush()
                answer = {}
                while "return" not in answer:
                    answer = json.loads(stream.readline())
                    if "error" in answer:
                        raise RuntimeError(f"{name}: {answer['error']}")
            return answer["return"]

    def wait(self, timeout: float = 600) -> Result:
        """Wait until the guest is off, kill it at the timeout, return its result."""
        assert self.proc is not None
        try:
            self.proc.wait(timeout)
        except subprocess.TimeoutExpired:
            self.timed_out = True
        return self.result()

    def kill(self) -> None:
        """SIGKILL: for the guest, the power is gone."""
        if self.proc is not None and self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()

    def result(self) -> Result:
        """What came back; a guest that still runs is killed first."""
        self.kill()
        log, console, errors = (self._text(name) for name in ("guest.log", "console.log", "qemu.log"))
        out: dict[str, bytes] = {}
        with (
            contextlib.suppress(tarfile.TarError, OSError),
            tarfile.open(
                self.dir / "out.tar",
                ignore_zeros=True,  # a guest may send several archives
            ) as archive,
        ):
            for member in archive:
                if member.isfile() and (content := archive.extractfile(member)):
                    out[os.path.normpath(member.name)] = content.read()
        seconds = time.monotonic() - self.started
        return Result(int(out.pop(".rc", b"-1")), log, console, errors, seconds, self.timed_out, out)

    def close(self) -> None:
        """Nothing of this guest is left: no process, no socket, no file."""
        self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None) -> None:
        self.close()

    def _text(self, name: str) -> str:
        path = self.dir / name
        return path.read_text(errors="replace") if path.exists() else ""

    def _arguments(self) -> list[str]:
        def port(name: str, backend: str) -> list[str]:
            number = name.removeprefix("lab.")
            return ["-chardev", f"{backend},id={number}", "-device", f"virtserialport,chardev={number},name={name}"]

        append = " ".join(filter(None, (KERNEL_ARGS, CLOCK[self.accel], self.append)))
        root = str(self.image / "root.img").replace(",", ",,")
        return [
            *("-nodefaults", "-no-user-config", "-machine", f"q35,accel={self.accel},graphics=off"),
            *("-cpu", "host" if self.accel == "kvm" else "max", "-smp", str(self.cpus), "-m", self.mem),
            *("-display", "none", "-no-reboot", "-chardev", "file,id=con,path=console.log", "-serial", "chardev:con"),
            *("-kernel", str(self.image / "vmlinuz"), "-initrd", "initrd", "-append", append),
            *("-drive", f"if=none,id=root,file={root},format=raw,snapshot=on,cache=unsafe"),
            *("-device", "virtio-blk-pci,drive=root,serial=LABROOT", "-device", "virtio-serial-pci"),
            *port("lab.log", "file,path=guest.log"),
            *port("lab.out", "file,path=out.tar"),
            *port("lab.ack", "socket,path=ack.sock,server=on,wait=off"),
            *("-qmp", "unix:qmp.sock,server=on,wait=off", "-device", "virtio-rng-pci"),
            *self._network_arguments(),
            *self._disk_arguments(),
        ]

    def _network_arguments(self) -> list[str]:
        if not self.ssh:
            return []
        forward = f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{self.ssh}-10.0.2.15:22"
        return ["-netdev", forward, "-device", "virtio-net-pci,netdev=net,romfile="]

    def _disk_arguments(self) -> list[str]:
        arguments: list[str] = []
        count: dict[str, int] = {}
        kinds = [disk.split(":")[0] for disk in self.disks]
        for controller in range(-(-kinds.count("sata") // 6)):
            arguments += ["-device", f"ich9-ahci,id=ahci{controller}"]
        if "scsi" in kinds:
            arguments += ["-device", "virtio-scsi-pci,id=scsi0"]
        for index, (kind, disk) in enumerate(zip(kinds, self.disks, strict=True)):
            _, source, options = [*disk.split(":", 2), ""][:3]
            number = count[kind] = count.get(kind, -1) + 1
            device = {
                "nvme": "nvme",
                "sata": f"ide-hd,bus=ahci{number // 6}.{number % 6},model=LAB_SATA_DISK",
                "scsi": "scsi-hd,bus=scsi0.0",
                "vblk": "virtio-blk-pci",
            }[kind]
            file = self._backing(index, source).replace(",", ",,")
            drive = f"if=none,id=d{index},format=raw,cache={self.cache},discard=unmap,file={file}"
            device += f",drive=d{index},serial=LAB{kind.upper()}{number}" + (options and f",{options}")
            arguments += ["-drive", drive, "-device", device]
        return arguments

    def _backing(self, index: int, source: str) -> str:
        size, _, fails = source.partition("!")
        if fails in FAILS:
            (self.dir / f"{fails}.conf").write_text(FAILS[fails])
            return f"blkdebug:{fails}.conf:{self._backing(index, size)}"
        if source.startswith("nbd="):
            return f"nbd+unix:///?socket={source[4:]}"
        if source.startswith("@"):
            return os.path.abspath(source[1:])
        bytes_ = re.fullmatch(r"(\d+)([KMGT]?)", source)
        if bytes_ is None:
            raise LabError(f"lab: bad size of a disk: {source!r}")
        path = self.dir / f"disk{index}.raw"
        with path.open("wb") as disk:
            disk.truncate(int(bytes_[1]) << 10 * " KMGT".index(bytes_[2] or " "))
        return str(path)


def run(script: str, files: Mapping[str, str | bytes] | None = None, timeout: float = 600, **options: Any) -> Result:
    """Boot, run, clean up; the options are those of VM."""
    with VM(**options) as vm:
        return vm.start(script, files).wait(timeout)
