"""The scripts of the suites of users' scripts, as their cells start them, for a few steps."""

from pathlib import Path

import pytest

from tests.training.forked_jobs import run_forked
from tests.training.jobs import REPO_ROOT, JobEnd
from traindyno.api.sample_data import is_sample, write_sample
from traindyno.api.suite_loading import load_suite
from traindyno.core.suite.arguments import command_arguments

SUITES = REPO_ROOT / "suites"
SHORTER = {"own_script": {"epochs": 2}, "hf_trainer": {"max_steps": 4, "logging_steps": 1}}
BATCH = {"own_script": "batch_size", "hf_trainer": "per_device_train_batch_size"}


def run_cell(name: str, processes: int, folder: Path) -> tuple[JobEnd, int]:
    """The end of the first cell with so many processes, and the batch that it asks for."""
    suite = load_suite(SUITES / f"{name}.yaml").suite
    workload = suite.workload
    assert workload.dataset is not None
    cell = next(cell for cell in suite.cells if cell.settings.instance_count == processes)
    path = str(workload.dataset.path)
    data = write_sample(path, folder / "data") if is_sample(path) else (SUITES / path).parent
    places = {
        "SM_CHANNEL_TRAIN": data,
        "SM_MODEL_DIR": folder / "model",
        "SM_OUTPUT_DATA_DIR": folder / "data-out",
    }
    for place in places.values():
        place.mkdir(exist_ok=True)
    given = {**workload.hyperparameters, **cell.hyperparameters, **SHORTER[name]}
    script = SUITES / name / str(workload.entry_point)
    environment = {variable: str(place) for variable, place in places.items()}
    end = run_forked(
        folder, script, *command_arguments(given), processes=processes, environment=environment
    )
    return end, int(str(given[BATCH[name]]))


@pytest.mark.parametrize(
    ("name", "processes"), [("own_script", 1), ("hf_trainer", 1), ("hf_trainer", 2)]
)
def test_a_script_of_a_suite_logs_the_values_of_its_arguments_and_saves_its_model(
    tmp_path: Path, name: str, processes: int
) -> None:
    end, batch = run_cell(name, processes, tmp_path)
    assert end.exit_code == 0, end.output
    for rank in range(processes):
        assert end.of_kind("environment", rank)[0]["world_size"] == processes
        steps = end.of_kind("step", rank)
        assert len(steps) >= 4
        assert steps[0]["samples"] == batch
        assert len(end.of_kind("end", rank)) == 1
    losses = [step["loss"] for step in end.of_kind("step")]
    assert losses[-1] < losses[0]
    assert list((tmp_path / "model").iterdir())
