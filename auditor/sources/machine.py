"""The machine and its kernel: name, firmware, memory, virtualization; and its records of power cuts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from auditor.facts import HOST, Evidence, Fact, Known, Spec, Subject, known
from auditor.host.request import WITNESS, Files, Output, Read, Run, command
from auditor.sources.mounts import plain
from auditor.sources.source import LARGEST, integer, source
from auditor.text import crowded, harmless


class DriveCuts(NamedTuple):
    """What the power cuts of one run of ``zaudit powercut`` showed of one drive. layer: drive, or pool where the run wrote
    to one. verdict: the word of its report. cuts: those that count; lost: those that lost flushed data. serial: empty where
    it is not known."""

    layer: str
    verdict: str
    cuts: int
    lost: int
    model: str
    firmware: str
    serial: str

    @property
    def kept(self) -> bool:
        """Did every cut that counts keep all?"""
        return self.verdict in ("HELD", "TOO FEW CUTS")


_IDS = re.compile(r'^ID(?:_LIKE)?=(["\']?)([a-z0-9._ -]+)\1\n', re.M)  # of both in the order of the file
LINES = {"/proc/sys/kernel/hostname": "hostname", "/proc/sys/kernel/osrelease": "kernel_release"}


@source(
    "identity",
    "host",
    ask=Read((*LINES, "/etc/os-release", "/etc/hostid")),
    facts={
        "hostname": Spec.word("its name"),
        "kernel_release": Spec.word("release of the running kernel, as uname -r says"),
        "os_ids": Spec.words("ID of the distribution, and those that it is like"),
        "hostid_file": Spec.flag("/etc/hostid exists"),
    },
)
def identity(reply: Files, host: Subject) -> Iterator[Fact]:
    """Which host, which kernel, which distribution, and whether it has an ``/etc/hostid`` (which multihost=on needs).

    One line each; os-release is a list of shell assignments. (man 5 os-release)"""
    for path, name in LINES.items():
        if path in reply.text:
            line = re.fullmatch(r"(\S+)\n", reply.text[path])
            if line is None:
                raise ValueError(f"{path} is not one line")
            yield Fact(HOST, name, known(line[1], line[1], f"cat {path}"))
    ids = [found[2] for found in _IDS.finditer(reply.text.get("/etc/os-release", ""))]
    if ids:
        yield Fact(HOST, "os_ids", known(tuple(" ".join(ids).split()), ", ".join(ids), "grep ID /etc/os-release"))
    if "/etc/hostid" in reply.text:
        yield Fact(HOST, "hostid_file", known(True, "/etc/hostid exists", "ls -l /etc/hostid"))
    # that it is not there counts only where files could be read at all
    elif reply.text and reply.errors.get("/etc/hostid", "").startswith("no such file"):
        yield Fact(HOST, "hostid_file", known(False, "no /etc/hostid", "ls -l /etc/hostid"))


BUILD = "/proc/sys/kernel/version"


@source(
    "kernel_build",
    "host",
    ask=Read((BUILD,)),
    facts={
        "kernel_build": Spec.word("how the running kernel was built, as uname -v says: SMP PREEMPT_RT and the like")
    },
)
def kernel_build(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/proc/sys/kernel/version``: number, kind of preemption and day of the build of the running kernel. (man 2 uname)

    One line."""
    if BUILD in reply.text:
        line, newline, rest = reply.text[BUILD].partition("\n")
        if not line.isprintable() or not line or not newline or rest:
            raise ValueError(f"{BUILD} is not one line")
        yield Fact(HOST, "kernel_build", known(line, line, f"cat {BUILD}"))


CIB = "/var/lib/pacemaker/cib/cib.xml"
_RESOURCE = re.compile(r'\btype="ZFS(?:-[\w-]*)?"', re.ASCII)
_POOL = re.compile(r'\bname="pool"[^<>]{0,100}\bvalue="([\w.: -]{1,255})"', re.ASCII)


def keep_cib(text: str) -> str:
    """``<primitive type="ZFS"><nvpair name="pool" value="NAME"/></primitive>`` of each pool. What was kept is kept again."""
    of_zfs = (
        body.partition("</primitive>")[0]
        for head, _, body in (each.partition(">") for each in text.split("<primitive ")[1:])
        if _RESOURCE.search(head)
    )
    found = (_POOL.search(each.partition(">")[0]) for body in of_zfs for each in body.split("<nvpair ")[1:])
    pools = dict.fromkeys(each[1] for each in found if each)
    form = '<primitive type="ZFS"><nvpair name="pool" value="{}"/></primitive>\n'
    return "".join(form.format(name) for name in pools)


@source(
    "cluster",
    "host",
    ask=Read((CIB, WITNESS)),
    keeps={CIB: keep_cib},
    facts={"cluster_pools": Spec.words("pools that Pacemaker imports on one host or another")},
)
def cluster(reply: Files, host: Subject) -> Iterator[Fact]:
    """``cib.xml`` of Pacemaker: the pools of its resources of type ZFS, which it exports here and imports on another host.
    (ClusterLabs resource-agents heartbeat/ZFS: parameter pool)

    That there is no such file means that it manages none only where files could be read at all."""
    reply.witness()
    if CIB in reply.text or reply.absent(CIB):
        pools = tuple(_POOL.findall(keep_cib(reply.text.get(CIB, ""))))
        text = ", ".join(pools) or "Pacemaker manages no pool"
        yield Fact(HOST, "cluster_pools", known(pools, text, f"grep -A9 'type=\"ZFS' {CIB}"))


FOLDER = "/sys/class/dmi/id"
FILES = ("sys_vendor", "product_name", "bios_vendor")
HYPERVISORS = (  # beginning of any of the three names -> hypervisor
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "amazon"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "oracle"),
    ("VirtualBox", "oracle"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "microsoft"),
    ("Virtual Machine", "microsoft"),
    ("Apple Virtualization", "apple"),
    ("Google Compute Engine", "google"),
)


@source(
    "dmi",
    "host",
    ask=Read(tuple(f"{FOLDER}/{name}" for name in FILES)),
    facts={"virtual_machine_hint": Spec.word("the hypervisor that the three names betray, or none")},
)
def dmi(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/sys/class/dmi/id``: who made this machine, as its firmware says; a second witness of virtualization.

    The names are those that systemd matches too (systemd src/basic/virt.c, detect_vm_dmi_vendor). What they betray, once all
    three are there."""
    names = {}
    for name in FILES:
        path = f"{FOLDER}/{name}"
        if path in reply.text:
            if not reply.text[path].endswith("\n"):
                raise ValueError(f"{path} is cut off")
            names[name] = reply.text[path].strip()
    hint = next((vm for start, vm in HYPERVISORS for each in names.values() if each.startswith(start)), "none")
    if hint != "none" or len(names) == len(FILES):
        yield Fact(HOST, "virtual_machine_hint", known(hint, ", ".join(names.values()), f"grep . {FOLDER}/*"))


CONTAINERS = frozenset(
    [
        "container-other",
        "docker",
        "lxc",
        "lxc-libvirt",
        "openvz",
        "podman",
        "pouch",
        "proot",
        "rkt",
        "systemd-nspawn",
        "wsl",
    ]
)


@source(
    "virtualization",
    "host",
    ask=Run(("systemd-detect-virt",), package="systemd", accept=frozenset({0, 1})),
    runs=(command("systemd-detect-virt", apart="--vm --container"),),
    facts={
        "virtualization": Spec.word(
            "none, or the hypervisor or container as systemd calls it (kvm, qemu, vmware, lxc, ...)"
        ),
        "container": Spec.flag("the innermost is a container"),
    },
)
def virtualization(reply: Output, host: Subject) -> Iterator[Fact]:
    """``systemd-detect-virt``: the hypervisor or container that we run in; "none" (with exit code 1) on bare metal.

    Prints the innermost: inside a container on a virtual machine it names the container."""
    if re.fullmatch(r"[a-z][a-z0-9-]*\n", reply.text) is None:
        raise ValueError("it is not one word")
    word = reply.text.rstrip("\n")
    yield Fact(HOST, "virtualization", known(word, word, "systemd-detect-virt"))
    yield Fact(HOST, "container", known(word in CONTAINERS, word, "systemd-detect-virt"))


OWN = "/proc/self/ns/pid"
FIRST = 0xEFFFFFFC


@source(
    "pid_namespace",
    "host",
    ask=Read((OWN,)),
    facts={
        "all_processes": Spec.flag("zaudit sees the processes of the whole machine, and not those of a container alone")
    },
)
def pid_namespace(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/proc/self/ns/pid``: whether process 1, as zaudit sees it, is the first process of this machine, or that of a
    container.

    The kernel gives the first namespace of processes a number that is always the same. (Linux include/linux/proc_ns.h
    PROC_PID_INIT_INO; man 7 pid_namespaces) Raises ValueError for a link that leads to no such namespace."""
    if OWN not in reply.links:
        return
    found = re.fullmatch(r"pid:\[([0-9]{1,10})\]", reply.links[OWN])
    if not found:
        raise ValueError(f"{OWN} leads elsewhere")
    yield Fact(HOST, "all_processes", known(int(found[1]) == FIRST, f"{OWN} is {found[0]}", f"readlink {OWN}"))


CORRECTED = frozenset({"Single-bit ECC", "Multi-bit ECC"})
NOT_CORRECTED = frozenset({"None", "Parity", "CRC"})
_BITS = re.compile(r"\d+ bits")


@source(
    "dmidecode",
    "host",
    ask=Run(("dmidecode", "-t", "memory"), package="dmidecode"),
    facts={"dmi_memory_ecc": Spec.flag("the firmware says of all system memory that its errors are corrected")},
)
def dmidecode(reply: Output, host: Subject) -> Iterator[Fact]:
    """``dmidecode -t memory``: whether the firmware says that memory is ECC memory. Needs root. (SMBIOS, types 16 and 17)

    Type 16 is an array of memory with its "Error Correction Type", type 17 a module: with ECC its total width is more than its
    data width. True when array and modules agree; nothing where the firmware does not say it of all of them."""
    arrays = [each for each in _records(reply.text, "Physical Memory Array") if each.get("Use") == "System Memory"]
    types = {each.get("Error Correction Type", "") for each in arrays}
    widths = [
        (each.get("Total Width", ""), each.get("Data Width", ""))
        for each in _records(reply.text, "Memory Device")
        if each.get("Size", "") != "No Module Installed"
    ]
    if (
        not types
        or types - CORRECTED - NOT_CORRECTED
        or not all(_BITS.fullmatch(bits) for pair in widths for bits in pair)
    ):
        return
    wider = [int(total.split()[0]) > int(data.split()[0]) for total, data in widths]
    if not wider:
        return
    text = f"Error Correction Type: {', '.join(sorted(types))}; Total Width {widths[0][0]}, Data Width {widths[0][1]}"
    yield Fact(HOST, "dmi_memory_ecc", known(types <= CORRECTED and all(wider), text, "dmidecode -t memory"))


def _records(text: str, title: str) -> Iterator[dict[str, str]]:
    """The fields of each structure with this title that is whole: an empty line ends it."""
    for body in re.findall(rf"^{title}\n((?:\t.*\n)+)\n", text, re.M):
        yield dict(re.findall(r"^\t([^\t:][^:]*): (.*)\n", body, re.M))


EDAC_FOLDER = "/sys/devices/system/edac/mc"
CORRECTS = frozenset({"SECDED", "S2ECD2ED", "S4ECD4ED", "S8ECD8ED", "S16ECD16ED"})
DOES_NOT = frozenset({"None", "PARITY", "EC"})
COUNTERS = {"ue_count": "memory_uncorrected_errors", "ce_count": "memory_corrected_errors"}
PATTERNS = (
    *(f"{EDAC_FOLDER}/mc*/{name}" for name in COUNTERS),
    *(f"{EDAC_FOLDER}/mc*/{kind}*/dimm_edac_mode" for kind in ("dimm", "rank")),
)


@source(
    "edac",
    "host",
    ask=Read(PATTERNS),
    facts={
        "edac_corrects": Spec.flag("the kernel knows all memory modules to be corrected (ECC)"),
        "memory_uncorrected_errors": Spec.number("errors of memory since boot that could not be corrected"),
        "memory_corrected_errors": Spec.number("errors of memory since boot that were corrected"),
    },
)
def edac(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/sys/devices/system/edac/mc``: memory controllers, what they correct, and the errors that they counted. Without a
    controller nothing is known: its driver may be missing. The mode of every module counts. (Linux
    Documentation/admin-guide/RAS/main.rst, dimm_edac_mode; drivers/edac/edac_mc_sysfs.c)"""
    modes = {text.strip() for path, text in reply.text.items() if path.endswith("/dimm_edac_mode")}
    whole = reply.complete(*PATTERNS)
    if modes and whole and not modes - CORRECTS - DOES_NOT:
        text = f"dimm_edac_mode {', '.join(sorted(modes))}"
        seen = known(modes <= CORRECTS, text, f"grep . {EDAC_FOLDER}/mc*/*/dimm_edac_mode")
        yield Fact(HOST, "edac_corrects", seen)
    for file, name in COUNTERS.items():
        values = [text for path, text in reply.text.items() if path.endswith(f"/{file}")]
        if values and whole and all(re.fullmatch(r"\d{1,15}\n", text) for text in values):
            count = sum(map(int, values))
            yield Fact(HOST, name, known(count, f"{file} {count}", f"grep . {EDAC_FOLDER}/mc*/{file}"))


@source(
    "memory",
    "host",
    ask=Read(("/proc/meminfo",)),
    facts={"memory_bytes": Spec.number("memory that the kernel has (MemTotal)")},
)
def memory(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/proc/meminfo``: how much memory. (man 5 proc)

    kB there means 1024 bytes."""
    if found := re.search(r"^MemTotal: +(\d+) kB\n", reply.text.get("/proc/meminfo", ""), re.M):
        if (count := integer(found[1]) * 1024) > LARGEST:
            raise ValueError(f"{found[1]} kB is more than any machine has")
        yield Fact(HOST, "memory_bytes", known(count, f"MemTotal {found[1]} kB", "grep MemTotal /proc/meminfo"))


PATH = "/proc/swaps"
_ROW = re.compile(r"(\S+)\s+(?:partition|file)\s+\d+\s+\d+\s+-?\d+")


@source(
    "swaps",
    "host",
    ask=Read((PATH,)),
    facts={"swaps": Spec.words("the paths of devices and files that the host swaps to")},
)
def swaps(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/proc/swaps``: what the host swaps to. (man 5 proc; Linux mm/swapfile.c swap_show)

    A heading, and a line for each. Raises ValueError for anything else."""
    if PATH not in reply.text:
        return
    heading, *rows = reply.text[PATH].splitlines()[:1000] or [""]
    if not heading.startswith("Filename") or not reply.text[PATH].endswith("\n"):
        raise ValueError(f"{PATH} is cut off")
    found = [_ROW.fullmatch(row.rstrip()) for row in rows]
    if not all(found):
        raise ValueError(f"a line of {PATH} is not understood")
    paths = tuple(plain(row[1]) for row in found if row)
    yield Fact(HOST, "swaps", known(paths, ", ".join(paths) or "no swap", f"cat {PATH}"))


STATE, RESUME = "/sys/power/state", "/sys/power/resume"


@source(
    "hibernation",
    "host",
    ask=Read((STATE, RESUME, WITNESS)),
    facts={
        "hibernation": Spec.flag("the kernel can hibernate"),
        "resume_device": Spec.word("MAJOR:MINOR of the device to resume from, or empty"),
    },
)
def hibernation(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/sys/power``: whether this kernel can hibernate, and which device it would resume from. (Linux
    Documentation/admin-guide/pm/sleep-states.rst; kernel/power/main.c state_show, kernel/power/hibernate.c resume_show)
    "disk" is not in ``state`` where hibernation is not available. ``resume`` is 0:0 until a device is named. A kernel
    without hibernation has no such files."""
    reply.witness()
    if STATE in reply.text:
        states = reply.text[STATE]
        if states and not re.fullmatch(r"[a-z ]+\n", states):
            raise ValueError(f"{STATE} is not a line of words")
        yield Fact(HOST, "hibernation", known("disk" in states.split(), states.strip() or "none", f"cat {STATE}"))
    elif reply.absent(STATE):
        yield Fact(HOST, "hibernation", known(False, f"no {STATE}", f"ls {STATE}"))
    if RESUME in reply.text:
        device = re.fullmatch(r"(\d{1,4}:\d{1,7})\n", reply.text[RESUME])
        if not device:
            raise ValueError(f"{RESUME} is no device")
        text = "" if device[1] == "0:0" else device[1]
        yield Fact(HOST, "resume_device", known(text, device[1], f"cat {RESUME}"))
    elif reply.absent(RESUME):
        yield Fact(HOST, "resume_device", known("", f"no {RESUME}", f"ls {RESUME}"))


TAINT_PATH = "/proc/sys/kernel/tainted"
BITS = {4: "a machine check (M)", 5: "memory in a bad state, or misused (B)", 7: "an oops or BUG (D)"}


@source(
    "taint",
    "host",
    ask=Read((TAINT_PATH,)),
    facts={"kernel_failures": Spec.words("what has failed in the kernel since it started")},
)
def taint(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/proc/sys/kernel/tainted``: a mask of what has befallen the kernel since it started, which outlives its log. Only
    failures of memory, a processor or the kernel count; foreign modules (OpenZFS) set bits, too. (Linux
    Documentation/admin-guide/tainted-kernels.rst) Raises ValueError for no mask."""
    if TAINT_PATH in reply.text:
        if not re.fullmatch(r"\d{1,19}\n", reply.text[TAINT_PATH], re.ASCII):
            raise ValueError(f"{TAINT_PATH} is no mask")
        mask = int(reply.text[TAINT_PATH])
        found = tuple(text for bit, text in BITS.items() if mask >> bit & 1)
        yield Fact(
            HOST, "kernel_failures", known(found, f"{mask}: {', '.join(found) or 'none of these'}", f"cat {TAINT_PATH}")
        )


# What ``zaudit powercut`` showed of the drives of this host, from its own records (``auditor/powercut/campaign.py``).

CUTS_SCHEMA = "zaudit-cuts/1"
RECORDS = "/var/lib/zaudit/cuts/*.json"
CUTS_COMMAND = "zaudit powercut report"
DRIVES = 64  # of one record
LONGEST = 200  # of a word in it
MOST_CUTS = 1 << 20  # cuts
MOST_RECORDS = 10_000


def keep_cuts(text: str) -> str:
    """Of a record what it comes to for each drive, and of that the same again; empty where it cannot be read."""
    try:
        run, found = _record(text)
        document = {"schema": CUTS_SCHEMA, "campaign": {"run": run}, "evidence": [each._asdict() for each in found]}
    except ValueError:
        return ""
    return json.dumps(document, indent=1) + "\n"


def _record(text: str) -> tuple[str, tuple[DriveCuts, ...]]:
    """Which run it is of (empty: it does not say), and what it comes to for each drive. Raises ValueError for what is no record
    of this version, or says what cannot be."""
    if crowded(text):
        raise ValueError("more values than a record has")
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(document, dict) or document.get("schema") != CUTS_SCHEMA:
        raise ValueError("no record of this version")
    found, campaign = document.get("evidence"), document.get("campaign")
    run = campaign.get("run", "") if isinstance(campaign, dict) else ""
    if not isinstance(found, list) or len(found) > DRIVES or not isinstance(run, str) or len(run) > LONGEST:
        raise ValueError("no record of this version")
    return run, tuple(map(_row, found))


def _row(found: object) -> DriveCuts:
    if not isinstance(found, dict):
        raise ValueError("no row of a record")
    values: dict[str, Any] = {name: found.get(name) for name in DriveCuts._fields}
    row = DriveCuts(**values)
    words = (row.layer, row.verdict, row.model, row.firmware, row.serial)
    if not all(isinstance(word, str) and len(word) <= LONGEST and word == harmless(word) for word in words):
        raise ValueError("no word of a record")
    if type(row.cuts) is not int or type(row.lost) is not int or not 0 <= row.lost <= row.cuts <= MOST_CUTS:
        raise ValueError("no number of cuts")
    return row


@source(
    "power_cuts",
    "host",
    ask=Read((RECORDS, WITNESS), trusted=True),
    keeps={RECORDS: keep_cuts},
    facts={
        "power_cuts": Spec.rows(DriveCuts, "what power cuts showed of drives (zaudit powercut)"),
        "power_cuts_read": Spec.flag("all records of power cuts could be read, and only root could have written one"),
    },
)
def power_cuts(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/var/lib/zaudit/cuts``: a record of each run that was checked on this host, or copied there. A loss counts although
    another record could not be read. Of two records of one run the worse answer of each drive counts, then the one of more
    cuts."""
    reply.witness()
    records = {path: text for path, text in reply.text.items() if path != WITNESS}
    if len(records) > MOST_RECORDS:
        raise ValueError(f"more than {MOST_RECORDS} records")
    rows, damaged = dict[tuple[object, ...], DriveCuts](), list[str]()
    for path in sorted(records):
        try:
            run, each = _record(records[path])
        except ValueError:
            damaged.append(path)
        else:
            alike = Counter[tuple[str, ...]]()  # drives without a serial number
            for row in each:
                drive = row.layer, row.model, row.firmware, row.serial
                key = run or path, *drive, alike[drive]
                alike[drive] += 1
                rows[key] = max(rows.get(key, row), row, key=lambda one: (one.lost, not one.kept, one.cuts))
    found = list(rows.values())
    whole = reply.complete(RECORDS)
    lines = tuple(Evidence(_line(each), CUTS_COMMAND) for each in found) or (
        Evidence("no record of power cuts", CUTS_COMMAND),
    )
    if found or whole:
        yield Fact(HOST, "power_cuts", Known(tuple(found), lines))
    if damaged:
        yield Fact(
            HOST, "power_cuts_read", known(False, f"{harmless(damaged[0])} is no record that can be read", CUTS_COMMAND)
        )
    elif whole:
        text = f"{len(records)} records of power cuts" if records else "no record of power cuts"
        yield Fact(HOST, "power_cuts_read", known(True, text, CUTS_COMMAND))


def _line(each: DriveCuts) -> str:
    return f"{each.model} {each.firmware}, layer {each.layer}: {each.verdict}, {each.lost} of {each.cuts} cuts lost"
