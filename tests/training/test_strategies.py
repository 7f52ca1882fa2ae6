"""Every strategy, with every model that it supports, trains what one process trains."""

from itertools import pairwise

import pytest

from tests.training.strategy_rows import ROWS, Row
from tests.training.strategy_runs import LIMIT_SECONDS, differences, reference_of, results_of
from tests.training.strategy_trial import Trained

CASES = [
    pytest.param(
        row,
        model,
        id=f"{row.label}-{row.processes}-{model}",
        marks=pytest.mark.timeout(LIMIT_SECONDS + 120),
    )
    for row in ROWS
    for model in row.trained
]


@pytest.mark.parametrize(("row", "model"), CASES)
def test_the_first_ten_losses_and_the_saved_model_equal_those_of_one_process(
    row: Row, model: str
) -> None:
    trained = results_of(row.environment, row.processes)[f"{row.label} {model}"]
    assert isinstance(trained, Trained), trained
    losses, parameters = differences(trained, reference_of(row, model))
    assert losses <= row.tolerance.loss
    assert parameters <= row.tolerance.parameter


def test_the_compared_losses_differ_from_step_to_step() -> None:
    for row in (row for row in ROWS if row.label == "ddp" and row.processes == 2):
        for model in row.models:
            losses = reference_of(row, model).losses
            assert min(abs(now - before) for before, now in pairwise(losses)) > 2e-5


@pytest.mark.parametrize("label", ["zero1", "fsdp", "tensor", "pipeline, gpipe"])
def test_two_processes_share_the_optimizers_state(label: str) -> None:
    (row,) = (row for row in ROWS if row.label == label and row.processes == 2)
    model = row.trained[0]
    trained = results_of("main", 2)[f"{label} {model}"]
    assert isinstance(trained, Trained), trained
    # half of it, and under tensor and pipeline the embeddings, a twentieth, and norms whole
    assert 0.4 < trained.optimizer_elements / reference_of(row, model).optimizer_elements < 0.6
