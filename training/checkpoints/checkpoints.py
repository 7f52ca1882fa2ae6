"""Writes a run's checkpoints while it trains, and resumes from the newest one.

Tensors have any shape [...].
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed import ProcessGroup
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from traindyno.callbacks import StepLogger
from traindyno.callbacks.checkpoints import LogSizes, measure_log
from traindyno.callbacks.clock import now
from traindyno.core.run.settings import Settings
from traindyno.core.step_log.line import CHECKPOINT_WRITE, IN_BACKGROUND, RESTORE
from training.checkpoints.slots import IDENTITY, SCALER, STEP, Found, Slots, identity_of
from training.checkpoints.stop_request import StopRequest
from training.errors import RunStopped
from training.models.tensor_file import byte_count
from training.process.run_settings import RunSettings
from training.strategies import Setup, TrainingStrategy

MODEL = "model"
OPTIMIZER = "optimizer"
# Tensors of other devices (PyTorch/XLA's) are copied to the host to be written, and back.
WRITTEN_FROM = ("cpu", "cuda")
ON_HOST = StagingOptions(
    use_pinned_memory=False,
    use_shared_memory=False,
    use_async_staging=False,
    use_non_blocking_copy=False,
)


def kept_tensors(strategy: TrainingStrategy, settings: Settings) -> dict[str, torch.Tensor]:
    """Returns the tensors [...] that a checkpoint has; beside an adapter, the base is in its own
    files.
    """
    named = strategy.named_tensors()
    if settings.adapter is None:
        return named
    return {name: tensor for name, tensor in named.items() if tensor.requires_grad}


def state_to_write(
    named: Mapping[str, torch.Tensor], optimizer: Optimizer
) -> dict[str, torch.Tensor]:
    """Returns the tensors themselves, not copies: the next step changes them."""
    names = {id(tensor): name for name, tensor in named.items()}
    state = {f"{MODEL}.{name}": tensor.detach() for name, tensor in named.items()}
    for parameter, values in optimizer.state.items():
        for key, value in values.items():
            if isinstance(value, torch.Tensor):
                state[f"{OPTIMIZER}.{names[id(parameter)]}.{key}"] = value.detach()
    return {
        name: tensor if tensor.device.type in WRITTEN_FROM else tensor.cpu()
        for name, tensor in state.items()
    }


def state_to_read(
    named: Mapping[str, torch.Tensor],
    updates: Callable[[nn.Parameter], bool],
    optimizer: Optimizer,
    metadata: Metadata,
) -> dict[str, torch.Tensor]:
    """Returns tensors for all that the checkpoint contains for this process; the optimizer's are
    allocated here.
    """
    names = {id(tensor): name for name, tensor in named.items()}
    state = {f"{MODEL}.{name}": tensor.detach() for name, tensor in named.items()}
    saved = _optimizer_entries(metadata)
    for group in optimizer.param_groups:
        for parameter in filter(updates, group["params"]):
            stored_by_key = saved.get(names[id(parameter)], {})
            values = {key: _like(parameter, stored, group) for key, stored in stored_by_key.items()}
            if values:
                optimizer.state[parameter] = values
            state |= {
                f"{OPTIMIZER}.{names[id(parameter)]}.{key}": value for key, value in values.items()
            }
    return state


def _optimizer_entries(metadata: Metadata) -> dict[str, dict[str, TensorStorageMetadata]]:
    """The saved entries by the parameter's name, then by the optimizer's own."""
    by_parameter: dict[str, dict[str, TensorStorageMetadata]] = {}
    for name, stored in metadata.state_dict_metadata.items():
        kind, _, rest = name.partition(".")
        if kind == OPTIMIZER and isinstance(stored, TensorStorageMetadata):
            parameter, _, key = rest.rpartition(".")
            by_parameter.setdefault(parameter, {})[key] = stored
    return by_parameter


def _like(
    parameter: nn.Parameter, stored: TensorStorageMetadata, group: Mapping[str, Any]
) -> torch.Tensor:
    """Makes a tensor that is sharded like the parameter, or a single number.

    The optimizer's step count is such a number.
    """
    dtype = stored.properties.dtype
    if stored.size == parameter.shape and parameter.ndim:
        return torch.zeros_like(parameter, dtype=dtype, requires_grad=False)
    device = parameter.device if group.get("fused") else torch.device("cpu")
    return torch.zeros(stored.size, dtype=dtype, device=device)


class Checkpoints:
    """Tensors are copied between two steps and written by a thread while training continues.

    The thread uses a separate process group on the CPU, so that its messages do not mix with those
    of training. Without ``checkpoint_every_steps``, one is written on SIGTERM only.
    """

    def __init__(
        self,
        folder: Path,
        *,
        run: RunSettings,
        setup: Setup,
        strategy: TrainingStrategy,
        stop: StopRequest,
        step_log: StepLogger,
        base: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Keeps checkpoints of a run in a folder.

        Args:
            folder: The folder of the job's checkpoints.
            run: The settings of the run.
            setup: Its device, its processes and its number format.
            strategy: The strategy, which has the model.
            stop: What a signal asked of the run.
            step_log: The log, in which checkpoints are phases.
            base: What an adapter is trained beside, which the checkpoint lacks.
        """
        self._every_steps = run.measurement.checkpoint_every_steps
        self._identity = {**identity_of(run, setup.topology), **strategy.layout, **base}
        self._setup = setup
        self._strategy = strategy
        self._stop = stop
        self._step_log = step_log
        self._group: ProcessGroup | None = None
        if distributed.is_initialized() and distributed.get_world_size() > 1:
            self._group = distributed.new_group(backend="gloo")
        self._slots = Slots(folder, setup.topology, self._group)
        self._optimizer: Optimizer
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._pending: Future[tuple[float, float, dict[str, Any]]] | None = None

    def resume(self, optimizer: Optimizer) -> int:
        """Restores the newest usable checkpoint; returns the steps that it has done, 0 without
        one.
        """
        self._optimizer = optimizer
        with self._step_log.phase(RESTORE) as phase:
            checkpoint = self._slots.newest(self._identity)
            phase.facts["step"] = checkpoint.step if checkpoint else 0
            if checkpoint is not None:
                self._read(checkpoint)
        done = checkpoint.step if checkpoint else 0
        self._step_log.resume(done)
        self._stop.begin(done + 1)
        return done

    def after_step(self, step: int) -> None:
        """On SIGTERM, raises RunStopped when the checkpoint is complete."""
        if self._stop.is_due(step):
            self._write(step, waits=True)
            raise RunStopped(
                f"the run was stopped after step {step}; the checkpoint of that step is complete"
            )
        if self._every_steps is not None and step % self._every_steps == 0:
            self._write(step, waits=False)

    def finish(self) -> None:
        """Called after the last step. Raises the error of the last checkpoint."""
        self._stop.end()
        if self._pending is not None:
            with self._step_log.phase("last_checkpoint"):
                self._collect()
        self._writer.shutdown()

    def _write(self, step: int, *, waits: bool) -> None:
        # The phase begins when the device has done the steps before it, and these are in the log.
        with self._step_log.checkpoint() as phase:
            log = measure_log()
            self._collect()
            folder = self._slots.begin()
            named = kept_tensors(self._strategy, self._setup.settings)
            state = state_to_write(named, self._optimizer)
            stager = DefaultStager(ON_HOST)
            copy: dict[str, torch.Tensor] = stager.stage(state)  # type: ignore[assignment]
            stager.close()
            held = (
                tensor.to_local() if isinstance(tensor, DTensor) else tensor
                for tensor in copy.values()
            )
            phase.facts["bytes"] = sum(map(byte_count, held))
            self._pending = self._writer.submit(
                self._write_copy, copy, folder, self._facts(step), log
            )
            if waits:
                self._collect()

    def _write_copy(
        self, copy: dict[str, torch.Tensor], folder: Path, facts: dict[str, Any], log: LogSizes
    ) -> tuple[float, float, dict[str, Any]]:
        """Returns begin, end and facts of the phase; ``bytes`` are this process's files."""
        begin = now()
        writer = FileSystemWriter(folder, single_file_per_rank=True, sync_files=False)
        save(copy, storage_writer=writer, process_group=self._group, no_dist=self._group is None)
        topology = self._setup.topology
        files = [path.name for path in folder.glob(f"__{topology.rank}_*.distcp")]
        count = self._slots.complete(
            folder, [*files, *([".metadata"] if topology.is_first else [])], facts, log
        )
        return begin, now(), {"step": facts[STEP], "bytes": count, IN_BACKGROUND: True}

    def _facts(self, step: int) -> dict[str, Any]:
        """The content of the marker, including the loss scaler's state after this step."""
        return {
            STEP: step,
            IDENTITY: dict(self._identity),
            SCALER: self._setup.number_format.scaler.state_dict(),
        }

    def _collect(self) -> None:
        """Waits for the current write, and logs it: only the main thread writes the log."""
        pending = self._pending
        self._pending = None
        if pending is not None:
            self._step_log.add_phase(CHECKPOINT_WRITE, *pending.result())

    def _read(self, checkpoint: Found) -> None:
        reader = FileSystemReader(self._slots.folder_of(checkpoint.slot))
        named = kept_tensors(self._strategy, self._setup.settings)
        state = state_to_read(
            named, self._strategy.updates, self._optimizer, reader.read_metadata()
        )
        load(state, storage_reader=reader, process_group=self._group, no_dist=self._group is None)
        if checkpoint.facts[SCALER]:
            self._setup.number_format.scaler.load_state_dict(checkpoint.facts[SCALER])
