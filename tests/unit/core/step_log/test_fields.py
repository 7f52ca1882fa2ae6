"""The class of a line names its fields and their types."""

import dataclasses
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

from traindyno.core.step_log import fields, line

STEP = line.step_line(step=1, begin=1.0, end=2.0, wait_seconds=0.0, samples=1)
LOAD: dict[str, Any] = {field.name: 1 for field in dataclasses.fields(fields.HostLoad)}
OPTIONAL = {"host_id", "launch", "trained"}


def read_alone(kind: type) -> Callable[[dict[str, Any]], Any]:
    return lambda told: kind(**fields.read_fields(kind, told))


READERS: dict[type, tuple[Callable[[dict[str, Any]], Any], dict[str, Any]]] = {
    line.LoggedStep: (fields.step_of, STEP),
    fields.Environment: (fields.environment_of, line.environment_line(1.0, 0, 1, "algo-1", {})),
    fields.LoggedPhase: (fields.phase_of, line.phase_line("load", 1.0, 2.0)),
    fields.ModelSize: (read_alone(fields.ModelSize), line.model_line(1.0, 1000, None, None)),
    fields.Evaluation: (fields.evaluation_of, line.evaluation_line(1.0, 1, {"loss": 2.0})),
    fields.HostLoad: (fields.host_load_of, line.host_load_line(**{**LOAD, "end": 2})),
    fields.LoggedError: (
        read_alone(fields.LoggedError),
        line.error_line(1.0, "loss_diverged", "loss is nan"),
    ),
}


@pytest.mark.parametrize("kind", READERS, ids=lambda kind: kind.__name__)
def test_the_class_of_a_line_says_its_needed_fields_and_their_types(kind: type) -> None:
    read_line, whole = READERS[kind]
    value = read_line(whole)
    assert read_line({**whole, "from_a_later_writer": 1}) == value
    for name in get_type_hints(kind):
        without = {field: given for field, given in whole.items() if field != name}
        if name in OPTIONAL:
            assert getattr(read_line(without), name) is None
        else:
            with pytest.raises(fields.LineInvalid, match=f"field '{name}' is missing"):
                read_line(without)
        with pytest.raises(fields.LineInvalid, match=f"{name}: got list, expected "):
            read_line({**whole, name: []})
