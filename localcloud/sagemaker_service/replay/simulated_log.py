"""Makes the step log of a simulated job. The first line of every process marks it as simulated."""

import itertools
import json
import math
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from localcloud.sagemaker_service.jobs.job import TrainingJob, Transition
from localcloud.sagemaker_service.jobs.job_view import is_uncompressed, output_uri
from localcloud.sagemaker_service.jobs.job_work import JobWork, read_work
from localcloud.sagemaker_service.replay.trace import Trace, implied_rate
from localcloud.sagemaker_service.storage.s3_transfer import S3Transfer, split_uri
from traindyno.core.jobs.journal_format import DOCUMENT_CHANNEL, ENDED, JOURNAL
from traindyno.core.measurement.stop_rule import steps_that_last
from traindyno.core.run.tokens import TOKENS_MANIFEST, tokens_manifest
from traindyno.core.step_log.line import (
    CHECKPOINT,
    DIRECTORY_VARIABLE,
    end_line,
    environment_line,
    evaluation_line,
    phase_line,
    step_line,
)

EVALUATE = "evaluate"  # the phase
WAIT_FRACTION = 0.02
LOSS_AT_START = 10.0
LOSS_AT_END = 5.0
DEFAULT_CHECKPOINTS = "/opt/ml/checkpoints"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The logs of one uninterrupted time of training.

    ``next_step`` is the first step that it did not finish.
    """

    files: Mapping[str, str]
    next_step: int


def training_seconds(
    trace: Trace, job: TrainingJob, work: JobWork, *, first_step: int, last_step: int
) -> float:
    """Seconds from the start of the processes to the start of ``last_step``."""
    steps = itertools.islice(step_seconds(trace, job.name), first_step, last_step)
    between = (_phases_before(step, trace, work) for step in range(first_step + 1, last_step))
    return (
        trace.load_seconds
        + trace.compile_seconds
        + sum(steps)
        + sum(sum(phases.values()) for phases in between)
    )


def _phases_before(step: int, trace: Trace, work: JobWork) -> Mapping[str, float]:
    """The evaluation and the checkpoint after the steps before this one, with their seconds."""
    schedule = (
        (EVALUATE, work.evaluate_every_steps, trace.evaluation_seconds),
        (CHECKPOINT, work.checkpoint_every_steps, trace.checkpoint_seconds),
    )
    return {name: seconds for name, every, seconds in schedule if every and step % every == 0}


def total_steps(trace: Trace, work: JobWork) -> int:
    if trace.steps is not None or work.least_seconds is None:
        return work.steps if trace.steps is None else trace.steps
    typical = trace.recorded_step_seconds or [trace.step_seconds or math.inf]
    own_steps = steps_that_last(work.least_seconds, typical)
    return int(min(max(work.steps, own_steps), work.all_steps))


def step_seconds(trace: Trace, job_name: str) -> Iterator[float]:
    """An endless series of step times, which is the same for the same trace and job."""
    dice = random.Random(f"{trace.name}:{job_name}")
    recorded = itertools.cycle(trace.recorded_step_seconds) if trace.recorded_step_seconds else None
    for number in itertools.count():
        if recorded is not None:
            yield next(recorded)
            continue
        typical = trace.step_seconds or 0.0
        noise = max(dice.gauss(1.0, trace.step_relative_deviation), 0.1)
        yield typical * noise * (trace.warmup_factor if number < trace.warmup_steps else 1.0)


def write_stretch(
    job: TrainingJob, trace: Trace, work: JobWork, *, start_ms: int, until_ms: int, first_step: int
) -> Stretch:
    """Makes the logs of all processes.

    Steps that end after ``until_ms`` are missing, and then also the last line.
    """
    samples = [trace.samples_per_step or work.samples_of(rank) for rank in range(work.world_size)]
    stretch = {
        count: list(
            _lines(
                job,
                trace,
                work,
                samples=count,
                start=start_ms / 1000,
                until=until_ms / 1000,
                first_step=first_step,
            )
        )
        for count in set(samples)
    }
    bodies = {
        count: "".join(json.dumps(line) + "\n" for line in lines)
        for count, lines in stretch.items()
    }
    done = sum(line["kind"] == "step" for line in stretch[samples[0]])
    hosts = job.hosts
    files = {
        f"rank-{rank:05d}.{start_ms}.jsonl": json.dumps(
            environment_line(
                start_ms / 1000,
                rank,
                work.world_size,
                hosts[rank // work.processes_per_host],
                simulated_facts(job, trace, work),
            )
        )
        + "\n"
        + bodies[samples[rank]]
        for rank in range(work.world_size)
    }
    return Stretch(files=files, next_step=first_step + done)


def _lines(
    job: TrainingJob,
    trace: Trace,
    work: JobWork,
    *,
    samples: int,
    start: float,
    until: float,
    first_step: int,
) -> Iterator[dict[str, Any]]:
    now = start
    for name, seconds in (("load", trace.load_seconds), ("compile", trace.compile_seconds)):
        if seconds:
            if now + seconds > until:
                return
            yield phase_line(name, now, now + seconds)
            now += seconds
    last_step = total_steps(trace, work)
    series = itertools.islice(step_seconds(trace, job.name), first_step, last_step)
    for step, seconds in enumerate(series, start=first_step):
        for name, taken in _phases_before(step, trace, work).items() if step > first_step else ():
            if now + taken > until + 0.001:
                return
            yield phase_line(name, now, now + taken)
            now += taken
        # The planned end is rounded to milliseconds, so a step may end up to a millisecond after
        # it.
        if now + seconds > until + 0.001:
            return
        yield step_line(
            step=step,
            begin=now,
            end=now + seconds,
            wait_seconds=seconds * WAIT_FRACTION,
            samples=samples,
            tokens=samples * work.sequence_length,
            loss=LOSS_AT_END
            + (LOSS_AT_START - LOSS_AT_END) * math.exp(-3 * ((step + 1) / last_step)),
            peak_memory_bytes=None,
        )
        now += seconds
    if trace.accuracy is not None:
        yield evaluation_line(now, last_step, {"accuracy": trace.accuracy})
    yield end_line(now, last_step)


def simulated_facts(job: TrainingJob, trace: Trace, work: JobWork) -> dict[str, Any]:
    return {
        "is_simulated": True,
        "simulated_by": "the local SageMaker service's replay engine",
        "trace": trace.name,
        "device": job.instance_type,
        "strategy": work.values.get("strategy"),
        "simulated_share_of_peak": implied_rate(trace, job, work).text,
    }


class SimulatedFiles:
    def __init__(self, transfer: S3Transfer) -> None:
        self._transfer = transfer

    def write(
        self, job: TrainingJob, trace: Trace, work: JobWork, training: Transition, *, until_ms: int
    ) -> int:
        """Writes the log of the training until ``until_ms``.

        Returns how many steps the job has done.
        """
        stretch = write_stretch(
            job,
            trace,
            work,
            start_ms=training.start_ms,
            until_ms=until_ms,
            first_step=job.simulated_steps,
        )
        place = _step_log_uri(job)
        if place is not None:
            for name, text in stretch.files.items():
                self._transfer.write(f"{place}/{name}", text.encode())
        return stretch.next_step

    def read_document(self, job: TrainingJob) -> dict[str, Any]:
        """The document of a shared job, which says which runs it carries."""
        channels = {
            channel["ChannelName"]: channel["DataSource"]
            for channel in job.request.get("InputDataConfig", ())
        }
        document: dict[str, Any] = json.loads(
            self._transfer.read(channels[DOCUMENT_CHANNEL]["S3DataSource"]["S3Uri"])
        )
        return document

    def read_records(self, job: TrainingJob) -> dict[str, bytes]:
        """The journals and ends of all attempts of the shared job.

        Their keys are the names below the job's checkpoint prefix.
        """
        root = f"{_checkpoints_uri(job)}/"
        keys = [
            key.removeprefix(split_uri(root)[1]) for key, _ in self._transfer.list_objects(root)
        ]
        wanted = [key for key in keys if key.startswith(f"{JOURNAL}/") or f"/{ENDED}/" in key]
        return {key: self._transfer.read(f"{root}{key}") for key in wanted}

    def write_shared(self, job: TrainingJob, files: Iterable[tuple[str, bytes]]) -> None:
        for name, contents in files:
            self._transfer.write(f"{_checkpoints_uri(job)}/{name}", contents)

    def write_tokens(self, job: TrainingJob) -> None:
        """Writes the output of a completed preparation: a manifest without tokens, marked as
        simulated.
        """
        preparation = read_work(job).values.get("preparation")
        if not isinstance(preparation, Mapping) or not is_uncompressed(job):
            return
        manifest = {**tokens_manifest(str(preparation.get("key")), {}), "is_simulated": True}
        self._transfer.write(
            f"{output_uri(job)}/output/model/{TOKENS_MANIFEST}", json.dumps(manifest).encode()
        )


def _checkpoints_uri(job: TrainingJob) -> str:
    uri: str = job.request["CheckpointConfig"]["S3Uri"]
    return uri.rstrip("/")


def _step_log_uri(job: TrainingJob) -> str | None:
    """The S3 prefix of the job's step log; None if it is not in a folder of checkpoints that the
    job keeps.
    """
    checkpoints = job.request.get("CheckpointConfig")
    folder = job.request.get("Environment", {}).get(DIRECTORY_VARIABLE)
    if checkpoints is None or folder is None:
        return None
    local_path = checkpoints.get("LocalPath", DEFAULT_CHECKPOINTS)
    if not folder.startswith(f"{local_path}/"):
        return None
    return f"{checkpoints['S3Uri'].rstrip('/')}/{folder.removeprefix(f'{local_path}/')}/{job.name}"
