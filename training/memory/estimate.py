"""Estimates the peak memory of a job's largest process: two steps of the run's own code, tracked
storage by storage.

Tensors have any shape [...].
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import torch
import torch.distributed.pipelining  # it makes a tensor, which is not to be one of a strategy's
from torch.optim import Optimizer

from traindyno.callbacks import StepLogger
from traindyno.core.instances.instance_types import has_gpu
from traindyno.core.planning.peak_lines import (
    LINE_BATCHES,
    MOST_PASSES,
    MemoryEstimate,
    PeakLines,
    ProcessPeak,
    batch_unit,
    is_uniform,
)
from traindyno.core.run.processes import accumulation_steps, stage_ranks, world_size
from traindyno.core.run.settings import Settings, has_effect
from traindyno.core.run.workload import Workload
from traindyno.core.suite.choices import TRAITS, BaseWeights, Padding, Task
from training.accelerators import Cpu
from training.compilers import ModelCompiler
from training.data.batch import Batch
from training.data.collate import choose_collate
from training.data.dataset import FIRST_ORDINARY, synthetic_tokens
from training.data.sequences import end_to_end, token_type
from training.memory.fake_world import fake_process_group, fake_tensors
from training.memory.lines import Levels, lines_through
from training.memory.tracker import MemoryTracker, as_on_cuda, storage_bytes
from training.models.blueprint import replaced
from training.models.config_numbers import text_of
from training.models.model import build_model
from training.models.model_config import model_config
from training.models.number_format import number_format
from training.models.optimizer import build_optimizer
from training.process.process_group import Topology
from training.run.train import run_steps
from training.strategies import Setup, build_strategy

# The first step creates the optimizer's state. All further steps run while it exists and need the
# same memory.
STEPS = 2


@contextmanager
def _known_hidden_states(metas: list[Any]) -> Iterator[None]:
    """Stages that run inside send no shape, and receive the known one: ``metas`` are shape and type
    of the tensors between stages, equal for all stages, and for the gradients. The first stage sets
    them, so the process that holds it must run first.
    """
    # Private names, which change between versions of PyTorch: only an estimate of a pipeline may
    # need them.
    from torch.distributed.pipelining import PipelineStage  # noqa: PLC0415
    from torch.distributed.pipelining._utils import _StageBackwardMeta, _StageForwardMeta  # noqa: PLC0415
    from torch.distributed.tensor.debug import _clear_sharding_prop_cache  # noqa: PLC0415

    # PyTorch keeps how a mesh's tensors are divided, with the groups of the stage that ran before
    # on an equal mesh.
    _clear_sharding_prop_cache()  # type: ignore[no-untyped-call]

    def send(_stage: Any, meta: Any, _dst_stage: int) -> None:
        if isinstance(meta, _StageForwardMeta):
            metas[:] = meta.forward_metas

    def receive(stage: Any, src_stage: int) -> Any:
        if src_stage < stage.stage_index:
            return _StageForwardMeta(forward_metas=tuple(metas))
        return _StageBackwardMeta(
            backward_metas=tuple(replace(meta, requires_grad=False) for meta in metas)
        )

    with (
        replaced(PipelineStage, "_send_meta", send),
        replaced(PipelineStage, "_recv_meta", receive),
    ):
        yield


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedSteps:
    """The memory of a process in some steps."""

    estimate: MemoryEstimate
    #: By batch [E], the bytes that the process held after each event of its last step.
    levels: Mapping[int, Levels]


def estimate_memory(workload: Workload, settings: Settings) -> MemoryEstimate:
    """Computes nothing: tensors are fake, and so are the job's other processes.

    Raises WorkloadError if the run would, and RuntimeError in a process that has a process group.
    """
    watched = _watch_fake_steps(workload, settings, [settings.batch_size] * STEPS)
    return max((run.estimate for run in watched), key=lambda estimate: estimate.peak_bytes)


def estimate_lines(workload: Workload, settings: Settings) -> PeakLines | None:
    """The peak memory as lines over the batch; None where other batches take other events.

    Raises as ``estimate_memory`` does.
    """
    low, high = (number * batch_unit(settings) for number in LINE_BATCHES)
    # A pipeline keeps the shapes of its first step.
    is_cut = has_effect("micro_batches", settings)
    runs = [[low] * STEPS, [high] * STEPS] if is_cut else [[low] * STEPS + [high]]
    watched = [_watch_fake_steps(workload, settings, batches) for batches in runs]
    processes = []
    for of_process in zip(*watched, strict=True):
        lines = lines_through(dict(chain(*(run.levels.items() for run in of_process))))
        if lines is None:
            return None
        held = of_process[0].estimate
        processes.append(
            ProcessPeak(
                parameter_bytes=held.parameter_bytes,
                optimizer_bytes=held.optimizer_bytes,
                lines=lines,
            )
        )
    return PeakLines(processes=tuple(processes))


def _watch_fake_steps(
    workload: Workload, settings: Settings, batches: Sequence[int]
) -> list[WatchedSteps]:
    def watch(topology: Topology) -> WatchedSteps:
        of_4_bits = settings.base_weights is BaseWeights.NF4
        with fake_tensors(of_4_bits=of_4_bits) as mode:
            return watch_steps(
                workload,
                settings,
                topology,
                batches,
                placed=lambda batch: {
                    name: mode.from_tensor(tensor) for name, tensor in batch.items()
                },
            )

    return of_each_process(settings, watch)


def of_each_process(
    settings: Settings, watch: Callable[[Topology], WatchedSteps]
) -> list[WatchedSteps]:
    """Watches the processes that have different parts of the model.

    These are the processes of one replica of a pipeline; without a pipeline, the first process.
    """
    processes = world_size(settings)
    assert processes is not None
    ranks = stage_ranks(settings, processes)
    metas = list[Any]()
    watched = []
    for rank in ranks:
        topology = Topology(
            rank=rank, world_size=processes, local_world_size=processes // settings.instance_count
        )
        with (
            fake_process_group(topology),
            _known_hidden_states(metas) if len(ranks) > 1 else nullcontext(),
        ):
            watched.append(watch(topology))
    return watched


def watch_steps(
    workload: Workload,
    settings: Settings,
    topology: Topology,
    batches: Sequence[int],
    *,
    placed: Callable[[Batch], Batch] = dict,
) -> WatchedSteps:
    """Watches steps of this process with these ``batches``, on the CPU, on real tensors unless a
    caller has replaced them.

    ``placed`` makes a batch of the same kind.
    """
    settings = replace(
        settings,
        batch_size_per_device=batches[0],
        strategy=TRAITS[settings.strategy].stand_in or settings.strategy,
        gradient_accumulation_steps=accumulation_steps(settings, topology.world_size),
    )
    setup = _setup(workload, settings, topology)
    collated = [_batches(workload, settings, batch) for batch in batches]
    steps = ([placed(part) for part in collated.pop(0)] for _ in batches)
    with (
        as_on_cuda() if has_gpu(settings.instance) else nullcontext(),
        _without_collections(),
        MemoryTracker() as tracker,
    ):
        strategy = build_strategy(setup)
        strategy.place(build_model(workload, settings, None, model_path=None))
        gc.collect(0)
        optimizer = strategy.build_optimizer(
            lambda parameters: build_optimizer(parameters, settings, 1e-4)
        )
        tracker.see(_parameters(optimizer))
        tracker.take_levels()
        levels = list[Levels]()
        run_steps(
            steps,
            setup=setup,
            strategy=strategy,
            optimizer=optimizer,
            step_log=StepLogger(None),
            should_stop=lambda _: False,
            after_step=lambda: levels.append(np.array(tracker.take_levels())),
        )
        state = [value for values in optimizer.state.values() for value in values.values()]
        estimate = MemoryEstimate(
            peak_bytes=int(max(map(np.max, levels))),
            parameter_bytes=storage_bytes(_parameters(optimizer)),
            optimizer_bytes=storage_bytes(
                value for value in state if isinstance(value, torch.Tensor)
            ),
        )
        return WatchedSteps(estimate=estimate, levels=dict(zip(batches, levels, strict=True)))


@contextmanager
def _without_collections() -> Iterator[None]:
    """Objects in cycles would free their storages whenever Python looks for them, which is another
    event at each batch.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _setup(workload: Workload, settings: Settings, topology: Topology) -> Setup:
    accelerator = Cpu()
    return Setup(
        settings=settings,
        task=workload.task,
        topology=topology,
        accelerator=accelerator,
        compiler=ModelCompiler(),
        number_format=number_format(settings.precision, accelerator.device),
    )


def _batches(workload: Workload, settings: Settings, batch: int) -> list[Batch]:
    """The batches of a step, of sequences of the full length, which are the largest of the run."""
    vocabulary_size = text_of(model_config(workload, None, model_path=None)).vocab_size
    assert workload.sequence_length is not None
    lengths = np.full(batch, workload.sequence_length)
    has_mask = not is_uniform(workload, settings)
    if has_mask:  # transformers drops the mask of a batch without padding
        lengths[1 if settings.padding is Padding.LONGEST else 0 :] -= 1
    tokens = np.full(lengths.sum(), FIRST_ORDINARY, dtype=token_type(vocabulary_size))
    is_classified = workload.task is Task.SEQUENCE_CLASSIFICATION
    sequences = end_to_end(
        tokens, lengths, np.zeros(len(lengths), dtype=np.int64) if is_classified else None
    )
    collate = choose_collate(
        workload, settings, synthetic_tokens(vocabulary_size), is_uniform=not has_mask
    )
    numbers = np.arange(batch)
    count = min(MOST_PASSES, settings.gradient_accumulation_steps)
    return [collate(sequences, numbers, numbers) for _ in range(count)]


def _parameters(optimizer: Optimizer) -> list[torch.nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
