"""The text of an imported suite is read back as it was, and a cost on another type is called an estimate."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer import BadParameter
from typer.testing import CliRunner

from tests.unit.slices.test_imported_jobs import DECISIONS, job_of
from traindyno.api.suite_loading import load_suite
from traindyno.api.suite_text import read_suite_text
from traindyno.cli.main import commands
from traindyno.core.costs.prices import Price
from traindyno.slices.imported.client import cost_lines, notes, price_job, suggest_axes, suite_text, write_new
from traindyno.slices.imported.suite_of_job import Decisions, import_job

TRICKY = (
    *("1e-5", "1E5", "0x1f", "0o17", "1_000", ".5", "1.", "+1", "true", "no", "null", "~", "", " a", "a: b", "# c"),
    *("2026-11-23", "12:30:00", "'", '"', "\\", "a\nb", "\u202e", "é", "\U0001f600", "*a", "&a", "!!python/object:os"),
)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "imported.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("text", TRICKY)
def test_text_of_a_job_stays_text_in_the_file(text: str, tmp_path: Path) -> None:
    found = import_job(job_of(Environment={"A": text}), DECISIONS)
    document = read_suite_text(written(tmp_path, suite_text(found, {}))).document
    assert document == found.document
    assert document["workload"]["environment"] == {"A": text}


def test_the_file_is_a_suite_and_its_axes_are_comments(tmp_path: Path) -> None:
    found = import_job(job_of(), DECISIONS)
    axes = suggest_axes(found.document)
    text = suite_text(found, axes)
    suite = load_suite(written(tmp_path, text)).suite
    assert dict(suite.matrix) == {}
    assert "# Axes to try" in text
    block = "".join(line.removeprefix("# ") for line in text.partition("# matrix")[2].splitlines(keepends=True))
    assert yaml.safe_load(f"matrix{block}")["matrix"] == axes


def test_what_no_job_says_is_asked_for() -> None:
    found = import_job(job_of(), Decisions())
    assert "# Write limits.max_usd: no job says it." in suite_text(found, {})
    assert "missing: workload.examples; no job says it, write it into the suite" in list(notes(found))


def refused_output(output: str) -> str:
    answer = CliRunner().invoke(commands, ["import", "my-job", "--output", output], env={"COLUMNS": "1000"})
    assert answer.exit_code == 2
    assert isinstance(answer.exception, SystemExit), answer.exception
    return answer.output


@pytest.mark.parametrize("name", ["missing/suite.yaml", "file/suite.yaml", f"{'x' * 300}/suite.yaml"])
def test_an_output_in_no_folder_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert f"got {tmp_path / name}, expected a file in a folder that exists" in refused_output(str(tmp_path / name))


def test_a_file_a_folder_and_a_link_are_never_replaced(tmp_path: Path) -> None:
    kept = written(tmp_path, "mine")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for path in (kept, tmp_path, tmp_path / "link"):
        assert f"{path} exists, expected the name of a new file" in refused_output(str(path))
        with pytest.raises(BadParameter, match="expected the name of a new file"):
            write_new(path, "x")
    assert kept.read_text() == "mine"
    assert sorted(tmp_path.iterdir()) == [kept, tmp_path / "link"]


def test_what_can_not_be_written_is_refused_and_what_can_is(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="can't be written"):
        write_new(tmp_path / ("x" * 300), "text")
    write_new(tmp_path / "new.yaml", "é")
    assert (tmp_path / "new.yaml").read_bytes() == "é".encode()


def price(name: str, usd: str) -> Price:
    return Price(instance_type=name, region="r", usd_per_hour=Decimal(usd), as_of="2026-11-23", source="file")


def test_the_cost_on_another_type_is_an_estimate_at_the_same_speed() -> None:
    prices = {"ml.g5.xlarge": price("ml.g5.xlarge", "1.40"), "ml.g6.xlarge": price("ml.g6.xlarge", "1.12")}
    seconds, rows = price_job(job_of(), ["ml.g5.xlarge", "ml.g6.xlarge", "ml.p5.48xlarge"], prices)
    # 1,800 billed seconds of one instance: half of each price.
    assert [row.usd for row in rows] == [Decimal("0.70"), Decimal("0.56"), None]
    own, other, unknown = cost_lines(seconds, rows)
    assert own == "cost on 1 × ml.g5.xlarge: $0.70 ($1.40/h; billed 30 min, on demand)"
    assert other == (
        "cost on 1 × ml.g6.xlarge: $0.56 ($1.12/h; an estimate: as if the job were as fast there as it was)"
    )
    assert unknown.startswith("cost on 1 × ml.p5.48xlarge: unknown (no price found")


@pytest.mark.parametrize("status", ["InProgress", "Stopping"])
def test_the_cost_of_a_running_job_is_unknown(status: Any) -> None:
    seconds, rows = price_job(job_of(TrainingJobStatus=status), ["ml.g5.xlarge"], {})
    assert list(cost_lines(seconds, rows)) == ["cost: the job's billed seconds are not known yet"]
