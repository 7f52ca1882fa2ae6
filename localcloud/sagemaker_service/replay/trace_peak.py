"""Computes the share of the devices' peak that a trace's step times imply, to find impossible traces."""

from dataclasses import dataclass
from statistics import median

from localcloud.sagemaker_service.jobs.job import TrainingJob
from localcloud.sagemaker_service.jobs.job_work import JobWork
from localcloud.sagemaker_service.replay.trace import Trace
from traindyno.core.costs.quantity_text import number_text, share_text
from traindyno.core.instances.instance_types import find_instance_type


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpliedRate:
    """``share_of_peak`` is None if it is unknown. ``text`` has the calculation, or what it lacks."""

    share_of_peak: float | None
    text: str

    @property
    def is_impossible(self) -> bool:
        return self.share_of_peak is not None and self.share_of_peak > 1


def implied_rate(trace: Trace, job: TrainingJob, work: JobWork) -> ImpliedRate:
    """The rate of a steady step, and its share of the dense 16-bit peak of the devices that have a process."""
    instance = find_instance_type(job.instance_type)
    peak = instance.peak_dense_bf16_flops_per_device if instance else None
    if instance is None or peak is None or instance.devices_per_instance is None:
        return _unknown(f"the peak of {job.instance_type} is not in the lab's table")
    if trace.flops_per_sample is None:
        return _unknown(f"trace {trace.name} states no flops_per_sample")
    seconds = _typical_step_seconds(trace)
    if not seconds:
        return _unknown(f"trace {trace.name} has no step time")
    samples = trace.samples_per_step * work.world_size if trace.samples_per_step else work.global_batch_size
    devices = min(work.world_size, instance.devices_per_instance * job.instance_count)
    rate = samples * trace.flops_per_sample / seconds
    share = rate / (peak * devices)
    text = (
        f"trace {trace.name}: {samples:,} samples x {trace.flops_per_sample:.4g} FLOPs ({trace.flops_source}) in"
        f" {number_text(seconds, digits=4)} s are {rate / 1e12:,.1f} TFLOPS, {share_text(share)} of the peak of"
        f" {devices} devices x {peak / 1e12:,.1f} TFLOPS ({job.instance_count} x {job.instance_type})"
    )
    return ImpliedRate(share_of_peak=share, text=text)


def _unknown(reason: str) -> ImpliedRate:
    return ImpliedRate(share_of_peak=None, text=f"unknown: {reason}")


def _typical_step_seconds(trace: Trace) -> float | None:
    return median(trace.recorded_step_seconds) if trace.recorded_step_seconds else trace.step_seconds
