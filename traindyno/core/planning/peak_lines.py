"""The memory of one device at its peak, for every batch: at each moment of a step, the bytes held
are a line in the batch.
"""

from dataclasses import dataclass, replace
from typing import Any

from traindyno.core.documents.plain import id_of, plain_values
from traindyno.core.instances.instance_types import has_gpu
from traindyno.core.run.processes import accumulation_steps, degrees_of
from traindyno.core.run.settings import Settings, has_effect, setting_descriptions
from traindyno.core.run.workload import Workload
from traindyno.core.suite.choices import TRAITS, Compiler, DatasetFormat, Padding, Task

# The batches, in units, whose steps give the lines.
LINE_BATCHES = (2, 3)
# The first batch of a step creates the gradients. All further accumulated batches run while they
# exist.
MOST_PASSES = 2
WITHOUT_EFFECT = tuple(
    name for name, description in setting_descriptions().items() if not description.changes_memory
)
OF_TENSORS = ("task", "model", "sequence_length", "label_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """Bytes at its peak of the device that needs the most.

    Not included: the CUDA context, cuBLAS's workspaces, NCCL's buffers and the allocator's
    fragmentation.
    """

    peak_bytes: int
    parameter_bytes: int
    optimizer_bytes: int

    @property
    def activation_bytes(self) -> int:
        """Activations and temporary tensors: the peak without parameters and optimizer state."""
        return max(0, self.peak_bytes - self.parameter_bytes - self.optimizer_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessPeak:
    """Peak memory of one process by batch.

    ``lines`` have the bytes at a batch of 0 and the bytes per sample; the highest line is the peak.
    """

    parameter_bytes: int
    optimizer_bytes: int
    lines: tuple[tuple[float, float], ...]

    def at(self, batch: int) -> MemoryEstimate:
        return MemoryEstimate(
            peak_bytes=round(max(base + slope * batch for base, slope in self.lines)),
            parameter_bytes=self.parameter_bytes,
            optimizer_bytes=self.optimizer_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakLines:
    """Peak memory of a run by batch.

    ``processes`` are the processes that hold different parts of the model.
    """

    processes: tuple[ProcessPeak, ...]

    def at(self, batch: int) -> MemoryEstimate:
        return max(
            (process.at(batch) for process in self.processes),
            key=lambda estimate: estimate.peak_bytes,
        )

    def largest_batch(self, usable_bytes: int) -> int:
        """The largest batch that fits into so many bytes; 0 if none does."""
        lines = [line for process in self.processes for line in process.lines]
        if any(base > usable_bytes for base, _ in lines):
            return 0
        return min(int((usable_bytes - base) // slope) for base, slope in lines if slope > 0)


def batch_unit(settings: Settings) -> int:
    """A batch per device is a multiple of it."""
    return settings.micro_batches if has_effect("micro_batches", settings) else 1


def settings_of_lines(settings: Settings, processes: int) -> Settings:
    """The same for all settings whose lines are the same on a kind of device and division of the
    processes; the batch is the first of the lines. No estimate has a compiler.
    """
    passes = min(MOST_PASSES, accumulation_steps(settings, processes))
    plain = Settings(instance=settings.instance)
    return replace(
        settings,
        **{name: getattr(plain, name) for name in WITHOUT_EFFECT},
        compiler=Compiler.NONE,
        batch_size_per_device=LINE_BATCHES[0] * batch_unit(settings),
        gradient_accumulation_steps=passes,
        global_batch_size=None,
    )


def division_of(settings: Settings, processes: int) -> dict[str, Any]:
    """What determines the lines of ``settings_of_lines``, as a document.

    Replicas of a whole state need the same, however many there are.
    """
    degrees = degrees_of(settings, processes)
    if not TRAITS[settings.strategy].divides_replicas:
        degrees = replace(degrees, replicate=min(2, degrees.replicate))
    return {
        "settings": plain_values(replace(settings, instance="", instance_count=1)),
        "degrees": plain_values(degrees),
        "has_gpu": has_gpu(settings.instance),
    }


def estimate_key(workload: Workload, **others: Any) -> str:
    """64 hexadecimal digits of everything that determines an estimate: the tensors of the workload
    and the documents of the others.
    """
    document: dict[str, Any] = plain_values(workload)
    content = {
        "workload": {name: document.get(name) for name in OF_TENSORS},
        "is_synthetic": is_synthetic(workload),
        "is_chat": is_chat(workload),
        **others,
    }
    return id_of(content)


def with_vocabulary(workload: Workload) -> Workload:
    """The model gets the vocabulary size of the tokenizer that the job trains, unless its
    configuration sets one; nothing else of the tokenizer matters.
    """
    size = workload.tokenizer.train_vocabulary_size if workload.tokenizer else None
    model = workload.model
    plain = replace(workload, tokenizer=None)
    if size is None or model is None or model.config is None or "vocab_size" in model.config:
        return plain
    return replace(plain, model=replace(model, config={**model.config, "vocab_size": size}))


def is_synthetic(workload: Workload) -> bool:
    return workload.dataset is not None and workload.dataset.format is DatasetFormat.SYNTHETIC


def is_chat(workload: Workload) -> bool:
    return workload.dataset is not None and workload.dataset.format is DatasetFormat.CHAT


def is_uniform(workload: Workload, settings: Settings) -> bool:
    """Whether all sequences have the full length, so that no batch has a mask; conversations are
    packed whole, and the rest of a sequence is padding.
    """
    has_rests = workload.task is Task.SEQUENCE_CLASSIFICATION or is_chat(workload)
    return not has_rests and (settings.packing or is_synthetic(workload))


def has_own_events(workload: Workload, settings: Settings) -> bool:
    """Whether the steps of this batch differ from the steps of the lines: a single sequence that is
    padded to its own length needs no mask.
    """
    is_single = settings.batch_size < LINE_BATCHES[0] * batch_unit(settings)
    is_whole = settings.padding is Padding.LONGEST
    return is_single and is_whole and not is_uniform(workload, settings)
