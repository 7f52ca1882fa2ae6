"""The step log of a Hugging Face Trainer: ``Trainer(..., callbacks=[StepLogCallback()])``."""

from pathlib import Path
from typing import Any, Dict, Optional

from transformers import TrainerCallback

from traindyno.callbacks import step_log
from traindyno.callbacks.checkpoints import mark_complete, written_bytes
from traindyno.callbacks.clock import now
from traindyno.core.step_log.line import CHECKPOINT, WORK_UNIT

EVALUATION_PREFIX = "eval_"
RATE_SUFFIX = "_per_second"


class StepLogCallback(TrainerCallback):
    """One line per optimizer step, and phases for evaluating and for checkpoints.

    A loss function that calls ``self.log`` changes nothing: the log that ends a step is the one after it.

    Only steps that Trainer logs have a loss: its mean since the log before. Trainer's own filter, which replaces a loss
    that is not finite by the mean of the others, is switched off, because it hides a run that diverged.
    """

    def __init__(self) -> None:
        self._samples = 0
        self._batch_size = 0
        self._batches_of_epoch = 0
        self._learning_rate: Optional[float] = None
        self._is_open = False
        self._awaits_log = False
        self._ended = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # The state has the batch size in use if Trainer searches for one that fits.
        self._batch_size = getattr(state, "train_batch_size", None) or args.train_batch_size
        if step_log.is_enabled:
            args.logging_nan_inf_filter = False
            step_log.open()  # a refusal is also written to the log
            step_log.describe(unit_of_samples(args))
            step_log.resume(state.global_step)
        if step_log.is_enabled and kwargs.get("model") is not None:
            step_log.model(sum(parameter.numel() for parameter in kwargs["model"].parameters()))

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._batches_of_epoch = 0

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # Some Trainers (transformers 4.46) go on accumulating into the next epoch, whose first batch begins again.
        if self._awaits_log:
            self._end_step(None)
        if not self._is_open:
            step_log.begin_step()
            self._is_open = True

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Called after each batch of a step but the last, for which ``on_step_end`` is called."""
        self._count_batch(kwargs.get("train_dataloader"), is_last=False)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        is_last = state.epoch is not None and float(state.epoch).is_integer()  # also called for a resumed epoch
        self._count_batch(kwargs.get("train_dataloader"), is_last=is_last)
        scheduler = kwargs.get("lr_scheduler")
        self._learning_rate = None if scheduler is None else float(scheduler.get_last_lr()[0])
        self._awaits_log = bool(control.should_log)
        if not control.should_log:
            self._end_step(None)

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Dict[str, Any]] = None, **kwargs: Any) -> None:
        if self._awaits_log:
            loss = (logs or {}).get("loss")
            self._end_step(None if loss is None else float(loss))

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Optional[Dict[str, Any]] = None, **kwargs: Any
    ) -> None:
        self._end_phase("evaluate")
        step_log.evaluation(
            {
                name[len(EVALUATION_PREFIX) :]: float(value)
                for name, value in (metrics or {}).items()
                if name.startswith(EVALUATION_PREFIX) and not name.endswith(RATE_SUFFIX)
            }
        )

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Called after the checkpoint is written: the marker distinguishes it from a truncated one, and from one whose
        steps are not in the log.
        """
        folder = Path(args.output_dir, "checkpoint-{}".format(state.global_step))
        facts: Dict[str, Any] = {"step": state.global_step}
        step_log.close_window()
        step_log.flush()
        if step_log.is_enabled and state.is_world_process_zero and folder.is_dir():
            mark_complete(folder)
            facts["bytes"] = written_bytes(folder, since=0)
        self._end_phase(CHECKPOINT, facts)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end_step(None)
        step_log.close_window()

    def _end_phase(self, name: str, facts: Optional[Dict[str, Any]] = None) -> None:
        """It began when the step or the phase before it ended."""
        step_log.phase_ended(name, self._ended or now(), facts or {})
        self._ended = now()

    def _end_step(self, loss: Optional[float]) -> None:
        if self._is_open:
            self._is_open = self._awaits_log = False
            step_log.end_step(self._samples, None, loss, self._learning_rate)
            self._samples = 0
            self._ended = now()

    def _count_batch(self, loader: Any, is_last: bool) -> None:
        self._batches_of_epoch += 1
        if is_last or self._batches_of_epoch == batch_count(loader):
            self._samples += samples_of_last_batch(loader, self._batch_size)
        else:
            self._samples += self._batch_size


def unit_of_samples(args: Any) -> Dict[str, str]:
    """TRL's packed blocks hold several rows: they can't be compared with rows, or with blocks of another length."""
    if not getattr(args, "packing", False):
        return {}
    length = getattr(args, "max_length", None) or getattr(args, "max_seq_length", None)
    return {WORK_UNIT: "packed blocks" if length is None else "packed blocks of {} tokens".format(length)}


def batch_count(loader: Any) -> Optional[int]:
    try:
        return len(loader)
    except TypeError:  # an iterable dataset has no length
        return None


def samples_of_last_batch(loader: Any, batch_size: int) -> int:
    """Returns the samples of an epoch's last batch in this process: ``batch_size`` if the loader drops or fills short
    batches or has no known length.

    Accelerate's loader for several processes fills it up (``even_batches``); an iterable dataset has no length.
    """
    batches = getattr(loader, "batch_sampler", None)
    sampler: Any = getattr(batches, "sampler", None)
    if (
        getattr(batches, "drop_last", True)
        or getattr(batches, "even_batches", False)
        or not hasattr(sampler, "__len__")
    ):
        return batch_size
    return len(sampler) % batch_size or batch_size
