"""Users' scripts: a plain loop, Hugging Face's Trainer and Lightning write step logs, on one rank
and on two.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.training.forked_jobs import run_forked
from tests.training.jobs import REPO_ROOT, SCRIPTS, JobEnd, run_job
from traindyno.callbacks import failure
from traindyno.callbacks.checkpoints import read_marker
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.measured_run import RunEnvironment, read_environment
from traindyno.core.step_log.line import WORK_UNIT
from traindyno.core.step_log.reader import read_step_log

PLAIN = SCRIPTS / "plain_loop.py"


def run_trainer(folder: Path, *arguments: str, processes: int = 1) -> JobEnd:
    script = SCRIPTS / "hf_trainer_script.py"
    return run_forked(folder, script, str(folder / "hf"), *arguments, processes=processes)


def environment_of(end: JobEnd) -> RunEnvironment:
    log = read_step_log({path.name: path.read_text().splitlines() for path in end.log_files})
    environment = read_environment(log)
    assert environment is not None
    return environment


@pytest.mark.parametrize("processes", [1, 2])
def test_a_plain_loop_logs_every_step_of_every_rank(tmp_path: Path, processes: int) -> None:
    end = run_job(tmp_path, PLAIN, processes=processes)
    assert end.exit_code == 0, end.output
    assert len(end.log_files) == processes
    for rank in range(processes):
        lines = end.lines(rank)
        kinds = [line["kind"] for line in lines if line["kind"] not in ("phase", "host_load")]
        assert kinds == ["environment", *["step"] * 6, "end"]
        explained = (
            ["import", "setup", "teardown"]
            if processes == 1
            else ["launch", "import", "setup", "first_batches", "teardown"]
        )
        assert [phase["name"] for phase in end.of_kind("phase", rank)] == explained
        assert lines[0]["host_id"]
        assert lines[0]["world_size"] == processes
        steps = end.of_kind("step", rank)
        assert [step["step"] for step in steps] == [1, 2, 3, 4, 5, 6]
        assert {step["samples"] for step in steps} == {8}
        assert steps[-1]["loss"] < steps[0]["loss"]
        assert lines[-1]["steps"] == 6
    group = (
        {"process_group": "torch.distributed", "process_group_size": 2} if processes == 2 else {}
    )
    assert all(
        phase["facts"] == group for phase in end.of_kind("phase") if phase["name"] == "setup"
    )
    environment = environment_of(end)
    assert environment.facts.get("process_group") == group.get("process_group")
    assert "python" in environment.facts


@pytest.mark.parametrize(
    ("mode", "outcome", "words"),
    [
        ("raise", Outcome.USER_CODE_ERROR, "ValueError: the third batch is broken"),
        ("memory", Outcome.OUT_OF_MEMORY, "memory"),
    ],
)
def test_an_error_is_named_in_the_log_and_in_the_failure_file(
    tmp_path: Path, mode: str, outcome: Outcome, words: str
) -> None:
    end = run_forked(tmp_path, PLAIN, mode)
    assert end.exit_code == 1
    (error,) = end.of_kind("error")
    assert error["outcome"] == outcome
    assert words in error["message"]
    assert end.failure == f"traindyno-outcome: {outcome}: {error['message']}"
    assert end.failure in end.output
    assert len(end.of_kind("step")) == 3
    assert end.of_kind("end") == []


def test_outside_traindyno_nothing_is_written(tmp_path: Path) -> None:
    end = run_forked(tmp_path, PLAIN, environment={"TRAINDYNO_STEP_LOG_DIRECTORY": ""})
    assert end.exit_code == 0
    assert not (tmp_path / "step_log").exists()


@pytest.mark.parametrize("processes", [1, 2])
def test_a_hugging_face_trainer_logs_optimizer_steps_and_evaluations(
    tmp_path: Path, processes: int
) -> None:
    end = run_trainer(tmp_path, "64", processes=processes)
    assert end.exit_code == 0, end.output
    for rank in range(processes):
        steps = end.of_kind("step", rank)
        assert [step["step"] for step in steps] == [1, 2, 3, 4]
        assert {step["samples"] for step in steps} == {8}  # 4 rows x 2 accumulated batches
        assert all(step["learning_rate"] is not None for step in steps)
        assert [line["step"] for line in end.of_kind("evaluation", rank)] == [2, 4]
        assert "loss" in end.of_kind("evaluation", rank)[0]["metrics"]
        assert end.lines(rank)[-1]["kind"] == "end"
        names = [phase["name"] for phase in end.of_kind("phase", rank)]
        assert [name for name in names if name in ("evaluate", "checkpoint")] == [
            "evaluate",
            "checkpoint",
        ] * 2
        assert saving_is_no_waiting(end, rank)
    assert all(step["loss"] > 0 for step in end.of_kind("step"))


def saving_is_no_waiting(end: JobEnd, rank: int) -> bool:
    """No step's wait for data reaches back into an evaluation or a checkpoint."""
    ends = [
        phase["end"]
        for phase in end.of_kind("phase", rank)
        if phase["name"] in ("evaluate", "checkpoint")
    ]
    steps = end.of_kind("step", rank)
    return all(
        step["begin"] >= done - 1e-3 for step in steps for done in ends if step["end"] > done
    )


def test_trainer_hides_no_non_finite_loss(tmp_path: Path) -> None:
    end = run_trainer(tmp_path, "64", "nan")
    assert end.of_kind("step")[0]["loss"] == "nan", end.output
    assert end.of_kind("error")[0]["outcome"] == Outcome.LOSS_DIVERGED


@pytest.mark.parametrize(
    ("script", "arguments", "remedy"),
    [
        ("plain_loop.py", ("alone",), "step_log.independent()"),
        (
            "hf_trainer_script.py",
            ("hf", "64", "unsaid"),
            "expected TrainingArguments(use_cpu=True) on a CPU",
        ),
        ("accelerate_script.py", ("default",), "expected Accelerator(cpu=True) on a CPU"),
        ("lightning_script.py", ("lightning", "1"), "expected Lightning's Trainer(devices="),
    ],
)
def test_processes_silently_training_alone_are_refused_with_the_remedy(
    tmp_path: Path, script: str, arguments: Sequence[str], remedy: str
) -> None:
    end = run_forked(tmp_path, SCRIPTS / script, *arguments, processes=2)
    assert end.exit_code == 1
    assert "2 processes were started, but this one has no process group" in end.failure
    assert remedy in end.failure
    assert end.of_kind("step") == []


def test_processes_meant_to_train_alone_say_so(tmp_path: Path) -> None:
    end = run_forked(tmp_path, PLAIN, "independent", processes=2)
    assert end.exit_code == 0, end.output
    assert [len(end.of_kind("step", rank)) for rank in (0, 1)] == [6, 6]
    (setup,) = [phase for phase in end.of_kind("phase") if phase["name"] == "setup"]
    assert setup["facts"] == {"process_group": "independent"}


def test_processes_joined_by_accelerate_share_the_data(tmp_path: Path) -> None:
    end = run_forked(tmp_path, SCRIPTS / "accelerate_script.py", "cpu", processes=2)
    assert end.exit_code == 0, end.output
    assert [[step["samples"] for step in end.of_kind("step", rank)] for rank in (0, 1)] == [
        [4, 4],
        [4, 4],
    ]


def test_a_logging_loss_function_changes_no_step(tmp_path: Path) -> None:
    steps = []
    for arguments in ((), ("own-log",)):
        folder = tmp_path / "-".join(("trainer", *arguments))
        folder.mkdir()
        end = run_trainer(folder, "64", *arguments)
        assert end.exit_code == 0, end.output
        steps.append(
            [(step["step"], step["samples"], step["loss"]) for step in end.of_kind("step")]
        )
    quiet, logging = steps
    assert logging == quiet
    assert all(loss is not None for _, _, loss in logging)


def test_packed_blocks_are_another_unit_than_rows(tmp_path: Path) -> None:
    end = run_trainer(tmp_path, "64", "packing")
    assert end.exit_code == 0, end.output
    assert environment_of(end).facts[WORK_UNIT] == "packed blocks of 8 tokens"


@pytest.mark.parametrize("processes", [1, 2])
def test_lightning_logs_optimizer_steps_and_evaluations(tmp_path: Path, processes: int) -> None:
    script = SCRIPTS / "lightning_script.py"
    end = run_forked(
        tmp_path, script, str(tmp_path / "lightning"), str(processes), processes=processes
    )
    assert end.exit_code == 0, end.output
    for rank in range(processes):
        steps = end.of_kind("step", rank)
        # 32 rows / processes, 4 rows x 2 accumulated batches a step
        assert [step["samples"] for step in steps] == [8] * (4 // processes)
        assert all(step["loss"] > 0 and step["learning_rate"] == 0.1 for step in steps)
        assert len(end.of_kind("evaluation", rank)) == 1
        names = [phase["name"] for phase in end.of_kind("phase", rank)]
        assert sorted(name for name in names if name in ("evaluate", "checkpoint")) == [
            "checkpoint",
            "evaluate",
        ]
        assert saving_is_no_waiting(end, rank)


def test_files_for_frozen_images_run_on_python_3_8() -> None:
    sources = [
        "traindyno/__init__.py",
        "traindyno/callbacks",
        "traindyno/core/__init__.py",
        "traindyno/core/step_log/__init__.py",
        "traindyno/core/step_log/line.py",
        "experiments",
        "tests/frozen/small_inputs.py",
    ]
    answer = subprocess.run(
        [
            Path(sys.executable).parent / "vermin",
            "-t=3.8-",
            "--violations",
            "--eval-annotations",
            *sources,
        ],
        cwd=REPO_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout


def test_outcomes_written_on_python_3_8_are_the_projects_own() -> None:
    written = [
        failure.OUT_OF_MEMORY,
        failure.LOSS_DIVERGED,
        failure.USER_CODE_ERROR,
        failure.STOPPED_BY_USER,
    ]
    assert set(written) <= set(Outcome)


@pytest.mark.parametrize(
    ("script", "resumed_after"),
    [("hf_resume_script.py", 2), ("lightning_resume_script.py", 4)],
)
def test_a_users_script_resumes_from_its_newest_whole_checkpoint(
    tmp_path: Path, script: str, resumed_after: int
) -> None:
    """The script compares its model with an uninterrupted one.

    The last checkpoint of the Trainer is cut short.
    """
    environment = {"TRAINDYNO_CHECKPOINT_DIRECTORY": str(tmp_path / "state")}
    end = run_forked(tmp_path, SCRIPTS / script, environment=environment)
    assert end.exit_code == 0, end.output
    steps = [line["step"] for line in end.of_kind("step")]
    assert steps == list(range(1, 1 + 4 + 6 - resumed_after))  # both trainings are of one process
    checkpoints = [
        phase["facts"] for phase in end.of_kind("phase") if phase["name"] == "checkpoint"
    ]
    assert checkpoints
    assert all(facts["bytes"] > 0 for facts in checkpoints)
    for folder in tmp_path.glob("state/checkpoint-*"):  # the Trainer's
        logged = b"".join(
            (tmp_path / "step_log" / name).read_bytes()[:size]
            for name, size in read_marker(folder)["log"].items()
        )
        assert b'"step":%d,' % int(folder.name.rpartition("-")[2]) in logged
