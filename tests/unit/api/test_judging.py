"""``traindyno.judge``: trials that ran anywhere, and tables that nobody here made."""

import json
import math
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.sentences import Snapshot
from tests.simulations.recorded_noise import FOLDER as NOISE
from tests.simulations.recorded_noise import read_recording
from tests.unit.step_log_samples import file_name, log_lines
from traindyno import TrialsInvalid, finding_text, judge
from traindyno.api.finding_text import finding_rows
from traindyno.api.judging import better_of
from traindyno.api.trial_rows import TrialColumns, trials_of
from traindyno.bundle import REPO_ROOT
from traindyno.cli.commands import judge_command
from traindyno.cli.main import commands
from traindyno.cli.output import Terminal
from traindyno.figures.judge import TrialsClaim, TrialsFinding
from traindyno.figures.selection import Relation

PUBLISHED = REPO_ROOT / "tests" / "data" / "published_trials"
TABLES = 200
MOST_FALSE = 0.05
Rows = list[dict[str, Any]]


def rows_of(noise: float = 0.01, seed: int = 1, trials: int = 5, **levels: float) -> Rows:
    source = Random(seed)
    return [
        {"config": cell, "trial": trial, "seconds": level * math.exp(source.gauss(0, noise))}
        for cell, level in levels.items()
        for trial in range(trials)
    ]


def of(rows: Any, **columns: Any) -> TrialsFinding:
    return judge(rows, **{"value": "seconds", "cell": "config", **columns})


def test_a_clear_lead_is_found_with_its_change() -> None:
    finding = of(rows_of(a=100.0, b=120.0))
    assert finding.claim is TrialsClaim.BEST
    assert finding.best.cell == "a"
    (other,) = finding.related(Relation.BEATEN)
    assert other.change == pytest.approx(1.2, rel=0.03)
    assert other.change_interval is not None
    assert other.change_interval.low < 1.2 < other.change_interval.high
    assert finding_text(finding).startswith("Use a: its value is the lowest. The next best, b, is")


@pytest.mark.parametrize("column", ["block", "host"])
def test_repeats_in_a_block_or_on_a_host_decide_nothing(column: str) -> None:
    """Blocks differ by 3 %, their repeats hardly: 3 blocks of 4 trials are worth 3 trials."""
    apart = {0: (0.97, 1.0), 1: (1.03, 1.01), 2: (1.0, 1.05)}
    rows = [
        {
            "config": cell,
            "at": f"{block}-{column == 'block' or cell}",
            "seconds": level + trial / 1e4,
        }
        for block, levels in apart.items()
        for cell, level in zip("ab", levels, strict=True)
        for trial in range(4)
    ]
    finding = of(rows, **{column: "at"})
    single = of(
        [row for row in rows if row["seconds"] in (0.97, 1.0, 1.03, 1.01, 1.05)], **{column: "at"}
    )
    assert finding.claim is TrialsClaim.UNDECIDED
    assert finding.to_decide.trials == single.to_decide.trials
    assert "trials of each of these cells, in as many blocks or on as many hosts, would" in (
        finding_text(finding)
    )


def test_a_rate_is_the_inverse_of_a_time() -> None:
    rows = rows_of(a=100.0, b=120.0)
    rates = [{**row, "samples_per_second": 1000 / row["seconds"]} for row in rows]
    by_time = of(rows)
    by_rate = of(rates, value="samples_per_second")
    assert (by_rate.best.cell, by_rate.is_rate) == (by_time.best.cell, True)
    (slower,) = by_time.related(Relation.BEATEN)
    (lower,) = by_rate.related(Relation.BEATEN)
    assert lower.change == pytest.approx(1 / (slower.change or 0))
    assert by_rate.best.estimate.mean == pytest.approx(1000 / by_time.best.estimate.mean)


@pytest.mark.parametrize(
    ("slower", "is_text", "claim"),
    [
        (11, False, TrialsClaim.UNDECIDED),
        (20, False, TrialsClaim.BEST),
        (11, True, TrialsClaim.BEST),
    ],
)
def test_equal_whole_numbers_are_known_to_half_a_step(
    slower: int, is_text: bool, claim: TrialsClaim
) -> None:
    """Texts with two decimals are known to half a hundredth."""
    rows = [
        {"config": cell, "trial": trial, "epochs": f"{epochs:.2f}" if is_text else epochs}
        for cell, epochs in (("a", 10), ("b", slower))
        for trial in range(2)
    ]
    assert of(rows, value="epochs", tolerance=0.0).claim is claim


def test_better_overrides_the_name() -> None:
    assert of(rows_of(a=100.0, b=120.0), better="greater").best.cell == "b"


@pytest.mark.parametrize(
    ("names", "better"),
    [
        ("seconds minutes latency_ms seconds_per_step time_per_epoch ms_per_token s/it", "less"),
        ("usd_per_run cost_per_1M_tokens joules_per_sample error_rate target_epoch", "less"),
        ("tokens_per_second samples/s it/s tokens_per_sec_per_gpu tokens_per_usd", "greater"),
        ("throughput median_throughput mfu val_accuracy", "greater"),
        ("samplesPerSecond tokensPerSec valAccuracy tokensPerUSD meanTFLOPs tps", "greater"),
        ("tokens_sec samples_s it_s imagesSec val_steps_second tokens_sec_gpu", "greater"),
        ("timePerStep msPerToken USDPerRun USDPer1MTokens stepTime evalLoss", "less"),
        ("step_s step_sec tokens_ms steps_seconds steps_time it_ms token_seconds", "less"),
        ("min_per_epoch mins_per_epoch hrs_per_run us_per_token µs_per_token ms_tok", "less"),
        ("milliseconds_per_step eur_per_run cents_per_1k_tokens per_step_time", "less"),
        ("tok_s img_sec throughput_tok_s speedup min_throughput h100_tokens_per_second", "greater"),
        ("s3_samples_per_second per_gpu_tokens_per_second us_east_tokens_per_second", "greater"),
    ],
)
def test_the_name_of_the_value_gives_the_better_direction(names: str, better: str) -> None:
    assert {name: better_of(name).value for name in names.split()} == dict.fromkeys(
        names.split(), better
    )


def test_blocks_remove_shared_effects_of_a_day() -> None:
    days = [1.0, 1.5, 0.8, 1.2, 2.0]
    rows = [
        {**row, "day": f"day {row['trial']}", "seconds": row["seconds"] * days[row["trial"]]}
        for row in rows_of(a=100.0, b=105.0)
    ]
    assert of(rows).claim is TrialsClaim.UNDECIDED
    assert of(rows, block="day").claim is TrialsClaim.BEST


def test_cells_in_blocks_of_their_own_are_compared_from_block_to_block() -> None:
    """Three days before a change and three after it: what a day adds is no difference of cells."""
    days = {"a": (1.0, 1.08, 1.04), "b": (1.1, 1.05, 1.12)}
    rows = [
        {
            **row,
            "day": f"{row['config']} {row['trial'] // 3}",
            "seconds": row["seconds"] * days[row["config"]][row["trial"] // 3],
        }
        for row in rows_of(noise=0.001, trials=9, a=100.0, b=100.0)
    ]
    assert of(rows).claim is TrialsClaim.BEST
    assert of(rows, block="day").claim is not TrialsClaim.BEST


def test_an_interval_wider_than_any_number_is_unknown() -> None:
    """Of two trials in each of many cells."""
    rows = [
        {"config": f"c{cell}", "trial": trial, "seconds": value}
        for cell in range(40)
        for trial, value in enumerate((1.0 + cell / 100, 5000.0))
    ]
    assert "interval unknown" in finding_text(of(rows))


def test_one_host_of_each_cell_leaves_the_spread_of_hosts() -> None:
    rows = [{**row, "node": row["config"]} for row in rows_of(a=100.0, b=104.0)]
    assert of(rows).claim is TrialsClaim.BEST
    finding = of(rows, host="node")
    assert finding.claim is TrialsClaim.UNDECIDED
    assert "further hosts" in finding_text(finding)


def test_a_machine_whose_name_has_a_space_is_refused_before_it_is_read_as_two() -> None:
    rows = [{**row, "node": f"node {row['trial']}"} for row in rows_of(a=1.0, b=1.1)]
    message = 'row 1, column "node": got "node 0", expected a machine\'s name without a space'
    with pytest.raises(TrialsInvalid, match=message):
        of(rows, host="node")
    assert of([{**row, "node": "0 1"} for row in rows], host="node").best.cell == "a"


def test_a_drift_is_seen_only_in_a_known_order() -> None:
    rows = [
        {**row, "seconds": row["seconds"] * (1 + 0.02 * row["trial"])}
        for row in rows_of(noise=0.001, trials=8, a=100.0, b=101.0)
    ]
    assert of(rows).serial_correlation is None
    assert (of(rows, order="trial").serial_correlation or 0.0) > 0.1


@pytest.mark.parametrize(
    "moments",
    [
        ["-2", "9", "10", "1e2"],
        ["2026-01-30", "2026-01-31", "2026-02-01", "2026-10-01"],
        [datetime(2026, 1, 30, hour) for hour in (1, 9, 10, 11)],
        # 9:30, 9:45, 10:00 and 10:15 in one zone
        [f"2026-01-30 {time}" for time in ("10:30+01:00", "09:45Z", "11:00+01:00", "10:15Z")],
    ],
)
def test_trials_are_in_the_order_of_numbers_or_dates(moments: Sequence[Any]) -> None:
    values = [1.0, 2.0, 3.0, 4.0]
    rows = [
        {"config": cell, "seconds": value, "at": moment}
        for cell in "ab"
        for value, moment in zip(values, moments, strict=True)
    ]
    Random(2).shuffle(rows)
    columns = TrialColumns(value="seconds", cell=("config",), order="at")
    ordered = trials_of(rows, columns).trials
    assert {cell: [trial.value for trial in own] for cell, own in ordered.items()} == {
        "a": values,
        "b": values,
    }


@pytest.mark.parametrize(
    ("third", "message"),
    [
        ("5.1.2026", 'row 3, column "at": got "5.1.2026", expected numbers or dates such as 2026-'),
        ("1/5/2026", 'got "1/5/2026", expected numbers or dates such as 2026-11-29 10:30'),
        ("9:05", 'got "9:05", expected numbers or dates'),
        ("run 10", 'got "run 10", expected numbers or dates'),
        ("3", 'row 3, column "at": got a number, "3"; expected a date without a time zone, as in'),
        ("2026-01-05 10:00Z", 'got a date with a time zone, "2026-01-05 10:00Z"; expected a date'),
    ],
)
def test_an_order_that_is_no_time_is_refused(third: str, message: str) -> None:
    rows = [{**row, "at": "2026-01-05 10:00"} for row in rows_of(a=1.0, b=2.0)]
    rows[2]["at"] = third
    with pytest.raises(TrialsInvalid, match=re.escape(message)):
        of(rows, order="at")


def test_equal_cells_are_open_with_the_number_of_deciding_trials() -> None:
    finding = of(rows_of(noise=0.05, a=100.0, b=101.5))
    assert finding.claim is TrialsClaim.UNDECIDED
    assert finding.to_decide.trials is not None
    assert f"{finding.to_decide.trials} trials of each" in finding_text(finding)


def test_two_equal_cells_are_seldom_told_apart_by_recorded_runs() -> None:
    """Their scatter has stalls and levels; the runs are drawn, so that trials are independent."""
    runs = [
        sum(run) / len(run)
        for name in ("quiet", "loaded")
        for run in read_recording(NOISE / f"{name}.json").runs
    ]
    source = Random(7)
    false = 0
    for _ in range(TABLES):
        values = source.sample(runs, 10)
        rows = [
            {"config": "ab"[place % 2], "place": place, "seconds": value}
            for place, value in enumerate(values)
        ]
        false += of(rows, order="place", tolerance=0.0).claim is TrialsClaim.BEST
    error = 2.5 * math.sqrt(MOST_FALSE * (1 - MOST_FALSE) / TABLES)
    assert false / TABLES <= MOST_FALSE + error


@pytest.mark.parametrize("cells", [2, 6])
def test_equal_cells_are_seldom_told_apart(cells: int) -> None:
    levels = {f"cell {number}": 100.0 for number in range(cells)}
    false = sum(
        of(rows_of(seed=seed, trials=4, **levels), tolerance=0.0).claim is TrialsClaim.BEST
        for seed in range(TABLES)
    )
    error = 2.5 * math.sqrt(MOST_FALSE * (1 - MOST_FALSE) / TABLES)
    assert false / TABLES <= MOST_FALSE + error


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([], {}),
        (rows_of(a=1.0, b=2.0), {"value": "second"}),
        (rows_of(a=1.0, b=2.0), {"block": "day"}),
        (rows_of(a=1.0), {}),
        (rows_of(trials=1, a=1.0, b=2.0), {}),
        (rows_of(a=1.0, b=2.0), {"cell": "seconds"}),
        (rows_of(a=1.0, b=2.0), {"better": "more"}),
        (rows_of(a=1.0, b=2.0), {"tolerance": 2.0}),
        ("table.csv", {}),
        ([1, 2], {}),
    ],
)
def test_bad_rows_are_refused(snapshot: Snapshot, rows: Any, columns: dict[str, Any]) -> None:
    with pytest.raises(TrialsInvalid) as raised:
        of(rows, **columns)
    snapshot(str(raised.value))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("fast", 'row 2, column "seconds": got "fast", expected a number above 0'),
        (math.nan, "row 2.*got NaN"),
        ("NaN", 'row 2.*got "NaN"'),
        (math.inf, "row 2.*got Infinity"),
        (-1.0, "row 2.*got -1.0.*ratios"),
        (0, "row 2.*got 0"),
        (None, "row 2.*got nothing"),
        (" ", "row 2.*got nothing"),
        (True, "row 2.*got true"),
        ("1.2.3", 'row 2.*got "1.2.3"'),
        ("1234,567", 'row 2.*got "1234,567"'),
        ("0,987", 'row 2.*got "0,987"'),
        (1e155, "row 2.*got 1e[+]155, expected a number from 1e-100 to 1e[+]100"),
    ],
)
def test_a_value_without_a_number_is_named_with_its_row(value: Any, message: str) -> None:
    rows = rows_of(a=1.0, b=2.0)
    rows[1]["seconds"] = value
    with pytest.raises(TrialsInvalid, match=message):
        of(rows)


@pytest.mark.parametrize("delimiter", [";", "\t", ","])
def test_a_comma_of_decimals_or_thousands_is_refused(delimiter: str, tmp_path: Path) -> None:
    table = [("config", "seconds"), ("b", "2"), ("a", '"1,234"'), ("a", '"1,238"')]
    path = tmp_path / "trials.csv"
    path.write_text("\n".join(map(delimiter.join, table)))
    _, _, error = run(str(path), "--value", "seconds", "--cell", "config")
    assert str(error) == (
        'row 2, column "seconds": got "1,234", which may be 1234 or 1.234; expected a number '
        "without a comma"
    )


@pytest.mark.parametrize("other", ["1,234,567", "1,234.5"])
def test_another_value_shows_that_commas_separate_thousands(other: str) -> None:
    rows = rows_of(a=1.0, b=2.0)
    rows[0]["seconds"] = other
    rows[1]["seconds"] = "1,234"
    with_commas = of(rows)
    rows[0]["seconds"] = other.replace(",", "")
    rows[1]["seconds"] = 1234
    assert with_commas.cells == of(rows).cells


def test_a_row_keeps_its_number_when_an_order_is_named() -> None:
    rows = [{**row, "at": 10 - place} for place, row in enumerate(rows_of(a=1.0, b=2.0))]
    rows[1]["seconds"] = math.nan
    with pytest.raises(TrialsInvalid, match="row 2"):
        of(rows, order="at")


def test_different_units_are_refused_and_one_unit_is_shown() -> None:
    rows = [{**row, "seconds": f"{row['seconds']:.4f} ms"} for row in rows_of(a=1.0, b=2.0)]
    assert of(rows).unit == "ms"
    rows[3]["seconds"] = "0.002 s"
    with pytest.raises(TrialsInvalid, match="ms in row 1, s in row 4"):
        of(rows)


def test_equal_rows_are_refused() -> None:
    rows = rows_of(a=1.0, b=2.0)
    with pytest.raises(TrialsInvalid, match="rows 1 and 11 are equal"):
        of([*rows, rows[0]])


class Frame:
    """What pandas, polars and pyarrow offer of their frames."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows


class PandasFrame(Frame):
    def to_dict(self, orient: str) -> Rows:
        assert orient == "records"
        return self.rows


class PolarsFrame(Frame):
    def to_dicts(self) -> Rows:
        return self.rows


@pytest.mark.parametrize("frame", [PandasFrame, PolarsFrame, list])
def test_frames_are_read(frame: Callable[[Rows], Any]) -> None:
    assert of(frame(rows_of(a=100.0, b=120.0))).best.cell == "a"


def test_an_arrow_table_is_read() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    assert of(pyarrow.Table.from_pylist(rows_of(a=100.0, b=120.0))).best.cell == "a"


def run(*arguments: str) -> tuple[int, str, BaseException | None]:
    answer = CliRunner().invoke(commands, ["judge", *arguments])
    return answer.exit_code, answer.output, answer.exception


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".parquet"])
def test_files_of_each_kind_give_one_answer(suffix: str, tmp_path: Path) -> None:
    rows = rows_of(a=100.0, b=120.0)
    path = tmp_path / f"trials{suffix}"
    if suffix == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        pyarrow = pytest.importorskip("pyarrow")
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif suffix == ".json":
        path.write_text(json.dumps(rows))
    elif suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows))
    else:
        separator = "\t" if suffix == ".tsv" else ","
        lines = [separator.join(rows[0]), *(separator.join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines))
    status, output, _ = run(str(path), "--value", "seconds", "--cell", "config")
    assert status == 0, output
    assert output.startswith("Use a: its value is the lowest.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("config,seconds\na,1,2\n", "got 3 fields, expected 2"),
        ("\n \nconfig,seconds\na,1,2\n", "trials.csv:4: got 3 fields, expected 2"),
        ("config,config\na,1\n", 'two columns "config"'),
        ("config,seconds\n", "no row"),
        ('seconds,config\n1,a\n2,"a\n3,b\n4,b\n', "expected UTF-8 in which each quote is closed"),
    ],
)
def test_a_broken_table_is_named_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    path.write_text(text)
    _, _, error = run(str(path), "--value", "seconds", "--cell", "config")
    assert isinstance(error, TrialsInvalid)
    assert message in str(error)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("empty lines before.csv", "\n \nconfig;seconds\na;1\nb;2\nb;2.1\n"),
        ("spaces before quotes.csv", 'config, "seconds"\n"a", "1"\nb, "2"\nb, 2.1\n'),
        (
            "end of a line in a text.jsonl",
            '{"config": "a", "seconds": 1}\n{"config": "b", "seconds": 2, "note": "\u2028"}\r\n'
            '{"config": "b", "seconds": 2.1}',
        ),
    ],
)
def test_odd_tables_are_read(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    status, _, error = run(str(tmp_path / name), "--value", "seconds", "--cell", "config")
    assert status == 0, error


def test_an_object_over_several_lines_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "trials.json"
    path.write_text(json.dumps({"trials": []}, indent=1))
    _, _, error = run(str(path), "--value", "seconds", "--cell", "config")
    assert "is neither a JSON list nor JSON lines" in str(error)


def test_a_missing_file_or_one_without_a_table_is_refused(tmp_path: Path) -> None:
    for name, content in (
        ("a.xlsx", b"PK"),
        ("b.csv", b"\xff\xfe\x00"),
        ("c.parquet", b"PAR"),
        ("d.json", b"[" * 100_000),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        _, _, error = run(str(path), "--value", "seconds", "--cell", "config")
        assert isinstance(error, TrialsInvalid), name
    _, _, error = run(str(tmp_path / "none.csv"))
    assert "does not exist" in str(error)


def test_unnamed_columns_are_asked_for_with_those_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    path.write_text("config,seconds\na,1\n")
    _, _, error = run(str(path))
    assert str(error).startswith("--value and --cell are missing, ")
    assert str(error).endswith(f" {path}: config, seconds")


def test_the_example_of_the_page_is_the_commands_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {"a": ("100.1", "101.2", "99.5"), "b": ("112.1", "110.2", "111.5")}
    lines = ["config,seconds,node"]
    for cell, values in seconds.items():
        lines += [f"{cell},{value},{node}" for value, node in zip(values, "xyx", strict=True)]
    path = tmp_path / "trials.csv"
    path.write_text("\n".join(lines))
    monkeypatch.setattr(judge_command, "STANDARD_OUTPUT", Terminal(width=160))
    status, output, _ = run(str(path), "--value", "seconds", "--cell", "config", "--host", "node")
    assert status == 0, output
    page = (REPO_ROOT / "docs" / "judge.md").read_text()
    assert "\n".join(line.rstrip() for line in output.splitlines()) in page


def test_step_logs_of_a_workstation_are_judged_without_a_suite(tmp_path: Path) -> None:
    for cell, seconds in (("eager", 0.012), ("compiled", 0.010)):
        for trial in range(3):
            folder = tmp_path / cell / str(trial) / "job"
            folder.mkdir(parents=True)
            steps = [seconds * (1 + 0.002 * trial)] * 60
            (folder / file_name().rpartition("/")[2]).write_text(
                "\n".join(log_lines(step_seconds=steps))
            )
    status, output, _ = run(str(tmp_path))
    assert status == 0, output
    assert output.startswith("Use compiled: its value is the highest.")
    assert "samples_per_second, greater is better" in output
    status, output, _ = run(str(tmp_path), "--value", "seconds_per_step")
    assert status == 0, output
    assert output.startswith("Use compiled: its value is the lowest.")


def test_a_run_too_short_for_a_warm_up_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "compiled" / "1"
    folder.mkdir(parents=True)
    lines = log_lines(step_seconds=[30.0, 20.0, 0.1, 0.1, 0.1])
    (folder / file_name().rpartition("/")[2]).write_text("\n".join(lines))
    _, _, error = run(str(tmp_path))
    assert "compiled/1, launch 1: got 5 steps, expected 6 or more, with samples" in str(error)


def test_a_folder_without_step_logs_is_refused_with_the_layout(tmp_path: Path) -> None:
    _, _, error = run(str(tmp_path))
    assert "expected FOLDER/CELL/TRIAL/…/rank-*.jsonl" in str(error)


@pytest.mark.parametrize(
    ("name", "options", "claim", "best"),
    [
        # three systems with 8 B200 within 2 %, the others on H200 and MI300X twice as long
        (
            "mlperf_llama2_lora.csv",
            ["--value", "minutes", "--cell", "system"],
            TrialsClaim.UNDECIDED,
            "tyche_ngpu8_ngc25.04_nemo",
        ),
        # eight nodes against one and two
        (
            "mlperf_bert_throughput.jsonl",
            ["--value", "median_throughput", "--cell", "system"],
            TrialsClaim.BEST,
            "hpf_n8",
        ),
        # smaller batches need fewer epochs
        (
            "zeus_shufflenet_epochs.csv",
            ["--value", "target_epoch", "--cell", "batch_size", "--cell", "optimizer"],
            TrialsClaim.BEST,
            "64 · adadelta",
        ),
    ],
)
def test_published_tables(name: str, options: Sequence[str], claim: TrialsClaim, best: str) -> None:
    status, output, _ = run(str(PUBLISHED / name), *options, "--format", "json")
    assert status == 0, output
    finding = json.loads(output)
    assert (finding["claim"], finding["cells"][0]["cell"]) == (claim.value, best)


def test_the_systems_with_equal_devices_are_the_open_ones() -> None:
    path = PUBLISHED / "mlperf_llama2_lora.csv"
    options = ("--value", "minutes", "--cell", "system", "--format", "json")
    cells = json.loads(run(str(path), *options)[1])["cells"]
    still_open = [cell["cell"] for cell in cells if cell["relation"] == Relation.OPEN.value]
    assert sorted(still_open) == ["1xBM.GPU.B200.8", "1xXE9680Lx8B200-SXM-180GB"]


def test_markdown_is_a_table_with_unknown_values() -> None:
    path = PUBLISHED / "zeus_shufflenet_epochs.csv"
    options = ("--value", "target_epoch", "--cell", "batch_size", "--format", "markdown")
    output = run(str(path), *options)[1]
    assert "| cell | trials | mean |" in output
    assert "- Hosts are unknown" in output
    assert "- Prices are unknown: " in output


@pytest.mark.parametrize(
    "rows",
    [
        {"a": (1.0, 1.01, 0.99), "b": (0.9,)},
        {"a": (1.0, 1.1, 0.9), "b": (1.0, 1.11, 0.9)},
    ],
    ids=["one trial", "open"],
)
def test_an_undecided_finding_marks_no_cell_as_the_best(rows: dict[str, Sequence[float]]) -> None:
    table = [{"cell": name, "seconds": value} for name, values in rows.items() for value in values]
    finding = judge(table, value="seconds", cell="cell")
    assert finding_rows(finding)[0][-1] == "ahead so far"
    assert finding_rows(finding)[1][-1] in ("open", "too few trials")
    assert finding_text(finding).startswith("Undecided")


def test_only_a_table_of_costs_knows_prices(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_text(
        "\n".join(
            json.dumps({**row, "usd": 1, "tokens_per_usd": 2}) for row in rows_of(a=1.0, b=2.0)
        )
    )
    for value, is_unknown in (("seconds", True), ("usd", False), ("tokens_per_usd", False)):
        output = run(str(path), "--value", value, "--cell", "config")[1]
        assert ("Prices are unknown" in output) == is_unknown
