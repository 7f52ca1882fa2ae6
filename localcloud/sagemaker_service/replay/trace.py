"""Traces: the times of a simulated job's phases, from a file or nominal."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import cattrs

from localcloud.sagemaker_service.jobs.job import TrainingJob
from localcloud.sagemaker_service.jobs.job_work import JobWork, read_work
from traindyno.core.costs.quantity_text import number_text, share_text
from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.suite.job_time import STOP_SECONDS

CONVERTER = cattrs.Converter(forbid_extra_keys=True)
NOMINAL_PARAMETERS = 124_000_000
NOMINAL_FLOPS_PER_DEVICE = 1e12
NOMINAL_UTILISATION = 0.4
NOMINAL_STEP_OVERHEAD_SECONDS = 0.02


class TraceInvalid(Exception):
    """A trace file can't be read; the message has the file, the place and the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """How long each phase of a simulated job takes, and what its step log says."""

    name: str
    #: Values that a job must have, of ``instance_type``, ``instance_count``, its settings and its
    #: own hyperparameters. Of the traces that match, the one with the most values is used.
    match: Mapping[str, Any] = field(default_factory=dict)
    start_seconds: float = 150.0
    download_seconds: float = 45.0
    load_seconds: float = 20.0
    compile_seconds: float = 0.0
    warmup_steps: int = 3
    warmup_factor: float = 3.0
    step_seconds: float | None = None
    step_relative_deviation: float = 0.01
    #: Step times that are repeated in this order, instead of ``step_seconds`` with its random
    #: deviation.
    recorded_step_seconds: tuple[float, ...] = ()
    steps: int | None = None
    #: The samples of one process; None divides the job's global batch among its processes.
    samples_per_step: int | None = None
    #: The result of an evaluation at the end, as a share; None for no evaluation.
    accuracy: float | None = None
    #: From SIGTERM to the script's end. The toolkit does not pass SIGTERM on, so SageMaker ends the
    #: script by SIGKILL.
    stop_seconds: float = float(STOP_SECONDS)
    upload_seconds: float = 15.0
    #: Seconds of each checkpoint and evaluation that the job's measurement asks for. A phase
    #: without any time would not be in a log.
    checkpoint_seconds: float = 0.01
    evaluation_seconds: float = 0.01
    #: The FLOPs of a sample in training, forward and backward. A job whose steps would exceed its
    #: devices' peak fails.
    flops_per_sample: float | None = None
    flops_source: str | None = None


def read_traces(folder: Path) -> tuple[Trace, ...]:
    return tuple(_read_trace(path) for path in sorted(folder.glob("*.json")))


def _read_trace(path: Path) -> Trace:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        trace = CONVERTER.structure({"name": path.stem, **document}, Trace)
    except (ValueError, TypeError) as error:
        raise TraceInvalid(f"{path}: {error}") from error
    except cattrs.BaseValidationError as error:
        raise TraceInvalid("; ".join(cattrs.transform_error(error, path=str(path)))) from error
    if trace.flops_per_sample is not None and (
        trace.flops_per_sample <= 0 or not trace.flops_source
    ):
        raise TraceInvalid(
            f"{path}: flops_per_sample is {trace.flops_per_sample:g} with "
            f"{trace.flops_source or 'no source'}: expected a number above 0, and flops_source, "
            "which says where it is from"
        )
    return trace


def choose_trace(job: TrainingJob, traces: Iterable[Trace]) -> Trace:
    work = read_work(job)
    matching = [
        trace
        for trace in traces
        if trace.match.items()
        <= {name: work.values[name] for name in trace.match if name in work.values}.items()
    ]
    return max(matching, key=lambda trace: len(trace.match), default=nominal_trace(job, work))


def nominal_trace(job: TrainingJob, work: JobWork) -> Trace:
    """A trace with nominal times: it tests a suite and does not predict its answer, because the
    formula ignores the strategy and the compiler.
    """
    instance = find_instance_type(job.instance_type)
    peak = (instance.device.half_flops if instance else None) or NOMINAL_FLOPS_PER_DEVICE
    flops = 6 * NOMINAL_PARAMETERS * work.sequence_length * work.global_batch_size / work.world_size
    step_seconds = NOMINAL_STEP_OVERHEAD_SECONDS + flops / (NOMINAL_UTILISATION * peak)
    return Trace(name="nominal", step_seconds=step_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpliedRate:
    """The rate that a trace asks of the instance."""

    #: None if it is unknown.
    share_of_peak: float | None
    #: The calculation, or what it lacks.
    text: str

    @property
    def is_impossible(self) -> bool:
        return self.share_of_peak is not None and self.share_of_peak > 1


def implied_rate(trace: Trace, job: TrainingJob, work: JobWork) -> ImpliedRate:
    """The rate of a steady step, and its share of the dense 16-bit peak of the devices that have a
    process.
    """
    instance = find_instance_type(job.instance_type)
    peak = instance.device.half_flops if instance else None
    if instance is None or peak is None:
        return _unknown(f"the peak of {job.instance_type} is not in the lab's table")
    if trace.flops_per_sample is None:
        return _unknown(f"trace {trace.name} states no flops_per_sample")
    seconds = (
        median(trace.recorded_step_seconds) if trace.recorded_step_seconds else trace.step_seconds
    )
    if not seconds:
        return _unknown(f"trace {trace.name} has no step time")
    samples = (
        trace.samples_per_step * work.world_size
        if trace.samples_per_step
        else work.global_batch_size
    )
    devices = min(work.world_size, instance.devices_per_instance * job.instance_count)
    rate = samples * trace.flops_per_sample / seconds
    share = rate / (peak * devices)
    text = (
        f"trace {trace.name}: {samples:,} samples x {trace.flops_per_sample:.4g} FLOPs "
        f"({trace.flops_source}) in {number_text(seconds, digits=4)} s are {rate / 1e12:,.1f} "
        f"TFLOPS, {share_text(share)} of the peak of {devices} devices x {peak / 1e12:,.1f} TFLOPS "
        f"({job.instance_count} x {job.instance_type})"
    )
    return ImpliedRate(share_of_peak=share, text=text)


def _unknown(reason: str) -> ImpliedRate:
    return ImpliedRate(share_of_peak=None, text=f"unknown: {reason}")
