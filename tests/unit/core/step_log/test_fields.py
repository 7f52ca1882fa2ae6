"""The class of a line names its fields and their types."""

import dataclasses
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

from traindyno.core.step_log import content, fields, line, steps

STEP = line.step_line(step=1, begin=1.0, end=2.0, wait_seconds=0.0, samples=1)
LOAD: dict[str, Any] = {each.name: 1 for each in dataclasses.fields(content.HostLoad)}
READERS: dict[type, tuple[Callable[[dict[str, Any]], Any], dict[str, Any]]] = {
    steps.LoggedStep: (fields.step_of, STEP),
    content.Environment: (fields.environment_of, line.environment_line(1.0, 0, 1, "algo-1", {})),
    content.Phase: (fields.phase_of, line.phase_line("load", 1.0, 2.0)),
    content.ModelSize: (fields.model_of, line.model_line(1.0, 1000, None, None)),
    content.Evaluation: (fields.evaluation_of, line.evaluation_line(1.0, 1, {"loss": 2.0})),
    content.HostLoad: (fields.host_load_of, line.host_load_line(**{**LOAD, "end": 2})),
    content.LoggedError: (fields.error_of, line.error_line(1.0, "loss_diverged", "loss is nan")),
}
OPTIONAL = {"host_id", "launch"}


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
