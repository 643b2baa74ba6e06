"""Job files: ours say what they prove and run in fio, and nothing that writes elsewhere or runs anything gets through."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from auditor.verify import fio, profile
from auditor.verify.ledger import Actor
from auditor.verify.profile import Profile, ProfileError, nanoseconds, share, size_bytes
from auditor.verify.result import Slo, percentile_name

FORMAT = "filename_format=zaudit.$jobname.$jobnum.$filenum\n"
SECTIONS = [(name, each.name) for name in profile.names() for each in profile.load(name).sections]
FIO = shutil.which("fio")


def mine(log: str, common: str = "") -> Profile:
    """A job file of a user with one job."""
    return profile.parse(f"[global]\n{FORMAT}{common}\n[wal]\nrw=write\n{log}\n", "mine.fio")


def refused(log: str, common: str = "") -> str:
    with pytest.raises(ProfileError) as raised:
        mine(log, common)
    return str(raised.value)


# -- ours ---------------------------------------------------------------------------------------------------------


def test_there_are_five() -> None:
    assert profile.names() == ["etcd", "mongodb", "mysql-innodb", "postgres", "sqlite"]


@pytest.mark.parametrize("name", profile.names())
def test_ours_say_what_they_prove_and_what_not(name: str) -> None:
    ours = profile.load(name)
    assert all(len(text.split()) >= 5 for text in (ours.proves, ours.does_not, ours.source))
    assert "\n" not in ours.proves
    assert ours.slo
    log, data = ours.of("log"), ours.of("data")
    assert log is not None
    assert data is not None
    assert log.sync in ("fsync", "fdatasync")
    assert log.every == 1
    assert (log.jobs, log.depth, log.writes, log.direct) == (1, 1, True, False)
    assert data.size(1 << 20) == data.jobs << 20
    assert all(each.text for each in ours.sections)


def test_the_lines_of_a_head_go_on() -> None:
    assert profile.load("postgres").proves.endswith("as far as counters show, and how long it took.")
    assert profile.load("postgres").slo == (Slo(0.99, 5_000_000), Slo(0.999, 25_000_000))


@pytest.mark.slow
@pytest.mark.skipif(FIO is None, reason="fio is not installed: nobody can say whether it accepts the profiles")
@pytest.mark.parametrize(("name", "section"), SECTIONS)
def test_fio_runs_each_section(name: str, section: str, tmp_path: Path) -> None:
    """As a user who may do nothing, where the tests are root's."""
    ours = profile.load(name)
    nobody = Actor("65534", "65534")
    if os.geteuid() == 0:
        os.chown(tmp_path, 65534, 65534)
    before = {"ZAUDIT_DIRECTORY": ".", "ZAUDIT_RUNTIME": "1", "ZAUDIT_SIZE": str(1 << 20)}
    who = () if os.geteuid() else nobody.setpriv
    done = subprocess.run(
        [*who, str(FIO), "--thread", "--output-format=json+", "--eta=never", f"--section={section}", "-"],
        cwd=tmp_path,
        input=ours.text.encode(),
        env={**os.environ, **before},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    (document,) = fio.documents(done.stdout.decode())
    (job,) = fio.jobs_of(document, {each.name: each.sync for each in ours.sections})
    asked = next(each for each in ours.sections if each.name == section)
    assert job.name == section
    assert job.writes > 0
    assert job.error == 0
    if asked.every == 1:
        assert job.writes - 1 <= job.syncs <= job.writes
        assert job.latency.samples == job.syncs
    made = {path.name for path in tmp_path.iterdir()}
    assert made
    assert all(each.startswith(f"zaudit.{section}.") for each in made)
    on_disk = sum((tmp_path / each).stat().st_size for each in made)
    assert on_disk <= asked.size(1 << 20), "it takes more space than it says"


# -- those of a user ----------------------------------------------------------------------------------------------


def test_a_file_that_says_nothing_of_itself() -> None:
    text = f"[global]\n{FORMAT}[tables]\nrw=randwrite\n[wal]\nrw=write\nfsync=1\n"
    found = profile.parse(text, "mine.fio")
    assert [(each.name, each.purpose) for each in found.sections] == [("tables", "data"), ("wal", "log")]
    assert found.slo == ()
    assert "another pattern" in found.does_not


@pytest.mark.parametrize(
    ("options", "sync", "every"),
    [
        ("", "none", 0),
        ("fsync=1", "fsync", 1),
        ("fdatasync=4", "fdatasync", 4),
        ("sync=dsync", "dsync", 1),
        ("sync=1", "sync", 1),
        ("sync", "sync", 1),
        ("sync=sync", "sync", 1),
        ("sync=0\nfsync=2", "fsync", 2),
        ("sync=none\nfsync=2", "fsync", 2),
        ("sync=dsync ; of the log", "dsync", 1),
        ("fsync=1 # each", "fsync", 1),
        ("fsync=0", "none", 0),
    ],
)
def test_how_a_section_syncs(options: str, sync: str, every: int) -> None:
    (section,) = mine(options).sections
    assert (section.sync, section.every) == (sync, every)


def test_a_section_overrides_what_is_global() -> None:
    (section,) = mine("bs=16k\nnumjobs=4\niodepth=8\ndirect=1\nsize=64m", "bs=4k\nfsync=1").sections
    assert (section.options["bs"], section.every, section.jobs, section.depth, section.direct) == ("16k", 1, 4, 8, True)
    assert section.size(0) == 256 << 20


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("dsync=1", "it is sync=dsync"),
        ("filename=/etc/passwd", "a job may not have this option here"),
        ("exec_prerun=touch x", "line 6: a job may not have this option"),
        ("exec_postrun=touch x", "line 6: a job may not have this option"),
        ("name=other", "line 6: a job may not have this option"),
        ("include other.fio", "line 6: a job may not have this option"),
        ("write_lat_log=/tmp/x", "line 6: a job may not have this option"),
        ("directory=/tmp", "directory: only"),
        ("directory=${ZAUDIT_DIRECTORY}/..", "directory: only"),
        ("ioengine=external:/tmp/x.so", "ioengine: one of"),
        ("ioengine=net", "ioengine: one of"),
        ("size=$mb_memory", "no variable but"),
        ("bs=${HOME}", "no variable but"),
        ("description=$ncpus", "no variable but"),
        ("filename_format=../x", "filename_format: put"),
        ("filename_format=zaudit./x", "filename_format: put"),
        ("filename_format=zaudit.${HOME}", "filename_format: put"),
        ("filename_format=zaudit.$ncpus*2", "filename_format: put"),
        ("filename_format=$jobname.$jobnum", "filename_format: put"),
        ("rw=trim", "line 6: rw: one of read, write"),
        ("rw=randtrim", "line 6: rw: one of read, write"),
        ("fsync=each", "line 6: fsync: it must be a number"),
        ("fsync=-1", "it must be a number"),
        ("fsync=\u0663", "it must be a number"),
        (f"fdatasync={'9' * 400}", "it must be a number"),
        ("numjobs=2.5", "line 6: numjobs: it must be a number"),
        ("buffer_compress_percentage=50%", "line 6: buffer_compress_percentage: it must be a number"),
        ("[wal]\nrw=write", "line 6: this section appears twice"),
        ("[../../x]\nrw=write", "a section is named with"),
        ("[a:b]\nrw=write", "a section is named with"),
        ("[]\nrw=write", "a section is named with"),
        ("[half", "line 6: a job may not have this option"),
        ("description=" + "x" * 5000 + "exec_prerun=x", "longer than 1000"),
        ("; " + "x\x0c; " * 2000 + "exec_prerun=x", "longer than 1000"),
        ("description=a\x00b", "control character"),
        ("; a\x0bexec_prerun=x", "control character"),
        ("; purpose: tables", "purpose of a section is one of"),
    ],
)
def test_what_is_refused(options: str, says: str) -> None:
    assert says in refused(options)


def test_files_that_could_not_be_found_again_are_refused() -> None:
    with pytest.raises(ProfileError, match="filename_format=zaudit"):
        profile.parse("[wal]\nrw=write\nfsync=1\n", "mine.fio")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no job in it"),
        ("; only words\n", "no job in it"),
        (f"[global]\n{FORMAT}", "no job in it"),
        ("rw=write\n[wal]\n", "line 1: an option comes before the first section"),
    ],
)
def test_what_is_no_job_file(text: str, says: str) -> None:
    with pytest.raises(ProfileError) as raised:
        profile.parse(text, "mine.fio")
    assert says in str(raised.value)


def test_ours_must_say_everything() -> None:
    text = profile.load("sqlite").text
    for word in ("proves", "does not", "source"):
        with pytest.raises(ProfileError, match=f"does not say: {word}"):
            profile.parse(text.replace(f"; {word}:", f"; no {word}:"), "sqlite", ours=True)
    with pytest.raises(ProfileError, match="purpose of a section is one of"):
        profile.parse(text.replace("; purpose: data", ";"), "sqlite", ours=True)


def test_what_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="no profile oracle; there are etcd, mongodb"):
        profile.load("oracle")
    with pytest.raises(ProfileError, match="no profile"):
        profile.load(str(tmp_path / "away.fio"))
    (tmp_path / "bytes.fio").write_bytes(b"\xff\xfe")
    with pytest.raises(ProfileError, match=r"bytes\.fio"):
        profile.load(str(tmp_path / "bytes.fio"))
    (tmp_path / "odd.fio").write_text("[wal]\ndsync=1\n")
    with pytest.raises(ProfileError, match=r"odd\.fio: line 2: dsync"):
        profile.load(str(tmp_path / "odd.fio"))


@given(st.text())
@example("[")
@example("[global]\n[global]")
@example(f"[a]\n{FORMAT}fsync={'9' * 5000}")
@example(f"[a]\n{FORMAT}; purpose: log\n;    more")
@example("; slo: p99=\n[a]\n" + FORMAT)
@example("; slo: p99=" + "9" * 400 + "s\n[a]\n" + FORMAT)
def test_any_text_is_a_profile_or_a_profile_error(text: str) -> None:
    with contextlib.suppress(ProfileError):
        assert profile.parse(text, "any.fio").of("log") is not None


LINES = st.sampled_from(
    f"""[global]|[a]|[b]|fsync=1|fdatasync=x|sync|sync=dsync|numjobs=3|rw=write|rw|=|a=b|bs=4k;x|size=1g||#|{FORMAT.strip()}
    |; purpose: log|; purpose: x|; slo: p99=5ms|; slo: p99|; proves: x|;    goes on""".split("|")
)


@given(st.lists(LINES, max_size=12))
def test_any_lines_are_a_profile_or_a_profile_error(lines: list[str]) -> None:
    try:
        found = profile.parse("\n".join(lines), "any.fio")
    except ProfileError:
        return
    for each in found.sections:
        assert each.every >= (each.sync != "none")
        assert each.jobs >= 0
        assert each.size(1) >= 0
        json.dumps(each.options)


# -- objectives, sizes, times -------------------------------------------------------------------------------------


def test_objectives() -> None:
    assert profile.objectives("p99.9=25ms, p50=800us") == (Slo(0.5, 800_000), Slo(0.999, 25_000_000))
    assert profile.objectives("99=1s") == (Slo(0.99, 1_000_000_000),)
    assert [percentile_name(each.q) for each in profile.objectives("p99.9=1s p99=1s p99.99=1s")] == [
        "p99",
        "p99.9",
        "p99.99",
    ]


@pytest.mark.parametrize(
    "text", ["", "p99", "p99=", "p99=5", "p0=5ms", "p100=5ms", "p101=5ms", "pX=5ms", "p99=-5ms", "pnan=5ms"]
)
def test_no_objectives(text: str) -> None:
    with pytest.raises(ProfileError):
        profile.objectives(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512),
        ("8k", 8192),
        ("8K", 8192),
        ("1.5m", 3 << 19),
        ("1g", 1 << 30),
        ("2GiB", 2 << 30),
        (" 1 t ", 1 << 40),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "k", "-1", "1e9", "8 x", "50%", "9" * 400, "9999999t", "\u0663k"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ProfileError):
        size_bytes(text)


@pytest.mark.parametrize(
    ("text", "ns"),
    [("5ms", 5_000_000), ("800us", 800_000), ("800\u00b5s", 800_000), ("1.5s", 1_500_000_000), ("7ns", 7)],
)
def test_times(text: str, ns: int) -> None:
    assert nanoseconds(text) == ns


@pytest.mark.parametrize("text", ["", "5", "5m", "ms", "-5ms", "9" * 400 + "s"])
def test_no_times(text: str) -> None:
    with pytest.raises(ProfileError):
        nanoseconds(text)


@given(st.floats(0.001, 99.999))
def test_a_percentile_is_a_share(percent: float) -> None:
    assert share(f"p{percent!r}") == pytest.approx(percent / 100, abs=1e-8)


# -- the file of a user -------------------------------------------------------------------------------------------


def test_a_job_file_is_a_plain_file_of_a_bearable_size(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.fio")
    (tmp_path / "large.fio").write_bytes(b"; \n" * profile.MOST)
    for path, says in (
        (tmp_path / "fifo.fio", "not a regular file"),  # and nobody waits for its other end
        (Path("/dev/zero"), "not a regular file"),
        (tmp_path, "not a regular file"),
        (tmp_path / "large.fio", "more than 1 MiB"),
    ):
        with pytest.raises(ProfileError, match=says):
            profile.load(str(path))


def test_a_job_file_that_would_do_more_than_write_is_refused(tmp_path: Path) -> None:
    """Each of these makes fio run a command, write elsewhere or read another file."""
    path = tmp_path / "x.fio"
    for line in (
        "exec_prerun=id",
        "exec_postrun=id",
        "include /tmp/other.fio",
        "filename=/etc/passwd",
        "directory=/etc",
        "filename_format=../zaudit.x",
        "filename_format=zaudit./../../x",
        "ioengine=external:/tmp/evil.so",
        "ioengine=exec",
        "write_bw_log=/tmp/x",
        "read_iolog=/etc/shadow",
        "verify_state_save=1",
        "aux-path=/etc",
        "opendir=/etc",
        "cgroup=x",
        "ioscheduler=none",
        "buffer_pattern='/etc/shadow'",
        "log_compression_cpus=1",
        "trim=1",
    ):
        path.write_text(f"[log]\nrw=write\nfsync=1\nfilename_format=zaudit.x\n{line}\n")
        with pytest.raises(ProfileError, match="line 5: "):
            profile.load(str(path))
