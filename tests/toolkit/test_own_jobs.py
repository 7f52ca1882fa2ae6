"""AWS's training toolkit with the requests of the built-in tasks: a shared job, a training that is
stopped and goes on, and a preparation without data.
"""

import json
import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.container import TOOLKITS, Container, first_process, why_no_container
from tests.toolkit.test_script_jobs import ISOLATED, record
from tests.unit.sagemaker.toolkit_failures import NO_FILES
from tests.unit.suites import small_document, small_suite, unprepared_suite
from traindyno.bundle import training_files
from traindyno.core.jobs.journal_format import DOCUMENT_CHANNEL, PARENT_ENDED, RUN_BEGAN, RUN_ENDED
from traindyno.core.planning.jobs import share_jobs
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Suite
from traindyno.sagemaker.job_document import job_document
from traindyno.sagemaker.request import build_preparation_request, build_training_job_request
from traindyno.sagemaker.shared_request import build_shared_job_request
from traindyno.slices.training.plan import training_suite

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(why_no_container() is not None, reason=str(why_no_container())),
]
ON_A_CPU = {"instance": "ml.m5.large", "precision": "fp32", "batch_size_per_device": 2}
TINY = {"model_type": "gpt2", "n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 32}


def tiny_suite(**changes: Any) -> Suite:
    """Cells on a CPU, without data."""
    workload = {
        **small_document()["workload"],
        "dataset": {"format": "synthetic"},
        "model": {"config": TINY},
        "sequence_length": 32,
    }
    return unprepared_suite(
        **{"workload": workload, "training": ON_A_CPU, "baseline": {}, **changes}
    )


@pytest.mark.parametrize("toolkit", TOOLKITS)
def test_a_shared_job_runs_its_three_cells(tmp_path: Path, toolkit: str) -> None:
    suite = tiny_suite(
        matrix={"learning_rate": [1e-3, 1e-4, 1e-5]},
        measurement={"trials": 1, "max_steps": 8},
    )
    (job,) = share_jobs(trial_runs("execution-1", suite.cells, [1]), suite)
    request = build_shared_job_request(job, suite, attempt=1, settings=ISOLATED)
    container = Container(
        folder=tmp_path, request=request, source=training_files(), toolkit=toolkit
    )
    document = container.ml / "input/data" / DOCUMENT_CHANNEL / f"{job.job_id}.json"
    document.parent.mkdir()
    document.write_text(json.dumps(job_document(job, suite, ISOLATED)))
    assert container.run(300) == 0, container.log

    checkpoints = container.ml / "checkpoints"
    (journal,) = checkpoints.glob("journal/*/*.jsonl")
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    run_ids = {run.run_id for run in job.runs}
    for event in (RUN_BEGAN, RUN_ENDED):
        assert {line["run_id"] for line in lines if line["event"] == event} == run_ids
    assert [line["reason"] for line in lines if line["event"] == PARENT_ENDED] == [None]
    for run_id in run_ids:
        (end,) = checkpoints.glob(f"{run_id}/ended/*/*.json")
        assert json.loads(end.read_text())["exit_code"] == 0
        (log,) = (checkpoints / run_id / "step_log").iterdir()
        assert steps_of(log) == [*range(1, 9)]


@pytest.mark.parametrize("toolkit", TOOLKITS)
@pytest.mark.parametrize("strategy", ["single", "ddp"])
def test_a_stopped_training_goes_on_at_the_next_step(
    tmp_path: Path, toolkit: str, strategy: str
) -> None:
    """With and without torchrun, which starts ``ddp``."""
    suite = tiny_suite(training={**ON_A_CPU, "strategy": strategy})
    (cell, *_) = suite.cells
    suite = training_suite(
        suite,
        cell,
        limits=replace(suite.limits, chain_jobs=True),
        purchase=Purchase.ON_DEMAND,
    )
    suite = replace(suite, measurement=replace(suite.measurement, checkpoint_every_steps=10**6))
    (run,) = trial_runs("execution-1", suite.cells, [1])
    last_steps: list[int] = []
    for attempt in (1, 2):
        request = build_training_job_request(run, suite, attempt=attempt, settings=ISOLATED)
        container = Container(
            folder=tmp_path, request=request, source=training_files(), toolkit=toolkit
        )
        log = container.ml / "checkpoints/step_log" / request["TrainingJobName"]
        with container.started() as process:
            container.wait_until(partial(has_begun, log))
            os.kill(first_process(process), signal.SIGTERM)
            assert process.wait(120) != 0
        assert container.failure.startswith("traindyno-outcome: stopped_by_user: ")
        own = steps_of(log)
        assert own == [*range(own[0], own[-1] + 1)]
        assert own[0] == (last_steps[-1] + 1 if last_steps else 1)
        last_steps.append(own[-1])


def has_begun(log: Path) -> bool:
    return len(steps_of(log)) >= 5


def steps_of(log: Path) -> list[int]:
    """The steps of one attempt's process, as far as their lines are whole."""
    lines = [
        json.loads(line)
        for path in log.glob("rank-*.jsonl")
        for line in path.read_text().splitlines()
        if line.endswith("}")
    ]
    return [line["step"] for line in lines if line["kind"] == "step"]


@pytest.mark.parametrize("toolkit", TOOLKITS)
def test_a_preparation_without_files_says_so(tmp_path: Path, toolkit: str) -> None:
    suite = small_suite(training=ON_A_CPU, baseline={}, matrix={"learning_rate": [1e-3]})
    preparation = DataPreparation(
        execution_id="execution-1", instance="ml.m5.large", key="0" * 64, packing=True
    )
    request = build_preparation_request(preparation, suite, attempt=1, settings=ISOLATED)
    container = Container(
        folder=tmp_path, request=request, source=training_files(), toolkit=toolkit
    )
    for channel in request["InputDataConfig"]:
        (container.ml / "input/data" / channel["ChannelName"]).mkdir(exist_ok=True)
    record(toolkit, NO_FILES, container.failure_reason(container.run()))
