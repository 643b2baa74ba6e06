"""drives.toml, firmware.toml and shingled.toml: every entry can be reached, every example finds its own, and the loaders refuse
what is misspelt."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from auditor import data
from auditor.data import drives
from auditor.data.drives import Drive, FirmwareBug
from auditor.facts import Fact, Facts, Known, Subject, Unknown, known, unknown
from auditor.model.disk import BY_TRIM, firmware_bug, identity, shingled_family
from tests.folded import for_each

ROOT = Path(__file__).parent.parent.parent
# what the class is worth when it is wrong: a model that is cut off must never gain by it
WORTH = {"plp-full": 2, "data-at-rest-only": 1, "none": 0, "ephemeral": 0, "virtual": 0}
EXAMPLES = [(drive, example) for drive in drives.load() for example in drive.examples]


def found(model: str) -> Drive:
    drive = drives.match(model)
    assert drive is not None, f"{model} matches nothing"
    return drive


@for_each("drive, example", EXAMPLES, ids=lambda pair: pair[1])
def test_the_first_entry_that_matches_an_example_is_its_own(drive: Drive, example: str) -> None:
    assert found(example) == drive
    assert found(f"  ATA   {example.lower()} ") == drive
    assert found(example.replace(" ", "_")) == drive


@for_each("drive, example", EXAMPLES, ids=lambda pair: pair[1])
def test_a_model_cut_off_after_16_characters_never_gets_a_better_class(drive: Drive, example: str) -> None:
    cut = drives.match(example[:16])
    assert cut is None or WORTH[cut.plp] <= WORTH[drive.plp]


@pytest.mark.parametrize(
    ("model", "plp", "confidence"),
    [
        ("Samsung SSD 970 EVO Plus 1TB", "none", "A"),
        ("Samsung SSD 970 EVO 1TB", "none", "B"),
        ("SAMSUNG MZVLB1T0HBLR-000L7", "none", "B"),  # PM981, client
        ("SAMSUNG MZ1LB960HAJQ-00007", "plp-full", "B"),  # PM983, its sister with capacitors
        ("SAMSUNG MZVL21T0HCLR-00BL7", "none", "B"),  # PM9A1
        ("SAMSUNG MZ7LH512HALU-00000", "none", "B"),  # PM881
        ("SAMSUNG MZ7LH960HAJR-00005", "plp-full", "B"),  # PM883
        ("INTEL SSDSC2BB480G7", "plp-full", "A"),
        ("INTEL SSDSC2BW480A4", "none", "B"),  # 530, not DC
        ("INTEL SSDSC2CT240A4", "none", "A"),  # 335
        ("INTEL SSDPED1D280GA", "data-at-rest-only", "B"),  # 900P
        ("INTEL SSDPED1K375GA", "plp-full", "B"),  # P4800X
        ("Micron_M510DC_MTFDDAK240MBP", "plp-full", "B"),
        ("Micron_M500_MTFDDAK960MAV", "data-at-rest-only", "A"),
        ("MTFDDAK1T0TDL", None, None),  # 1300 without its family name: only 5x00 models are known bare
        ("CT1000MX500SSD1", "data-at-rest-only", "B"),
        ("CT1000P5PSSD8", "none", "B"),
        ("KINGSTON SEDC450R480G", "data-at-rest-only", "C"),
        ("KINGSTON SNVS1000G", "none", "B"),
        ("WD Red SN700 1000GB", "none", "A"),
        ("WDS960G1D0D-01AJB0", "plp-full", "C"),
        ("WDC PC SN720 SDAQNTW-512G-1001", "none", "B"),
        ("KXG50ZNV256G TOSHIBA", "none", "B"),
        ("KXD51RUE960G", "plp-full", "C"),
        ("TOSHIBA KPM5XMUG400G", "plp-full", "C"),
        ("HGST HUSMR3280ASS200", "plp-full", "C"),
        ("nvme_card-pd", "virtual", "B"),
        ("nvme_card", "ephemeral", "B"),
        ("Microsoft NVMe Direct Disk v2", "ephemeral", "A"),
        ("MSFT NVMe Accelerator v1.0", "virtual", "A"),
        ("QEMU_NVMe_Ctrl", "virtual", "A"),
        ("QEMU_HARDDISK", "virtual", "A"),
        ("Intel Raid 1 Volume", "virtual", "B"),
    ],
)
def test_models_that_are_easily_confused(model: str, plp: str | None, confidence: str | None) -> None:
    drive = drives.match(model)
    assert ((drive.plp, drive.confidence) if drive else (None, None)) == (plp, confidence)


@pytest.mark.parametrize(
    "model",
    [
        "", " ", "ATA", "LAB_SATA_DISK", "X SSD 850 PRO 128GB", "800GB NVMe Gen4 U.2 SSD",
        # hard disks
        "WD4000FYYX", "WDC WD140EDFZ-11A0VA0", "WD WD4001FYYG-01SL3", "WDC  WUH721816ALE6L4", "WDC WUS721010ALE6L4",
        "Hitachi HDS721050DLE630", "HGST HUS726060ALA640", "HGST HMS5C4040BLE640", "ST4000VN006",
        "SEAGATE ST600MP0036", "SEAGATE ST4000NM0043", "TOSHIBA AL15SEB18EQY", "TOSHIBA MG08ACA16TE", "SAMSUNG HD103SJ",
        # what too broad patterns would take for something else
        "GRAPE4010", "TAPE8010X", "HK4R", "P6100C", "STEAM DRIVE", "MY CORSAIR", "T0205B", "MR9", "XRMS-200",
        "ZA500NZ1", "Micron_6", "Micron_M510_MTFDDAK256MAZ", "HFS960G", "KXD", "LSIX",
    ],
)  # fmt: skip
def test_models_that_are_not_in_the_table(model: str) -> None:
    assert drives.match(model) is None


def test_every_family_is_described_once_and_every_pattern_stands_once() -> None:
    table = drives.load()
    assert len({drive.pattern for drive in table}) == len(table)
    assert len({(drive.family, drive.confidence) for drive in table}) == len(table)


def test_a_low_confidence_is_never_called_anything_else() -> None:
    """What was inferred from a model code says so."""
    inferred = ("model code", "model name")
    assert all(drive.confidence == "C" for drive in drives.load() if drive.source.startswith(inferred))


def test_the_table_can_be_read_out_of_a_zip_archive(tmp_path: Path) -> None:
    archive = tmp_path / "zaudit.pyz"
    with zipfile.ZipFile(archive, "w") as zipped:
        for path in (ROOT / "auditor" / "__init__.py", *(ROOT / "auditor" / "data").iterdir()):
            if path.is_file() and path.name != data.COMPILED:
                zipped.write(path, path.relative_to(ROOT))
        zipped.writestr(f"auditor/data/{data.COMPILED}", data.compiled(installed=True))
    code = "from auditor.data import drives; print(drives.__file__, len(drives.load()))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(archive)}, capture_output=True, text=True
    )
    assert run.stdout.split() == [f"{archive}/auditor/data/drives.py", str(len(drives.load()))], run.stderr


@pytest.mark.slow
def test_the_quick_look_leaves_nothing_out() -> None:
    """It agrees with the pattern itself, for every pattern and every example."""
    for entry in drives.load():
        pattern = re.compile(entry.pattern, re.IGNORECASE | re.ASCII)
        for model in (drives.normal(example) for each in drives.load() for example in each.examples):
            assert bool(pattern.search(model)) == entry.matches(model) == entry.matches(model.swapcase()), (
                entry,
                model,
            )


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("^INTEL SSD(A|B)", ("intel ssd",)),
        ("^ABCD?E", ("abc",)),
        ("^AB*", ("a",)),
        ("^A1{2}", ("a",)),
        (r"^A\d{3}BC", ("bc",)),
        ("^QEMU|^VBOX", ("qemu", "vbox")),
        ("^(A|B)", ("",)),
        ("^(A(1|2(B)?)_)?X", ("x",)),
        (r"\bSSD|^X[12]YZ", ("ssd", "yz")),
    ],
)
def test_words(pattern: str, words: tuple[str, ...]) -> None:
    assert drives._words(pattern) == words


# -- firmware ---------------------------------------------------------------------------------------------------------


DISK = Subject("disk", "sda")


@pytest.mark.parametrize("bug", drives.load_firmware(), ids=[bug.example[0] for bug in drives.load_firmware()])
def test_an_entry_matches_its_example_and_not_the_mended_revision(bug: FirmwareBug) -> None:
    model, bad, good = bug.example
    assert drives.match_firmware(model, bad) is bug
    assert drives.match_firmware(f" ATA {model.lower()} ", f" {bad} ") is bug
    assert drives.match_firmware(model, good) is None
    assert drives.match_firmware(model, bug.fixed) is None
    assert drives.match_firmware("EXAMPLE DRIVE", bad) is None


def judged(model: object, revision: object) -> Known | Unknown:
    facts = Facts()
    for name, value in (("model", model), ("firmware", revision)):
        facts.put(Fact(DISK, name, unknown("not asked") if value is None else known(str(value), str(value))))
    return next(fact.value for fact in firmware_bug.derive(DISK, facts))


def test_the_derived_fact_says_what_happens_and_what_mends_it() -> None:
    found = judged("HP VO0480JFDGT", "HPD5")
    assert isinstance(found, Known)
    assert "32,768 hours" in str(found.value)
    assert "HPD8" in str(found.value)
    assert any("HPE" in each.text for each in found.evidence)
    good = judged("HP VO0480JFDGT", "HPD9")
    assert isinstance(good, Known)
    assert good.value == ""


def test_without_model_or_revision_it_is_unknown() -> None:
    assert isinstance(judged(None, "HPD5"), Unknown)
    assert isinstance(judged("HP VO0480JFDGT", None), Unknown)


def revision(**said: str) -> Known | Unknown:
    facts = Facts()
    for name, text in said.items():
        facts.put(Fact(DISK, name, known(text, text)))
    return next(fact.value for fact in identity.derive(DISK, facts) if fact.name == "firmware")


def test_the_four_characters_that_the_kernel_gives_of_a_sata_drive_are_no_revision() -> None:
    assert isinstance(revision(sysfs_vendor="ATA     ", sysfs_firmware="GXA7"), Unknown)
    whole = revision(sysfs_vendor="ATA     ", sysfs_firmware="GXA7", udev_firmware="3B2QGXA7")
    assert isinstance(whole, Known)
    assert whole.value == "3B2QGXA7"
    asked = revision(sysfs_vendor="ATA     ", sysfs_firmware="GXA7", smart_firmware="5B2QGXA7", udev_firmware="x")
    assert isinstance(asked, Known)
    assert asked.value == "5B2QGXA7"
    sas = revision(sysfs_vendor="HP      ", sysfs_firmware="HPD7")
    assert isinstance(sas, Known)
    assert sas.value == "HPD7"


# -- shingled hard disks ----------------------------------------------------------------------------------------------


SDA = Subject("disk", "sda")
MODELS = [(each, family) for family in drives.load_shingled() for each in family.examples]
OTHERS = [each for family in drives.load_shingled() for each in family.others]


@pytest.mark.parametrize(("model", "family"), MODELS, ids=[model for model, _ in MODELS])
def test_examples_are_of_their_family(model: str, family: drives.Shingled) -> None:
    assert drives.match_shingled(model) == family
    assert drives.match_shingled(f"ATA     {model}  ") == family


@pytest.mark.parametrize("model", OTHERS)
def test_others_are_of_none(model: str) -> None:
    assert drives.match_shingled(model) is None


def test_the_fact() -> None:
    facts = Facts()
    facts.put(Fact(SDA, "model", known("ST5000LM000-2AN170", "smartctl")))
    (found,) = [each.value for each in shingled_family.derive(SDA, facts)]
    assert isinstance(found, Known)
    assert found.value == "Seagate BarraCuda 2.5 inch"
    (found,) = [each.value for each in shingled_family.derive(SDA, Facts())]
    assert isinstance(found, Unknown)


@pytest.mark.parametrize(
    ("hdd", "trim", "family"),
    [(True, True, BY_TRIM), (False, True, ""), (True, False, ""), (True, None, ""), (None, True, "")],
)
def test_a_hard_disk_that_takes_trim(hdd: bool | None, trim: bool | None, family: str) -> None:
    facts = Facts()
    facts.put(Fact(SDA, "model", known("WDC WD40EFRX-68N32N0", "smartctl")))
    for name, value in (("hdd", hdd), ("smart_trim", trim)):
        if value is not None:
            facts.put(Fact(SDA, name, known(value, name)))
    (found,) = [each.value for each in shingled_family.derive(SDA, facts)]
    assert isinstance(found, Known)
    assert found.value == family
