"""What the programs say that read a format; each where it is installed.

The schemas of SARIF and JUnit are others' work: their folder is named by ZAUDIT_SCHEMAS (sarif-schema-2.1.0.json of OASIS,
JUnit.xsd of Windy Road, jenkins.xsd of the xUnit plugin)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from auditor.report import formats
from auditor.report.formats import exchange
from auditor.report.report_reader import parse_report
from tests.golden import cases
from tests.report.formats import documents
from tests.shared import name_of

FOLDER = Path(os.environ.get("ZAUDIT_SCHEMAS", "/nonexistent"))
HOSTS = [name_of(case) for case in cases()][::6]


def every(name: str) -> list[str]:
    """A format of several hosts, of an old report and of made-up ones."""
    made_up = documents.with_findings(("fail", "high"), ("unknown", "critical"), ("waived", "low"))
    found = [*map(documents.recorded, HOSTS), documents.first_edition(), made_up, documents.with_findings()]
    return [formats.named(name).render(parse_report(each)) for each in found]


def needs(program: str) -> str:
    path = shutil.which(program)
    if not path:
        pytest.skip(f"{program} is not installed")
    return path


def schema(name: str) -> Path:
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"ZAUDIT_SCHEMAS names no folder with {name}")
    return path


def said(argv: list[Any], text: str = "") -> str:
    done = subprocess.run(list(map(str, argv)), input=text, capture_output=True, text=True, check=False)
    return f"{done.returncode}{done.stdout}{done.stderr}"


@pytest.mark.slow
def test_promtool_takes_the_metrics() -> None:
    for text in [*every("prometheus"), exchange.prometheus_failed("no ZFS", 1.7e9)]:
        assert said([needs("promtool"), "check", "metrics"], text) == "0"


def test_the_client_of_prometheus_reads_each_series_once() -> None:
    parser = pytest.importorskip("prometheus_client.parser", reason="prometheus_client is not installed")
    for text in every("prometheus"):
        families = list(parser.text_string_to_metric_families(text))
        series = [(each.name, tuple(sorted(each.labels.items()))) for family in families for each in family.samples]
        assert len(series) == len(set(series)) > 20
        assert all(family.documentation and family.type == "gauge" for family in families)


@pytest.mark.slow
def test_the_plugin_library_of_monitors_reads_the_figures() -> None:
    perl = needs("perl")
    if said([perl, "-MMonitoring::Plugin::Performance", "-e", "1"]) != "0":
        pytest.skip("Monitoring::Plugin is not installed (libmonitoring-plugin-perl)")
    script = (
        "use Monitoring::Plugin::Performance; $_ = <STDIN>; s/.*\\| //s; print join ',', "
        "map { $_->label . '=' . $_->value }"
    )
    for text in every("nagios"):
        figures = said([perl, "-e", f"{script} Monitoring::Plugin::Performance->parse_perfstring($_)"], text)
        assert figures.startswith("0critical=")
        assert figures.count("=") == 8


@pytest.mark.parametrize("name", ["JUnit.xsd", "jenkins.xsd"])
def test_both_schemas_of_junit_take_it(name: str, tmp_path: Path) -> None:
    path = schema(name)
    for text in every("junit"):
        (tmp_path / "report.xml").write_text(text)
        assert said([needs("xmllint"), "--noout", "--schema", path, tmp_path / "report.xml"]).startswith("0")


def test_junit_is_well_formed_for_libxml() -> None:
    for text in every("junit"):
        assert said([needs("xmllint"), "--noout", "-"], text) == "0"


@pytest.mark.parametrize("name", ["sarif", "sarif-github"])
def test_the_schema_of_sarif_takes_it(name: str, tmp_path: Path) -> None:
    path = schema("sarif-schema-2.1.0.json")
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    import sys

    paths = []
    for number, text in enumerate(every(name)):
        paths.append(tmp_path / f"{number}.sarif")
        paths[-1].write_text(text)
    assert said([sys.executable, "-m", "check_jsonschema", "--schemafile", path, *paths]).startswith("0")
