"""An instance is lost after any file of an upload: the steps of the run's log are still counted
once each.

Checkpoints and log are uploaded file by file, in any order: a checkpoint may be in S3 before the
lines of its steps.
"""

import contextlib
import itertools
import os
import random
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from traindyno.callbacks import clock
from traindyno.callbacks.checkpoints import checkpoint_folder, mark_complete, newest_complete
from traindyno.callbacks.log import StepLogger
from traindyno.core.measurement.run_phases import divide_steps
from traindyno.core.step_log.line import CHECKPOINTS_VARIABLE, DIRECTORY_VARIABLE, LAUNCH_VARIABLE
from traindyno.core.step_log.reader import StepLog, read_step_log

STEPS = 12
EVERY = 3
STATE = "state"
LOG = "step_log"


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is uploaded, of the instance on which the job runs now."""
    folder = tmp_path / "instance"
    monkeypatch.setattr(clock, "ORIGIN", clock.ORIGIN)  # sessions change it
    monkeypatch.setenv("TRAINING_JOB_NAME", "job-a1")
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(folder / STATE))
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(folder / LOG))
    monkeypatch.setenv(LAUNCH_VARIABLE, "")  # sessions change it
    return folder


@contextlib.contextmanager
def step_logs(ranks: int) -> Iterator[list[StepLogger]]:
    """One for each process of the job."""
    logs = []
    for rank in range(ranks):
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks))
        log = StepLogger(os.environ[DIRECTORY_VARIABLE])
        log.independent()
        log.open()
        logs.append(log)
    os.environ["RANK"] = "0"
    try:
        yield logs
    finally:  # a lost instance's last lines are never uploaded
        for log in logs:
            log.close()


def session(ranks: int) -> Generator[int]:
    """What a user's script does after a start of the job: yields the step that it resumes after,
    then each step.
    """
    newest = newest_complete(checkpoint_folder())
    done = int(Path(newest, "weights").read_text()) if newest else 0
    with step_logs(ranks) as logs:
        for log in logs:
            log.resume(done)
        yield done
        for number in range(done + 1, STEPS + 1):
            for log in logs:
                with log.step(samples=8) as step:
                    step.loss = 1 / number
            if number % EVERY == 0:
                write_checkpoint(logs, number)
            yield number


def write_checkpoint(logs: list[StepLogger], number: int) -> None:
    slot = Path(str(checkpoint_folder()), f"slot-{number // EVERY}")
    with contextlib.ExitStack() as phases:
        for log in logs:
            phases.enter_context(log.checkpoint(slot))
        slot.mkdir(parents=True, exist_ok=True)
        (slot / "weights").write_text(str(number))
        mark_complete(slot, {"step": number})


def upload(instance: Path, s3: Path, dice: random.Random, share: float = 1.0) -> None:
    """So many of the files, by name or in a random order."""
    names = sorted(path.relative_to(instance) for path in instance.rglob("*") if path.is_file())
    if dice.random() < 0.5:
        dice.shuffle(names)
    for name in names[: round(share * len(names))]:
        (s3 / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(instance / name, s3 / name)


def run(instance: Path, s3: Path, dice: random.Random, ranks: int, interruptions: int = 3) -> None:
    """The instance is lost after some steps and some files of the upload that runs then; the last
    one is not lost.
    """
    kept = 0  # the newest checkpoint of the latest whole upload
    for left in range(interruptions, -1, -1):
        clock.ORIGIN += 3.0  # the time until the job has instances again, at the least
        os.environ[LAUNCH_VARIABLE] = str(left)
        shutil.rmtree(instance, ignore_errors=True)
        shutil.copytree(s3, instance)
        steps = session(ranks)
        resumed = next(steps)
        assert kept <= resumed
        lost_after = dice.randint(resumed, STEPS) if left else STEPS
        for step in itertools.islice(steps, lost_after - resumed):
            if dice.random() < 0.3:
                upload(instance, s3, dice)
                kept = step // EVERY * EVERY
        upload(instance, s3, dice, share=dice.random())
        steps.close()
    upload(instance, s3, dice)


def read(s3: Path) -> StepLog:
    return read_step_log(
        {str(path): path.read_text().splitlines() for path in (s3 / LOG).rglob("*.jsonl")}
    )


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_loss_during_an_upload_loses_and_repeats_no_counted_step(
    instance: Path, tmp_path: Path, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", str(ranks))
    counted = {}
    for seed in range(20):
        s3 = tmp_path / f"s3-{seed}"
        s3.mkdir()
        run(instance, s3, random.Random(f"{seed} {ranks}"), ranks)
        kept = [
            number for divided in divide_steps(read(s3).sessions) for number in divided.kept.numbers
        ]
        if kept != list(range(1, STEPS + 1)):
            counted[seed] = kept
    assert counted == {}
