"""What a script's step log holds where the script does something unusual."""

import ast
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.unit.run_samples import known
from traindyno.callbacks import host_load, process
from traindyno.callbacks.clock import HostClock, now
from traindyno.callbacks.environment import allocator_retries, host_id
from traindyno.callbacks.log import StepLogger
from traindyno.callbacks.recorder import StepLogFile, StepRecorder
from traindyno.core.measurement.measured_run import read_environment
from traindyno.core.measurement.throughput import measure_table
from traindyno.core.step_log.line import ALLOCATOR_RETRIES, IN_BACKGROUND, RETRIES
from traindyno.core.step_log.reader import StepLog, read_step_log
from traindyno.core.step_log.step_table import tabulate_steps

CALLBACKS = Path(__file__).parents[3] / "traindyno" / "callbacks"
HOUR = 3600.0
# Some of the keys that torch documents; CUDA's own asynchronous allocator has none of its retries.
STATISTICS = {
    "num_alloc_retries": 3,
    "num_ooms": 0,
    "allocated_bytes.all.peak": 75 * 2**30,
    "segment.all.current": 41,
}


def lines_of(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.glob("*/rank-*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def read(folder: Path) -> StepLog:
    return read_step_log(
        {path.name: path.read_text().splitlines() for path in folder.glob("*/rank-*.jsonl")}
    )


def of_kind(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [line for line in lines_of(folder) if line["kind"] == kind]


def do_steps(log: StepLogger, count: int = 1, samples: int = 1) -> None:
    for _ in range(count):
        with log.step(samples=samples):
            pass


@pytest.fixture
def log(tmp_path: Path) -> Iterator[StepLogger]:
    logger = StepLogger(str(tmp_path))
    yield logger
    logger.close()


def test_the_callbacks_modules_import_each_other_in_one_direction() -> None:
    imports = {
        path.stem: _imported(path) for path in CALLBACKS.glob("*.py") if path.stem != "__init__"
    }
    assert "recorder" in imports["log"]
    TopologicalSorter(imports).prepare()  # raises CycleError


def _imported(path: Path) -> set[str]:
    """What the module imports, also for type checking only."""
    prefix = "traindyno.callbacks."
    nodes = [
        node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
    ]
    return {
        str(node.module).removeprefix(prefix)
        for node in nodes
        if str(node.module).startswith(prefix)
    }


def test_a_step_inside_a_step_is_an_error_with_both_lines(log: StepLogger) -> None:
    with (
        pytest.raises(RuntimeError, match="one step at a time") as caught,
        log.step(samples=4),
        log.step(samples=4),
    ):
        pass
    assert str(caught.value).count(f"{__file__}:") == 2
    with log.step(samples=4):  # the failed one was abandoned
        pass
    assert log.steps == 1


def test_a_step_of_a_second_thread_while_one_is_open_is_an_error(log: StepLogger) -> None:
    caught: list[BaseException] = []

    def log_a_step() -> None:
        try:
            do_steps(log)
        except RuntimeError as error:
            caught.append(error)

    with log.step(samples=1):
        thread = threading.Thread(target=log_a_step)
        thread.start()
        thread.join()
    assert "second thread" in str(caught[0])
    assert log.steps == 1


def test_an_exiting_forked_child_writes_nothing(log: StepLogger, tmp_path: Path) -> None:
    do_steps(log)
    child = os.fork()
    if child == 0:
        do_steps(log)
        log.close()
        os._exit(0)
    os.waitpid(child, 0)
    log.close()
    kinds = [line["kind"] for line in lines_of(tmp_path)]
    assert kinds.count("step") == 1
    assert kinds.count("end") == 1
    assert kinds[-1] == "end"


@pytest.mark.parametrize("is_late", [False, True])
def test_a_script_taking_the_trials_seed_before_its_first_step_says_so(
    is_late: bool, log: StepLogger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert log.seed(otherwise=7) == 7
    monkeypatch.setenv("TRAINDYNO_SEED", "3")
    if is_late:
        do_steps(log)
    assert log.seed(otherwise=7) == 3
    do_steps(log)
    log.close()
    facts = known(read_environment(read(tmp_path))).facts
    assert facts.get("seed") == (None if is_late else 3)


@pytest.mark.parametrize("resume", [StepLogger.resume, StepLogger.begin_training])
def test_steps_go_on_counting_in_a_process_with_earlier_ones(
    resume: Callable[[StepLogger, int], None], log: StepLogger, tmp_path: Path
) -> None:
    """After a resume in a new process they have the numbers of the run."""
    for steps in (2, 0, 3):
        resume(log, steps)
        do_steps(log, 2)
    log.close()
    assert [step["step"] for step in of_kind(tmp_path, "step")] == [3, 4, 5, 6, 7, 8]


def test_the_time_between_two_trainings_is_a_pause_around_its_phases(
    log: StepLogger, tmp_path: Path
) -> None:
    for _ in range(2):
        log.begin_training(0, batch=8)
        do_steps(log, samples=8)
        log.end_training()
        time.sleep(0.05)
        with log.phase("evaluate"):
            time.sleep(0.02)
    log.close()
    first, second = of_kind(tmp_path, "step")
    (pause,) = [
        phase for phase in of_kind(tmp_path, "phase") if phase["name"] == "between_trainings"
    ]
    assert pause["begin"] == pytest.approx(first["end"], abs=0.01)
    assert pause["end"] == pytest.approx(second["begin"], abs=0.01)
    assert second["wait_seconds"] < 0.01
    assert pause["end"] - pause["begin"] >= 0.07


@pytest.mark.parametrize("samples", [0, -4])
def test_a_step_without_samples_is_refused_for_one_process_with_all_the_work(
    log: StepLogger, samples: int
) -> None:
    with pytest.raises(ValueError, match=f"samples={samples}; expected the number of samples"):
        log.step(samples=samples)


@pytest.mark.parametrize("joins_late", [False, True])
def test_a_process_among_others_may_have_no_samples_left(
    joins_late: bool, log: StepLogger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that joins its group after its log was opened."""
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    if joins_late:
        with log.phase("load"):
            pass
    monkeypatch.setenv("WORLD_SIZE", "2")
    log.independent()
    do_steps(log, samples=0)
    log.close()
    assert [step["samples"] for step in of_kind(tmp_path, "step")] == [0]


@pytest.mark.parametrize("is_block", [True, False])
def test_counts_of_numpy_are_whole_numbers_in_the_log(
    log: StepLogger, tmp_path: Path, is_block: bool
) -> None:
    for _ in range(5):
        if is_block:
            with log.step(samples=1) as step:
                step.samples = np.int64(8)  # type: ignore[assignment]
                step.tokens = np.int32(64)  # type: ignore[assignment]
        else:
            log.begin_step()
            log.end_step(np.int64(8), np.int32(64), None, None)  # type: ignore[arg-type]
    log.close()
    assert [(step["samples"], step["tokens"]) for step in of_kind(tmp_path, "step")] == [
        (8, 64)
    ] * 5
    assert lines_of(tmp_path)[-1]["kind"] == "end"


@pytest.mark.parametrize("counts", [(8.5, None), (8, 64.0), ("8", None)])
def test_a_fractional_count_fails_its_step_and_leaves_the_other_lines(
    log: StepLogger, tmp_path: Path, counts: tuple[Any, Any]
) -> None:
    do_steps(log)
    with pytest.raises(TypeError) as caught, log.step(samples=1) as step:
        step.samples, step.tokens = counts
    log.failed(caught.value)
    assert [step["samples"] for step in of_kind(tmp_path, "step")] == [1]
    assert lines_of(tmp_path)[-1]["outcome"] == "user_code_error"


def test_the_first_step_is_written_at_once_for_a_killed_script(
    log: StepLogger, tmp_path: Path
) -> None:
    do_steps(log)
    assert [step["step"] for step in of_kind(tmp_path, "step")] == [1]


def test_lines_beside_an_unencodable_one_are_kept(tmp_path: Path) -> None:
    file = StepLogFile(tmp_path / "job" / "rank-0.jsonl")
    line = {"step": 1}
    file.write_later(line)
    file.write_later({"step": object()})
    with pytest.raises(TypeError, match="not JSON serializable"):
        file.flush()
    assert file._lines[0] is line


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_non_finite_loss_stays_in_the_log_and_marks_it(
    log: StepLogger, tmp_path: Path, loss: float
) -> None:
    with log.step(samples=1) as step:
        step.loss = loss
    log.close()
    written = read(tmp_path)
    assert written.measured is not None
    assert repr(written.measured.processes[0].steps[0].loss) == repr(loss)
    assert [error.outcome for error in written.errors] == ["loss_diverged"]


def test_a_non_finite_evaluation_loss_marks_the_log(log: StepLogger, tmp_path: Path) -> None:
    log.evaluation({"eval_loss": math.nan, "accuracy": 0.5})
    log.evaluation({"eval_loss": math.nan})
    log.close()
    written = read(tmp_path)
    assert math.isnan(written.sessions[0].evaluations[0].metrics["eval_loss"])
    assert [error.message for error in written.errors] == [
        "the evaluation's eval_loss after step 0 is nan"
    ]


def test_phases_explain_the_time_from_the_process_start_to_the_last_line(
    log: StepLogger, tmp_path: Path
) -> None:
    with log.phase("load"):
        pass
    do_steps(log)
    log.close()
    phases = {phase["name"]: phase for phase in of_kind(tmp_path, "phase")}
    assert list(phases) == ["import", "load", "setup", "teardown"]
    (step,) = of_kind(tmp_path, "step")
    (end,) = of_kind(tmp_path, "end")
    assert phases["import"]["begin"] == pytest.approx(process.started(), abs=0.05)
    assert phases["setup"]["begin"] == phases["load"]["end"]
    assert phases["setup"]["end"] == pytest.approx(step["begin"], abs=0.01)
    assert phases["teardown"]["end"] == pytest.approx(end["time"], abs=0.01)


def test_a_process_started_before_now_and_after_the_test_runner() -> None:
    started = known(process.started())
    assert now() - 24 * 3600 < started < now()
    assert process.launcher_started({}) is None


def test_launchers_are_the_ancestors_with_the_jobs_name() -> None:
    asks = (
        "import sys; from traindyno.callbacks import process; print(process.launcher_started() is "
        "not None)"
    )
    launches = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {asks!r}], check=True)"
    )
    root = str(CALLBACKS.parents[1])
    for launcher, job, expected in (("job-1", "job-1", "True"), ("job-2", "job-1", "False")):
        started = f"import os; os.environ['TRAINING_JOB_NAME'] = {job!r}; " + launches
        answer = subprocess.run(
            [sys.executable, "-c", started],
            env={"PYTHONPATH": root, "TRAINING_JOB_NAME": launcher},
            capture_output=True,
            text=True,
            check=True,
        )
        assert answer.stdout.strip() == expected


def test_host_load_lines_hold_the_kernels_counts(log: StepLogger, tmp_path: Path) -> None:
    log.open()
    until = time.process_time() + 0.15
    while time.process_time() < until:  # work that the counters have to show
        pass
    log.close()
    (load,) = of_kind(tmp_path, "host_load")
    assert load["cpu_seconds"] >= 0.1
    assert load["host_busy_seconds"] >= 0.05
    assert load["host_cpu_count"] == os.cpu_count()
    (session,) = read(tmp_path).sessions
    assert session.processes[0].host_loads[0].cpu_seconds == load["cpu_seconds"]


def test_a_host_load_line_is_due_every_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [100.0]
    monkeypatch.setattr(host_load, "now", lambda: seconds[0])
    load = host_load.HostLoadMeter()
    seconds[0] = 104.0
    assert load.due_line() is None
    seconds[0] = 105.0
    line = known(load.due_line())
    assert (line["begin"], line["end"]) == (100.0, 105.0)
    assert load.due_line() is None


@pytest.mark.parametrize(
    ("asset_tag", "expected"),
    [
        ("i-0123456789abcdef0", "instance_id:i-0123456789abcdef0"),
        ("Not Specified", "boot_id:85f309a1"),
    ],
)
def test_a_host_is_named_by_its_instance_or_its_boot(
    tmp_path: Path, asset_tag: str, expected: str
) -> None:
    files = {
        "sys/class/dmi/id/board_asset_tag": asset_tag,
        "proc/sys/kernel/random/boot_id": "85f309a1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    assert host_id(tmp_path) == expected
    assert host_id(tmp_path / "nowhere") is None


@pytest.mark.parametrize("jump_seconds", [HOUR, -HOUR])
def test_a_jump_of_the_wall_clock_does_not_change_the_step_time(
    log: StepLogger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump_seconds: float
) -> None:
    monotonic = [time.perf_counter()]
    wall = [time.time()]
    monkeypatch.setattr(time, "perf_counter", lambda: monotonic[0])
    monkeypatch.setattr(time, "time", lambda: wall[0])
    for step in range(40):
        with log.step(samples=8):
            monotonic[0] += 0.5
            wall[0] += 0.5 + (jump_seconds if step == 20 else 0.0)
    log.close()
    measured = measure_table(tabulate_steps(known(read(tmp_path).measured)), warmup_steps=None)
    assert measured.seconds == pytest.approx(0.5)
    assert measured.steady_state.is_reached


@pytest.mark.parametrize(
    ("statistics", "expected"),
    [(STATISTICS, 3), ({**STATISTICS, "num_alloc_retries": 0}, 0), ({}, 0)],
)
def test_the_retries_of_the_statistics(
    statistics: dict[str, int], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: bool(statistics),
        memory_stats=lambda: statistics,
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert allocator_retries() == expected


def test_the_log_has_a_phase_without_length_when_there_are_more(tmp_path: Path) -> None:
    readings = iter([0, 2, 2, 5])
    file = StepLogFile(tmp_path / "log.jsonl")
    recorder = StepRecorder(file, HostClock(), lambda: 7, retries=lambda: next(readings))
    for number in range(1, 5):
        recorder.begin("here")
        recorder.end(number, 4, None, None, None)
    file.flush()
    lines = [json.loads(line) for line in file.path.read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["step", "step", "phase", "step", "step", "phase"]
    phases = [line for line in lines if line["kind"] == "phase"]
    assert [(phase["name"], phase["facts"]) for phase in phases] == [
        (ALLOCATOR_RETRIES, {RETRIES: retries, IN_BACKGROUND: True}) for retries in (2, 5)
    ]
    assert all(phase["begin"] == phase["end"] for phase in phases)
