"""A shared job gives each of its runs what a job of its own would give it."""

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from localcloud.sagemaker_service.host.toolkit import read_program
from localcloud.sagemaker_service.jobs.job import Engine, new_job
from tests.unit.sagemaker.test_request import SETTINGS, model_problems
from tests.unit.suites import script_document, small_document, small_suite
from traindyno.core.instances.instance_types import instance_types
from traindyno.core.jobs.job import Job
from traindyno.core.jobs.run_attempts import MOST_ATTEMPTS
from traindyno.core.lab_names import LAB_NAME
from traindyno.core.planning.jobs import share_jobs, why_alone
from traindyno.core.run.tokens import Tokens
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import GoalKind, Search
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.preparation import needs_preparation
from traindyno.core.suite.runs import make_runs, trial_runs, with_seeds
from traindyno.core.suite.suite import Run, Suite
from traindyno.sagemaker.images import select_image_uri
from traindyno.sagemaker.job_document import job_document
from traindyno.sagemaker.job_names import attempt_job_name, attempt_number, execution_digest
from traindyno.sagemaker.job_settings import LabJobs
from traindyno.sagemaker.launcher import Launcher, select_launcher
from traindyno.sagemaker.request import STAY_VARIABLE, build_training_job_request
from traindyno.sagemaker.shared_request import build_shared_job_request

JOB_ID = "j1a2b3c4d-1-12"
WITH_ARGUMENTS = {"lr": 1e-4, "flag": True, "parts": {"b": 1, "a": 2}, "x": "a,b"}
SUITES = {
    "built-in": small_document(),
    "spot": small_document(
        purchase="spot", matrix={"packing": [True, False]}, baseline={"packing": True}
    ),
    "two instances": small_document(training={"instance": "ml.g6e.12xlarge", "instance_count": 2}),
    "local": small_document(training={"instance": "local.cpu"}),
    "script": script_document(
        matrix={"instance": ["ml.g5.xlarge"], "hyperparameters.lr": [0.001, 0.01]}
    ),
    "script's words": script_document(
        workload={
            **script_document()["workload"],
            "hyperparameters": WITH_ARGUMENTS,
            "environment": {"NCCL_DEBUG": "INFO", "API_KEY": "sesame"},
            "channels": {"runs": "s3://bucket/mine/", "train-2": "s3://bucket/other/"},
        },
        training={"strategy": "single"},
        measurement={"seed_argument": "seed"},
    ),
}
REPOSITORIES = json.loads(
    files("traindyno.sagemaker.data").joinpath("stock_images.json").read_text()
)["repositories"]


def shared_job(suite: Suite) -> Job:
    """The runs read tokens of two kinds in turn."""
    runs = with_seeds(suite, trial_runs("execution-1", suite.cells, [1, 2]))
    made = [Tokens(key=key, s3_uri=f"s3://results/prepared/{key}/") for key in ("a", "b")]
    with_tokens = tuple(replace(run, tokens=made[number % 2]) for number, run in enumerate(runs))
    return Job(execution_id="execution-1", job_id=JOB_ID, runs=with_tokens)


@pytest.mark.parametrize("name", sorted(SUITES))
def test_each_run_gets_the_same_as_from_a_job_of_its_own(name: str) -> None:
    suite = parse_suite(SUITES[name])
    job = shared_job(suite)
    ours = build_shared_job_request(job, suite, attempt=1, settings=SETTINGS)
    channels = {entry["ChannelName"]: without_name(entry) for entry in ours["InputDataConfig"]}
    assert len(channels) == len(ours["InputDataConfig"])
    document = job_document(job, suite, SETTINGS)
    assert [told["run_id"] for told in document["runs"]] == [run.run_id for run in job.runs]
    for run, told in zip(job.runs, document["runs"], strict=True):
        alone = build_training_job_request(run, suite, attempt=1, settings=SETTINGS)
        program = read_program(new_job(alone, arn="arn", engine=Engine.PROCESS, now_ms=0))
        assert (told["hyperparameters"], document["program"]) == (program.user, program.entry_point)
        assert told["launcher"] == ("torchrun" if program.uses_torchrun else "process")
        own_folders = {
            key: text.replace("/checkpoints/", f"/checkpoints/{run.run_id}/")
            for key, text in alone["Environment"].items()
            if key != STAY_VARIABLE  # the container's
        }
        inherited = {key: ours["Environment"][key] for key in document["inherited"]}
        assert {**inherited, **told["environment"]} == own_folders
        got = {own: channels[shared] for own, shared in told["channels"].items()}
        assert got == {
            entry["ChannelName"]: without_name(entry) for entry in alone.get("InputDataConfig", [])
        }
        assert ours["ResourceConfig"] == alone["ResourceConfig"]
        assert document["instance_type"] in json.dumps(alone["ResourceConfig"])


def without_name(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "ChannelName"}


def test_the_parents_document_comes_through_a_channel_of_its_own() -> None:
    suite = small_suite()
    ours = build_shared_job_request(shared_job(suite), suite, attempt=2, settings=SETTINGS)
    (place,) = [entry for entry in ours["InputDataConfig"] if entry["ChannelName"] == "runs"]
    uri = place["DataSource"]["S3DataSource"]["S3Uri"]
    assert uri == f"s3://results/code/execution-1/jobs/{JOB_ID}.json"
    assert ours["Environment"] == {
        "TRAINDYNO_JOB_DOCUMENT": f"/opt/ml/input/data/runs/{JOB_ID}.json",
        "TRAINDYNO_JOB_FOLDER": "/opt/ml/checkpoints",
    }
    assert ours["CheckpointConfig"] == {
        "S3Uri": f"s3://results/runs/execution-1/{JOB_ID}/checkpoints/"
    }
    assert {tag["Key"]: tag["Value"] for tag in ours["Tags"]}["traindyno:run"] == JOB_ID
    assert model_problems(ours) == []


def test_variables_of_the_workload_are_there_when_packages_are_installed() -> None:
    suite = parse_suite(SUITES["script's words"])
    ours = build_shared_job_request(shared_job(suite), suite, attempt=1, settings=SETTINGS)
    assert ours["Environment"]["NCCL_DEBUG"] == "INFO"


def test_values_of_the_workloads_variables_are_in_the_request_only() -> None:
    """Every job of a lab can read the documents of all jobs, and describe none."""
    suite = parse_suite(SUITES["script's words"])
    job = shared_job(suite)
    assert (
        build_shared_job_request(job, suite, attempt=1, settings=SETTINGS)["Environment"]["API_KEY"]
        == "sesame"
    )
    document = job_document(job, suite, SETTINGS)
    assert document["inherited"] == ["API_KEY"]
    assert "sesame" not in json.dumps(document)


@pytest.mark.parametrize("max_job_seconds", [60, 300, 1200, 86400])
def test_most_of_the_jobs_limit_is_the_runs(max_job_seconds: int) -> None:
    """An upload comes after the limit; a job of one run has all of it."""
    suite = small_suite(limits={**small_document()["limits"], "max_job_seconds": max_job_seconds})
    kept = job_document(shared_job(suite), suite, SETTINGS)["ending_seconds"]
    assert 0 < kept <= min(120, max_job_seconds / 10)


@pytest.mark.parametrize("search", sorted(Search))
@pytest.mark.parametrize("accuracy", [None, 0.8])
def test_only_first_runs_of_a_race_to_do_the_work_end_early(
    search: Search, accuracy: float | None
) -> None:
    kind = GoalKind.CHEAPEST if accuracy is None else GoalKind.CHEAPEST_TO
    suite = replace(small_suite(), search=search, goal=Goal(kind=kind, accuracy=accuracy))
    first = shared_job(suite)
    later = replace(first, runs=tuple(replace(run, block="2.1") for run in first.runs))
    is_race = search is not Search.GRID
    for job in (first, later):
        document = job_document(job, suite, SETTINGS)
        assert document.get("warm_up_steps") == (7 if is_race else None)
        samples = {"samples": suite.workload.examples}
        assert document.get("race") == (
            samples if is_race and accuracy is None and job is first else None
        )


@pytest.mark.parametrize(
    ("kind", "again"), [("fastest", [2]), ("cheapest", [1]), ("cheapest-to", [])]
)
def test_the_likely_group_of_a_race_may_run_its_cells_again_backward_and_forward(
    kind: str, again: list[int]
) -> None:
    """By time the most instances, by cost the fewest; a quality may need fewer steps at a slower
    rate.
    """
    training = {"instance": "ml.g5.xlarge", "strategy": "ddp"}
    matrix = {"instance_count": [1, 2], "compiler": ["none", "inductor"]}
    suite = small_suite(
        training=training, matrix=matrix, baseline={"instance_count": 1}, measurement={"trials": 5}
    )
    goal = Goal(kind=GoalKind(kind), accuracy=0.8 if kind == "cheapest-to" else None)
    suite = replace(suite, search=Search.RACE, goal=goal)
    jobs = share_jobs(with_seeds(suite, trial_runs("execution-1", suite.cells, [1])), suite)
    assert len(jobs) == 2
    for job in jobs:
        told = job_document(job, suite, SETTINGS)
        first, second = (run.cell.cell_id for run in job.runs)
        may_run = [(repeat["run_id"], repeat["first"]) for repeat in told.get("again", [])]
        expected = [
            (cell, trial) for cell, trial in ((second, 2), (first, 2), (first, 3), (second, 3))
        ]
        is_likely = job.instance_count in again
        assert may_run == [
            (f"{cell}-t{trial}", f"{cell}-t1") for cell, trial in expected if is_likely
        ]
        for repeat in told.get("again", []):
            trial = int(repeat["run_id"][-1])
            same = next(run for run in told["runs"] if run["run_id"] == repeat["first"])
            assert (
                repeat["hyperparameters"]["trial_seed"]
                == same["hyperparameters"]["trial_seed"] + trial - 1
            )
            assert repeat["channels"] == same["channels"]
    later = make_runs("execution-1", [(cell, 2) for cell in suite.cells], round_number=2)
    assert all(
        "again" not in job_document(job, suite, SETTINGS) for job in share_jobs(later, suite)
    )


def test_every_attempt_has_the_same_document_and_another_name() -> None:
    suite = small_suite(purchase="spot")
    job = shared_job(suite)
    first, second = (
        build_shared_job_request(job, suite, attempt=n, settings=SETTINGS) for n in (1, 2)
    )
    names = [request["TrainingJobName"] for request in (first, second)]
    assert [attempt_number(name) for name in names] == [1, 2]
    assert all(f"-{execution_digest('execution-1')}-" in name for name in names)
    assert {name for name in first if first[name] != second[name]} == {
        "TrainingJobName",
        "HyperParameters",
    }


@pytest.mark.parametrize(
    "name",
    sorted(
        instance_type.name
        for instance_type in instance_types().values()
        if instance_type.has_training_quota
    ),
)
def test_runs_put_together_by_the_planner_have_a_document(name: str) -> None:
    """Without the number of devices, nobody can count the processes before there is an instance."""
    matrix = {"instance": [name], "hyperparameters.lr": [0.1, 0.2]}
    is_counted = instance_types()[name].devices_per_instance is not None
    for strategy in ("ddp", "single"):
        given = {
            "matrix": matrix,
            "training": {"strategy": strategy},
            "measurement": {"jobs": "shared"},
        }
        suite = parse_suite(script_document(**given))
        may_share = is_counted or strategy == "single"
        assert {why_alone(cell, suite) is None for cell in suite.cells} == {may_share}
        if may_share:
            assert job_document(shared_job(suite), suite, SETTINGS)["instance_type"] == name


@pytest.mark.parametrize("strategy", ["ddp", "single"])
@pytest.mark.parametrize(
    "tag", ["1.12-gpu", "1.13.0", "1.13.1-gpu-py39", "1.13", "2.13.0", "latest"]
)
@pytest.mark.parametrize("repository", [*sorted(REPOSITORIES), "own"])
def test_planner_and_request_agree_on_programs_started_by_sagemaker(
    repository: str, tag: str, strategy: str
) -> None:
    """A user's own image may have any numbers in its tag."""
    is_own = repository == "own"
    image = (
        f"111122223333.dkr.ecr.us-east-1.amazonaws.com/own:{tag}"
        if is_own
        else f"{repository}:{tag}"
    )
    workload = {**script_document()["workload"], "image": image}
    given = {"instance": "ml.g5.12xlarge", "strategy": strategy}
    matrix = {"hyperparameters.lr": [0.1, 0.2]}
    suite = parse_suite(
        script_document(
            workload=workload,
            matrix=matrix,
            baseline={},
            training=given,
            measurement={"jobs": "shared"},
        )
    )
    cell = suite.cells[0]
    instance_type = instance_types()["ml.g5.12xlarge"]
    uri = select_image_uri(cell.settings, suite.workload, SETTINGS)
    launcher = select_launcher(cell.settings, instance_type, uri, {})
    assert (why_alone(cell, suite) is None) is (launcher in (Launcher.PROCESS, Launcher.TORCHRUN))


@pytest.mark.parametrize("data", [{"path": "s3://bucket/data/"}, {"format": "synthetic"}], ids=str)
@pytest.mark.parametrize("model", ["s3://bucket/model/", "of/the-hub"])
def test_the_planner_makes_no_job_with_more_channels_than_sagemaker_gives(
    model: str, data: dict[str, Any]
) -> None:
    """Packed and unpacked tokens are two channels of data."""
    sizes = set()
    for count in range(17):
        workload = {
            **small_document()["workload"],
            "model": {"path": model},
            "tokenizer": {"path": "s3://bucket/tokenizer/"},
            "dataset": data,
            "channels": {f"part{number}": f"s3://bucket/{number}/" for number in range(count)},
        }
        matrix = {"packing": [False, True], "batch_size_per_device": [1, 2]}
        suite = small_suite(
            workload=workload, matrix=matrix, baseline={}, measurement={"jobs": "shared"}
        )
        for job in share_jobs(trial_runs("e", suite.cells, [1]), suite):
            sizes.add(len(job.runs))
            if job.is_shared:
                prepared = replace(job, runs=tuple(as_prepared(run, suite) for run in job.runs))
                request = build_shared_job_request(prepared, suite, attempt=1, settings=SETTINGS)
                assert len(request["InputDataConfig"]) <= 19
            else:
                assert "input channels" in (why_alone(job.runs[0].cell, suite) or "")
    assert sizes == {4, 2} if "path" in data else {4}


def as_prepared(run: Run, suite: Suite) -> Run:
    """With the tokens of its cell, if the suite has any, and the lab's copy of the model."""
    key = f"{run.cell.settings.packing}"
    tokens = (
        Tokens(key=key, s3_uri=f"s3://results/prepared/{key}/")
        if needs_preparation(suite.workload)
        else None
    )
    return replace(run, tokens=tokens, model_s3_uri="s3://results/prepared/model/")


def test_an_isolated_job_has_its_code_as_a_channel_too() -> None:
    suite = small_suite()
    settings = replace(SETTINGS, jobs=LabJobs(isolates_network=True))
    ours = build_shared_job_request(shared_job(suite), suite, attempt=1, settings=settings)
    assert [entry["ChannelName"] for entry in ours["InputDataConfig"]] == [
        "train",
        "train-2",
        "runs",
        "code",
    ]


@pytest.mark.parametrize("attempt", [1, MOST_ATTEMPTS])
def test_the_longest_names_of_lab_suite_and_job_make_a_job_name(attempt: int) -> None:
    """A job's id has at most 20 characters, as the planner's own test shows."""
    lab = "l" * 18
    suite = "s" * 40
    assert LAB_NAME.fullmatch(lab)
    job = replace(shared_job(small_suite()), job_id="j1234567-b12x345p678")
    name = attempt_job_name(job, suite, attempt=attempt, lab=lab)
    assert len(name) <= 63
    assert attempt_number(name) == attempt
    short = attempt_job_name(job, "demo", attempt=attempt, lab="traindyno")
    assert short == f"traindyno--demo-{execution_digest(job.execution_id)}-{job.job_id}-a{attempt}"
