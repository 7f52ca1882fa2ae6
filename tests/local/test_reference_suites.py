"""The suites of users' scripts and of strategies run once through the local cloud to their
verdict.
"""

from typing import Any

import pytest
import yaml

from localcloud.home import ENVIRONMENTS
from localcloud.sagemaker_service.host import process_environment
from tests.local.forked_programs import REPO_ROOT
from tests.local.local_lab import LocalLab
from tests.xla.xla_environment import make_environment

pytestmark = [pytest.mark.local, pytest.mark.nightly]

SUITES = REPO_ROOT / "suites"
# Hyperparameters that shorten each job: a run needs enough steps for a rate, and no good model.
SCRIPT_SUITES = {
    "own_script": {"epochs": 4},
    "hf_trainer": {"max_steps": 15},
    "lightning": {"epochs": 2},
}
XLA_FOLDER = ENVIRONMENTS / process_environment.XLA_FOLDER
# Threads that wait for each other on a busy machine use most of its time.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
# Most of XLA's time here is compilation, and the compiled code is not measured.
BRIEF_COMPILATION = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
}
# One cell of each way to divide the model; tests/training compares the others step by step.
STRATEGIES = ("fsdp", "tensor", "pipeline")


def reference_suite(name: str) -> dict[str, Any]:
    """The published suite with each cell once, also where other tests contend for the machine, and
    absolute paths.
    """
    suite: dict[str, Any] = yaml.safe_load((SUITES / f"{name}.yaml").read_text())
    del suite["name"]
    suite["measurement"]["trials"] = 1
    workload = suite["workload"]
    places = [(workload, "source"), (workload["dataset"], "path")]
    for part, field in places:
        if not part.get(field, "sample:").startswith("sample:"):
            part[field] = str(SUITES / part[field])
    return suite


def report_of(lab: LocalLab, name: str, suite: dict[str, Any]) -> dict[str, Any]:
    report: dict[str, Any] = lab.run_suite(name.replace("_", "-"), suite).json()
    return report


@pytest.mark.parametrize("name", SCRIPT_SUITES)
def test_a_users_script_runs_to_the_verdict_with_one_process_and_with_two(
    lab: LocalLab, name: str
) -> None:
    suite = reference_suite(name)
    suite["workload"]["hyperparameters"] |= SCRIPT_SUITES[name]
    suite["workload"]["environment"] = ONE_THREAD
    suite["training"]["seed"] = 4
    report = report_of(lab, name, suite)
    assert report["verdict"]["recommended"] in [cell["cell_id"] for cell in report["cells"]]
    for result in report["results"]:
        assert result["outcome"] == "completed", result["log_tail"]
        assert result["run"]["seed"] == result["seed"] == 4  # the script says that it took it
        settings = result["run"]["cell"]["settings"]
        own = result["run"]["cell"]["hyperparameters"]
        processes = settings.get("instance_count", 1)
        batch = own.get("batch_size") or own["per_device_train_batch_size"]
        assert result["environment"]["world_size"] == processes
        throughput = result["measured"]["throughput"]
        per_step = throughput["samples"] / throughput["steps"]
        assert 0.8 * batch * processes < per_step <= batch * processes
        assert throughput["samples_per_step"] == batch * processes
    differences = [
        difference
        for confound in report["verdict"]["likeness"]["confounds"]
        for difference in confound["differences"]
    ]
    for difference in differences:
        assert difference["name"] != "learning rate"
        assert difference["name"] != "global batch" or difference["first"] != difference["second"]


def test_strategies_are_compared_on_the_same_work(lab: LocalLab) -> None:
    """This suite has one cell of each way to divide the model among two processes; a person runs
    the whole suite.
    """
    make_environment(XLA_FOLDER)
    suite = reference_suite("strategies_cpu")
    suite["matrix"]["compiler"] = ["none", "xla"]
    pairs = [
        cell for cell in suite["include"] if cell["instance_count"] == 2 and "compiler" not in cell
    ]
    suite["include"] = [
        next(cell for cell in pairs if cell["strategy"] == strategy) for strategy in STRATEGIES
    ]
    suite["measurement"]["max_steps"] = 15
    suite["workload"]["environment"] |= BRIEF_COMPILATION
    report = report_of(lab, "strategies_cpu", suite)
    losses = []
    for result in report["results"]:
        assert result["outcome"] == "completed", result["log_tail"]
        throughput = result["measured"]["throughput"]
        assert throughput["samples"] == 16 * throughput["steps"]
        losses.append([point["loss"] for point in result["measured"]["loss"]["points"]])
    alone = losses[0]
    assert len(alone) == 15
    for spread in losses[1:]:
        assert spread == pytest.approx(alone, rel=1e-4)
    assert not report["verdict"]["refused"]
