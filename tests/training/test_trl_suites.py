"""The scripts of suites/trl_dpo.yaml and suites/trl_grpo.yaml train and log, with TRL beside."""

import os
from pathlib import Path

import pytest

from tests.training.jobs import REPO_ROOT, run_job
from traindyno.api.suite_loading import load_suite
from traindyno.core.suite.arguments import command_arguments

SUITES = REPO_ROOT / "suites"
TRL = REPO_ROOT / ".envs" / "trl"


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "data"), [("trl_dpo", "pairs"), ("trl_grpo", "prompts")])
def test_a_script_with_a_trainer_of_trl_logs_its_steps_and_saves_its_model(
    name: str, data: str, tmp_path: Path
) -> None:
    if not TRL.exists():
        pytest.skip("make .envs/trl/.installed")
    suite = load_suite(SUITES / f"{name}.yaml").suite
    (cell, *_) = suite.cells
    given = {**suite.workload.hyperparameters, **cell.hyperparameters, "max_steps": 4}
    environment = {
        "SM_CHANNEL_TRAIN": str(SUITES / "trl_data" / data),
        "SM_MODEL_DIR": str(tmp_path / "model"),
        "PYTHONPATH": os.pathsep.join(map(str, (REPO_ROOT, TRL))),
    }
    script = SUITES / name / "train.py"
    end = run_job(tmp_path, script, *command_arguments(given), processes=1, environment=environment)
    assert end.exit_code == 0, end.output
    steps = end.of_kind("step")
    assert len(steps) == 4
    assert all(step["samples"] for step in steps)
    assert (tmp_path / "model" / "model.safetensors").exists()
