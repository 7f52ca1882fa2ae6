"""Rows from files: CSV, JSON, JSON lines, Parquet, and folders of step logs."""

import csv
import importlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from traindyno.api.trial_rows import TrialColumns, TrialsInvalid
from traindyno.core.documents.problems import shown
from traindyno.core.measurement.steady_window import LEAST_STEADY_STEPS
from traindyno.core.measurement.throughput import Throughput, measure_table, measure_throughput
from traindyno.core.step_log.content import Session, StepLog
from traindyno.core.step_log.reader import StepLogInvalid, read_step_log
from traindyno.core.step_log.step_table import tabulate_steps

DELIMITERS = ",;\t|"
READABLE = "a .csv, .tsv, .json, .jsonl or .parquet file, or a folder of step logs"
LOG_PATTERN = "rank-*.jsonl"
MOST_BYTES = 200_000_000
RATE = "samples_per_second"

Row = Mapping[str, Any]


def read_rows(path: Path) -> list[Row]:
    """The rows of a file or a folder. Raises TrialsInvalid."""
    if os.path.isdir(path):  # noqa: PTH112  (Path.is_dir raises for a name that is too long)
        return list(_step_log_rows(path))
    if not os.path.isfile(path):  # noqa: PTH113  (the same)
        raise TrialsInvalid(f"{path} does not exist, expected {READABLE}")
    if path.stat().st_size > MOST_BYTES:
        raise TrialsInvalid(f"{path} has more than {MOST_BYTES:,} bytes, expected a row a trial")
    try:
        match path.suffix.lower():
            case ".csv" | ".tsv" | ".txt":
                return _csv_rows(path)
            case ".json" | ".jsonl" | ".ndjson":
                return _json_rows(path)
            case ".parquet":
                return _parquet_rows(path)
            case other:
                raise TrialsInvalid(
                    f"{path}: got {shown(other or 'no suffix')}, expected {READABLE}"
                )
    except (UnicodeDecodeError, csv.Error) as error:
        raise TrialsInvalid(
            f"{path} is no table of text: {error}; expected UTF-8 in which each quote is closed"
        ) from error


def _csv_rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        heading = next((line for line in file if line.strip()), "")
        delimiter = max(DELIMITERS, key=heading.count)
        file.seek(0)
        lines = csv.reader(file, delimiter=delimiter, strict=True, skipinitialspace=True)
        names = [name.strip() for name in next(filter(_has_text, lines), [])]
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise TrialsInvalid(
                f"{path} has two columns {shown(repeated[0])}, expected one of each"
            )
        rows: list[Row] = []
        for line in filter(_has_text, lines):
            if len(line) != len(names):
                raise TrialsInvalid(
                    f"{path}:{lines.line_num}: got {len(line)} fields, expected {len(names)}, as "
                    "in the heading"
                )
            rows.append(dict(zip(names, line, strict=True)))
    return rows


def _has_text(line: Sequence[str]) -> bool:
    return any(map(str.strip, line))


def _json_rows(path: Path) -> list[Row]:
    """A list of objects, or one object a line."""
    text = path.read_text(encoding="utf-8-sig")
    try:
        if text.lstrip().startswith("["):
            rows = json.loads(text)
        else:
            rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError) as error:
        raise TrialsInvalid(
            f"{path} is neither a JSON list nor JSON lines, an object in each: {error}"
        ) from error
    listed = list[Row](rows)
    for number, row in enumerate(listed, start=1):
        if not isinstance(row, Mapping):
            raise TrialsInvalid(f"{path}, row {number}: got {shown(row)}, expected an object")
    return listed


def _parquet_rows(path: Path) -> list[Row]:
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise TrialsInvalid(
            f"{path}: Parquet files need pyarrow, which is not installed; install it with pip "
            "install pyarrow, or write the table as CSV"
        ) from None
    try:
        rows: list[Row] = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:
        raise TrialsInvalid(f"{path} is no Parquet file: {error}") from error
    return rows


def _step_log_rows(folder: Path) -> Iterator[Row]:
    """A row for each launch, from FOLDER/CELL/…/rank-*.jsonl."""
    by_trial: dict[Path, list[Path]] = {}
    for file in sorted(folder.rglob(LOG_PATTERN)):
        by_trial.setdefault(file.parent, []).append(file)
    if not by_trial:
        raise TrialsInvalid(
            f"{folder} has no step log ({LOG_PATTERN}), expected FOLDER/CELL/TRIAL/…/{LOG_PATTERN}"
        )
    for place, files in by_trial.items():
        relative = place.relative_to(folder)
        if not relative.parts:
            raise TrialsInvalid(
                f"{folder} has step logs but no folder for each cell, expected "
                f"FOLDER/CELL/TRIAL/…/{LOG_PATTERN}"
            )
        try:
            log = read_step_log({str(file): _lines(file) for file in files})
        except StepLogInvalid as error:
            raise TrialsInvalid(str(error)) from error
        yield from _launches(log, relative)


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines()


def _launches(log: StepLog, place: Path) -> Iterator[Row]:
    for number, session in enumerate(log.sessions, start=1):
        steps = len(session.common_steps)
        throughput = _throughput(session) if steps > LEAST_STEADY_STEPS else None
        if throughput is None:
            raise TrialsInvalid(
                f"{place}, launch {number}: got {steps} steps, expected "
                f"{LEAST_STEADY_STEPS + 1} or more, with samples, for a rate after the warm-up"
            )
        hosts = {
            process.environment.host_id
            for process in session.processes
            if process.environment and process.environment.host_id
        }
        yield {
            "cell": place.parts[0],
            "trial": f"{place} {number}",
            RATE: throughput.samples_per_second,
            "seconds_per_step": 1 / throughput.steps_per_second,
            "tokens_per_second": throughput.tokens_per_second,
            "host": " ".join(sorted(hosts)) or None,
            "began_at": session.begin,
        }


def _throughput(session: Session) -> Throughput | None:
    table = tabulate_steps(session)
    return measure_throughput(
        table,
        measure_table(table, warmup_steps=None),
        device_count=session.world_size,
        flops_per_token=None,
        peak_flops_per_device=None,
    )


def log_columns(rows: Sequence[Row]) -> TrialColumns:
    """The columns of step logs."""
    has_hosts = all(row["host"] for row in rows)
    return TrialColumns(
        value=RATE, cell=("cell",), host="host" if has_hosts else None, order="began_at"
    )
