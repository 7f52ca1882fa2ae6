"""Full-size models on the first GPU of this machine, ours and Hugging Face's Trainer in turn."""

from bench.equal_work import LOSS_DIFFERENCE_ON_A_GPU, equal_work_figures
from bench.figures import Figure, Section, Spread, spread
from bench.gpu_cases import GPT_J_LEAST_BYTES, full_size_cases, gpt_j_case
from bench.gpu_memory import memory_figures
from bench.groups import TITLES, command
from bench.kept import Kept
from bench.race_case import RaceCase, RaceResult
from bench.race_files import run_race
from traindyno.core.instances.instance_types import instance_types

NO_GPU = "This machine has no GPU."
NOTE = (
    "bf16 by autocast over weights in single precision, fused AdamW, gradients clipped; the same "
    "batches for both, without padding. MFU is tokens per second × FLOPs per token (3 × the "
    "forward pass's, counted on the model) ÷ the device's dense bf16 peak. Memory is the "
    "allocator's peak. The losses of the first ten steps are compared in single precision; the "
    "benchmark fails if they differ."
)

MEMORY_NOTE = (
    "Memory of a model: the estimate of `plan`, and what CUDA's allocator had allocated and "
    "reserved in six steps; unknown where the steps don't fit."
)


def measure(*, is_quick: bool, kept: Kept) -> Section:
    import torch  # noqa: PLC0415  (the rest of this module serves without it)

    if not torch.cuda.is_available():
        return Section(title=TITLES["gpu"], command=command("gpu"), why_unmeasured=NO_GPU)
    device = torch.cuda.get_device_name()
    peak = peak_flops(device)
    figures = [
        figure
        for case in full_size_cases(is_quick=is_quick)
        for figure in race_figures(case, run_race(case, kept), peak_flops_per_second=peak)
    ]
    notes = [f"Device: {device}, PyTorch {torch.__version__}. {NOTE}"]
    if torch.cuda.get_device_properties(0).total_memory > GPT_J_LEAST_BYTES:
        case = gpt_j_case(is_quick=is_quick)
        figures += race_figures(case, run_race(case, kept), peak_flops_per_second=peak)
        notes.append("GPT-J recomputes its activations; Trainer was not run on it.")
    else:
        notes.append(
            f"GPT-J 6B needs more than {GPT_J_LEAST_BYTES / 2**30:.0f} GiB of device memory to be "
            "trained."
        )
    figures += [] if is_quick else memory_figures()
    notes.append(MEMORY_NOTE)
    return Section(
        title=TITLES["gpu"], command=command("gpu"), figures=tuple(figures), notes=tuple(notes)
    )


def race_figures(
    case: RaceCase, result: RaceResult, *, peak_flops_per_second: float | None
) -> list[Figure]:
    rate = spread(list(result.our_tokens_per_second))
    figures = [
        Figure(name=f"{case.name}: ours", value=rate, unit="tokens/s"),
        Figure(
            name=f"{case.name}: our step", value=_milliseconds(result.our_step_seconds), unit="ms"
        ),
        Figure(
            name=f"{case.name}: our MFU",
            value=mfu_percent(rate, result, peak_flops_per_second),
            unit="%",
        ),
        Figure(
            name=f"{case.name}: our peak memory",
            value=_gib(result.our_peak_memory_bytes),
            unit="GiB",
        ),
    ]
    if result.their_tokens_per_second:
        pairs = zip(result.our_tokens_per_second, result.their_tokens_per_second, strict=True)
        theirs = spread(list(result.their_tokens_per_second))
        figures += [
            Figure(name=f"{case.name}: Trainer", value=theirs, unit="tokens/s"),
            Figure(
                name=f"{case.name}: Trainer's peak memory",
                value=_gib(result.their_peak_memory_bytes),
                unit="GiB",
            ),
            Figure(
                name=f"{case.name}: ours ÷ Trainer",
                value=spread([our / their for our, their in pairs]),
                unit="×",
            ),
        ]
        figures += equal_work_figures(case, result, loss_difference=LOSS_DIFFERENCE_ON_A_GPU)
    return figures


def mfu_percent(
    rate: Spread, result: RaceResult, peak_flops_per_second: float | None
) -> float | None:
    if peak_flops_per_second is None:
        return None
    return rate.median * result.flops_per_token / peak_flops_per_second * 100


def peak_flops(device_name: str) -> float | None:
    """Dense, in 16 bits; None if the table has no such device.

    A variant (PCIe, NVL) has a different peak.
    """
    for instance in instance_types().values():
        if instance.accelerator is not None and is_named(device_name, instance.accelerator):
            return instance.device.half_flops
    return None


def is_named(device_name: str, accelerator: str) -> bool:
    """The name of an accelerator can end with its memory: ``NVIDIA H100 80GB HBM3``."""
    rest = device_name.removeprefix(accelerator)
    return rest != device_name and (not rest or (rest[0] == " " and rest[1:2].isdigit()))


def _milliseconds(seconds: tuple[float, ...]) -> Spread:
    return spread([duration * 1e3 for duration in seconds])


def _gib(count: int | None) -> float | None:
    return None if count is None else count / 2**30
