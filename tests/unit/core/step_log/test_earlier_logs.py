"""Logs of every earlier version are read, and a new field leaves them readable."""

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast, get_type_hints

import pytest

from traindyno.core.step_log import content, fields, line, steps
from traindyno.core.step_log.reader import read_step_log

LOGS = Path(__file__).parents[3] / "data" / "step_logs"
VERSIONS = sorted(folder.name for folder in LOGS.iterdir() if folder.is_dir())
NULL_LOSS, HAS_REASON = "94ba4f4", "5a04f27"


def read(version: str) -> content.StepLog:
    files = sorted((LOGS / version).rglob("*.jsonl"))
    return read_step_log({str(file): file.read_text().splitlines() for file in files})


def test_there_is_a_log_of_every_schema_version() -> None:
    firsts = [next(iter((LOGS / version).rglob("*.jsonl"))).read_text().splitlines()[0] for version in VERSIONS]
    assert {json.loads(first)["schema_version"] for first in firsts} == set(fields.STEP_LOG.readable)
    assert fields.STEP_LOG.readable == range(1, line.SCHEMA_VERSION + 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_log_of_an_earlier_version_is_read(version: str) -> None:
    log = read(version)
    assert log.problems == ()
    assert log.measured is not None
    (process,) = log.measured.processes
    assert [(step.step, step.samples, step.tokens) for step in process.steps] == [(n, 8, 512) for n in range(1, 7)]
    losses = [step.loss for step in process.steps]
    assert losses[:5] == [4.0, 3.99, 3.98, 3.97, 3.96]
    assert losses[5] is None if version == NULL_LOSS else math.isnan(losses[5] or 0.0)
    assert process.end_reason == ("target_reached" if version == HAS_REASON else None)
    assert log.model == content.ModelSize(parameters=1000, flops_per_token=6000.0, formula="6 N")
    assert log.evaluations[0].metrics == {"loss": 3.5, "accuracy": 0.5}
    assert process.environment is not None
    assert (process.environment.host_id is None) == (version == NULL_LOSS)


class LaterStep(NamedTuple):
    """A step with one field more than today's."""

    step: int
    begin: float
    end: float
    wait_seconds: float
    samples: int
    tokens: int | None
    loss: float | None
    peak_memory_bytes: int | None
    gradient_norm: float | None = None


def later_step_of(line_of_today: dict[str, Any]) -> Any:
    return fields.step_reader(cast("type[steps.LoggedStep]", LaterStep))(line_of_today)


def test_a_new_field_of_a_step_leaves_older_lines_valid() -> None:
    assert LaterStep._fields[:-1] == steps.LoggedStep._fields
    older = later_step_of(STEP)
    assert older[:-1] == fields.step_of(STEP)
    assert older.gradient_norm is None
    assert later_step_of({**STEP, "gradient_norm": 2.0}).gradient_norm == 2.0
    with pytest.raises(fields.LineInvalid, match="gradient_norm: got text, expected a number or null"):
        later_step_of({**STEP, "gradient_norm": "2"})
    with pytest.raises(fields.LineInvalid, match="field 'samples' is missing"):
        later_step_of({name: value for name, value in STEP.items() if name != "samples"})


STEP = line.step_line(step=1, begin=1.0, end=2.0, wait_seconds=0.0, samples=1)
LOAD: dict[str, Any] = {each.name: 1 for each in dataclasses.fields(content.HostLoad) if each.name != "programs"}
READERS: dict[type, tuple[Callable[[dict[str, Any]], Any], dict[str, Any]]] = {
    steps.LoggedStep: (fields.step_of, STEP),
    content.Environment: (fields.environment_of, line.environment_line(1.0, 0, 1, "algo-1", {})),
    content.Phase: (fields.phase_of, line.phase_line("load", 1.0, 2.0)),
    content.ModelSize: (fields.model_of, line.model_line(1.0, 1000, None, None)),
    content.Evaluation: (fields.evaluation_of, line.evaluation_line(1.0, 1, {"loss": 2.0})),
    content.HostLoad: (fields.host_load_of, line.host_load_line(**{**LOAD, "end": 2})),
    content.LoggedError: (fields.error_of, line.error_line(1.0, "loss_diverged", "loss is nan")),
}
OPTIONAL = {"host_id", "launch", "programs"}


@pytest.mark.parametrize("kind", READERS, ids=lambda kind: kind.__name__)
def test_the_class_of_a_line_says_which_fields_it_needs_and_of_which_types(kind: type) -> None:
    read_line, whole = READERS[kind]
    value = read_line(whole)
    assert read_line({**whole, "from_a_later_writer": 1}) == value
    for name in get_type_hints(kind):
        without = {each: given for each, given in whole.items() if each != name}
        if name in OPTIONAL:
            assert getattr(read_line(without), name) is None
        else:
            with pytest.raises(fields.LineInvalid, match=f"field '{name}' is missing"):
                read_line(without)
        with pytest.raises(fields.LineInvalid, match=f"{name}: got list, expected "):
            read_line({**whole, name: []})
