"""The step log of a Lightning Trainer: ``Trainer(..., callbacks=[StepLogCallback()])``."""

import functools
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional

from traindyno.callbacks import step_log
from traindyno.callbacks.batch import count_rows
from traindyno.callbacks.clock import now
from traindyno.callbacks.environment import weights_of

if "pytorch_lightning" in sys.modules:
    from pytorch_lightning import Callback
else:
    from lightning.pytorch import Callback

SAMPLES_PER_BATCH = "StepLogCallback(samples_per_batch=...)"


class StepLogCallback(Callback):  # type: ignore[misc]
    """One line per optimizer step, and phases for evaluating and for checkpoints.

    A step covers the batches that it accumulates.

    If ``samples_per_batch`` is not given, the rows of each batch are counted (see ``count_rows``).
    Rows that several processes train on together are counted once: ``shared_by`` processes, by
    default as many as the strategy says.
    """

    def __init__(
        self, samples_per_batch: Optional[int] = None, *, shared_by: Optional[int] = None
    ) -> None:
        super().__init__()
        self._samples_per_batch = samples_per_batch
        self._shared_by = shared_by
        self._samples = 0
        self._steps_done = 0
        self._is_open = False
        self._evaluation_began = 0.0

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """No hook is called after a checkpoint is written, so the trainer's method is timed."""
        if step_log.is_enabled and not hasattr(
            trainer.save_checkpoint, "__wrapped__"
        ):  # by an earlier fit
            trainer.save_checkpoint = _timed(trainer.save_checkpoint)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._steps_done = trainer.global_step
        self._is_open = False
        if step_log.is_enabled:
            step_log.begin_training(
                trainer.global_step, getattr(trainer.train_dataloader, "batch_size", None)
            )
            step_log.share_rows(self._shared_by or _processes_that_share_rows(trainer))
            step_log.model(**weights_of(pl_module))

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        if not self._is_open:
            step_log.begin_step()
            self._is_open = True
            self._samples = 0
        if step_log.is_enabled:
            step_log.note_batch(batch)
            self._samples += self._samples_per_batch or sum(
                count_rows(part, instead=SAMPLES_PER_BATCH)
                for part in _batches_of_loaders(trainer, batch)
            )

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.global_step == self._steps_done:
            return
        self._steps_done = trainer.global_step
        self._is_open = False
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        optimizers = trainer.optimizers
        rate = float(optimizers[0].param_groups[0]["lr"]) if optimizers else None
        step_log.end_step(self._samples, None, loss, rate)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._evaluation_began = now()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.sanity_checking:
            return
        step_log.phase_ended("evaluate", self._evaluation_began, {})
        metrics: Dict[str, float] = {
            name: float(value) for name, value in trainer.callback_metrics.items()
        }
        step_log.evaluation(metrics)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        step_log.end_training()


def _processes_that_share_rows(trainer: Any) -> Optional[int]:
    """The strategy deals the rows to fewer processes than there are; None if it does not."""
    dealt = getattr(trainer.strategy, "distributed_sampler_kwargs", None) or {}
    shared = trainer.world_size // (dealt.get("num_replicas") or trainer.world_size)
    return shared if shared > 1 else None


def _batches_of_loaders(trainer: Any, batch: Any) -> List[Any]:
    """With several loaders a batch has one of each: all of them are trained on.

    A shorter loader may have none left.
    """
    loaders = trainer.train_dataloader
    if isinstance(loaders, Mapping) and isinstance(batch, Mapping):
        return [batch[name] for name in loaders if batch.get(name) is not None]
    if isinstance(loaders, (list, tuple)) and isinstance(batch, (list, tuple)):
        return [part for part in batch if part is not None]
    return [batch]


def _timed(save: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(save)
    def save_in_a_phase(filepath: Any, *arguments: Any, **options: Any) -> Any:
        with step_log.checkpoint() as phase:
            saved = save(filepath, *arguments, **options)
            if Path(filepath).is_file():
                phase.facts["bytes"] = Path(filepath).stat().st_size
        return saved

    return save_in_a_phase
