"""Estimates the peak memory of a job's largest process: two steps of the run's own code, tracked
storage by storage.

Tensors have any shape [...].
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.distributed.pipelining  # it makes a tensor, which is not to be one of a strategy's
from torch.optim import Optimizer

from traindyno.callbacks import StepLogger
from traindyno.core.errors import TraindynoError
from traindyno.core.instances.instance_types import has_gpu
from traindyno.core.planning.memory import MemoryEstimate, MemoryFinding, fits, why_not_estimated
from traindyno.core.suite.choices import TRAITS, DatasetFormat, Task
from traindyno.core.suite.processes import accumulation_steps, stage_ranks, world_size
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.workload import Workload
from training.accelerators import Cpu
from training.compilers import ModelCompiler
from training.data.batch import Batch
from training.data.collate import choose_collate
from training.data.dataset import FIRST_ORDINARY, synthetic_tokens
from training.data.sequences import end_to_end, token_type
from training.memory.fake_world import fake_process_group, fake_tensors
from training.memory.tracker import MemoryTracker, as_on_cuda, storage_bytes
from training.models.blueprint import replaced
from training.models.config_numbers import text_of
from training.models.flops import NOT_COUNTED
from training.models.gradients import number_format
from training.models.model import build_model
from training.models.model_config import model_config
from training.models.optimizer import build_optimizer
from training.process.process_group import Topology
from training.run.train import run_steps
from training.strategies import Setup, TrainingStrategy, build_strategy


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


# The first step creates the optimizer's state. All further steps run while it exists and need the
# same memory.
STEPS = 2
# The first batch of a step creates the gradients. All further accumulated batches run while they
# exist.
MOST_BATCHES = 2
EstimateKey = tuple[Topology, bool, Settings]


def estimate_memory(
    workload: Workload, settings: Settings, *, model_path: str | None
) -> MemoryEstimate:
    """Computes nothing: tensors are fake, and so are the job's other processes.

    Raises WorkloadError if the run would, and RuntimeError in a process that has a process group.
    """

    def estimate(topology: Topology) -> MemoryEstimate:
        with fake_tensors() as mode:
            return measure_steps(
                workload,
                settings,
                topology,
                model_path=model_path,
                placed=lambda batch: {
                    name: mode.from_tensor(tensor) for name, tensor in batch.items()
                },
            )

    return of_the_largest(settings, estimate)


def of_the_largest(
    settings: Settings, of_process: Callable[[Topology], MemoryEstimate]
) -> MemoryEstimate:
    """The estimate of the process that needs the most memory, among those that differ."""
    metas, found = list[Any](), []
    topologies = _planned_topologies(settings)
    for topology in topologies:
        with (
            fake_process_group(topology),
            _known_hidden_states(metas) if len(topologies) > 1 else nullcontext(),
        ):
            found.append(of_process(topology))
    return max(found, key=lambda estimate: estimate.peak_bytes)


def _planned_topologies(settings: Settings) -> list[Topology]:
    """The processes with different parts of the model: those of one replica of a pipeline, else the
    first.
    """
    processes = world_size(settings)
    assert processes is not None
    return [
        Topology(
            rank=rank, world_size=processes, local_world_size=processes // settings.instance_count
        )
        for rank in stage_ranks(settings, processes)
    ]


def estimate_key(settings: Settings) -> EstimateKey:
    """Settings with equal keys have equal estimates: each device holds the same, apart from what
    CUDA keeps.
    """
    shared = replace(settings, instance="", instance_count=1)
    return _planned_topologies(settings)[0], has_gpu(settings.instance), shared


def measure_steps(
    workload: Workload,
    settings: Settings,
    topology: Topology,
    *,
    model_path: str | None,
    placed: Callable[[Batch], Batch] = dict,
) -> MemoryEstimate:
    """Makes the estimate of this process, on the CPU, on real tensors unless a caller has replaced
    them.

    ``placed`` makes a batch of the same kind.
    """
    settings = replace(
        settings,
        strategy=TRAITS[settings.strategy].stand_in or settings.strategy,
        gradient_accumulation_steps=accumulation_steps(settings, topology.world_size),
    )
    workload = _with_vocabulary(workload)
    setup = _setup(workload, settings, topology)
    is_synthetic = (
        workload.dataset is not None and workload.dataset.format is DatasetFormat.SYNTHETIC
    )
    is_uniform = workload.task is not Task.SEQUENCE_CLASSIFICATION and (
        settings.packing or is_synthetic
    )
    batches = _batches(workload, settings, model_path=model_path, is_uniform=is_uniform)
    with as_on_cuda() if has_gpu(settings.instance) else nullcontext(), MemoryTracker() as tracker:
        strategy = build_strategy(setup)
        strategy.place(build_model(workload, settings, None, model_path=model_path))
        optimizer = strategy.build_optimizer(
            lambda parameters: build_optimizer(parameters, settings, 1e-4)
        )
        tracker.see(_parameters(optimizer))
        tracker.reset_peak()
        gradients = _run(setup, strategy, optimizer, [placed(batch) for batch in batches])
        state = [value for values in optimizer.state.values() for value in values.values()]
        return MemoryEstimate(
            peak_bytes=tracker.peak_bytes,
            parameter_bytes=storage_bytes(_parameters(optimizer)),
            gradient_bytes=gradients,
            optimizer_bytes=storage_bytes(
                value for value in state if isinstance(value, torch.Tensor)
            ),
        )


def _run(
    setup: Setup, strategy: TrainingStrategy, optimizer: Optimizer, batches: list[Batch]
) -> int:
    """The bytes of the gradients at the optimizer's step."""
    seen = [0]

    def see_gradients(_optimizer: Optimizer, *_: object) -> None:
        present = (parameter.grad for parameter in _parameters(optimizer))
        seen.append(storage_bytes(gradient for gradient in present if gradient is not None))

    optimizer.register_step_pre_hook(see_gradients)
    run_steps(
        [batches] * STEPS,
        setup=setup,
        strategy=strategy,
        optimizer=optimizer,
        step_log=StepLogger(None),
        should_stop=lambda _: False,
        after_step=lambda: None,
    )
    return max(seen)


def _with_vocabulary(workload: Workload) -> Workload:
    """The model gets the vocabulary size of the tokenizer that the job trains, unless its
    configuration sets one.
    """
    size = workload.tokenizer.train_vocabulary_size if workload.tokenizer else None
    config = workload.model.config if workload.model else None
    if size is None or config is None or "vocab_size" in config or workload.model is None:
        return workload
    return replace(workload, model=replace(workload.model, config={**config, "vocab_size": size}))


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


def _batches(
    workload: Workload, settings: Settings, *, model_path: str | None, is_uniform: bool
) -> list[Batch]:
    """One step's batches of sequences of the full length: the largest that the run may meet."""
    vocabulary_size = text_of(model_config(workload, None, model_path=model_path)).vocab_size
    assert workload.sequence_length is not None
    lengths = np.full(settings.batch_size, workload.sequence_length)
    if not is_uniform:
        lengths[1:2] -= 1  # transformers drops the mask of a batch without padding
    tokens = np.full(lengths.sum(), FIRST_ORDINARY, dtype=token_type(vocabulary_size))
    is_classified = workload.task is Task.SEQUENCE_CLASSIFICATION
    sequences = end_to_end(
        tokens, lengths, np.zeros(len(lengths), dtype=np.int64) if is_classified else None
    )
    collate = choose_collate(
        workload, settings, synthetic_tokens(vocabulary_size), is_uniform=is_uniform
    )
    numbers = np.arange(settings.batch_size)
    count = min(MOST_BATCHES, settings.gradient_accumulation_steps)
    return [collate(sequences, numbers, numbers) for _ in range(count)]


def _parameters(optimizer: Optimizer) -> list[torch.nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


class Findings:
    """The findings of one workload; each configuration is estimated once."""

    def __init__(self, workload: Workload, *, model_path: str | None) -> None:
        self._workload = workload
        self._model_path = model_path
        self._known: dict[EstimateKey, MemoryEstimate | str] = {}

    def find(self, settings: Settings) -> MemoryFinding:
        found = self._estimate(settings)
        if isinstance(found, str):
            return MemoryFinding(why_unknown=found)
        if fits(found, settings.instance):
            return MemoryFinding(estimate=found)
        return MemoryFinding(estimate=found, smaller_batch=self._smaller_batch(settings))

    def _smaller_batch(self, settings: Settings) -> int | None:
        """The first half, quarter, … of the batch that fits."""
        size = settings.batch_size // 2
        while size:
            found = self._estimate(replace(settings, batch_size_per_device=size))
            if not isinstance(found, str) and fits(found, settings.instance):
                return size
            size //= 2
        return None

    def _estimate(self, settings: Settings) -> MemoryEstimate | str:
        """The estimate, or why there is none."""
        why_none = why_not_estimated(self._workload, settings)
        if why_none:
            return why_none
        key = estimate_key(settings)
        if key not in self._known:
            try:
                self._known[key] = estimate_memory(
                    self._workload, settings, model_path=self._model_path
                )
            except (TraindynoError, *NOT_COUNTED) as error:
                # The planner continues without this estimate; the run itself may still show the
                # memory that it needs.
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                self._known[key] = f"the estimate failed: {reason}"
        return self._known[key]
