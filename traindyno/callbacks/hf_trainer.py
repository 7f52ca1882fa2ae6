"""The step log of a Hugging Face Trainer: ``Trainer(..., callbacks=[StepLogCallback()])``."""

from typing import Any, Dict, Optional

from transformers import TrainerCallback

from traindyno.callbacks import step_log
from traindyno.callbacks.clock import now

EVALUATION_PREFIX = "eval_"
RATE_SUFFIX = "_per_second"


class StepLogCallback(TrainerCallback):
    """One line per optimizer step. Only steps that Trainer logs have a loss: its mean since the log before.

    A short last batch of an epoch counts as a full one; ``dataloader_drop_last`` avoids it.
    """

    def __init__(self) -> None:
        self._samples = 0
        self._learning_rate: Optional[float] = None
        self._is_open = False
        self._ended = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._samples = args.train_batch_size * args.gradient_accumulation_steps
        if step_log.is_enabled and kwargs.get("model") is not None:
            step_log.model(sum(parameter.numel() for parameter in kwargs["model"].parameters()))

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        step_log.begin_step()
        self._is_open = True

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        scheduler = kwargs.get("lr_scheduler")
        self._learning_rate = None if scheduler is None else float(scheduler.get_last_lr()[0])
        if not control.should_log:
            self._end_step(None)

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Dict[str, Any]] = None, **kwargs: Any) -> None:
        loss = (logs or {}).get("loss")
        self._end_step(None if loss is None else float(loss))

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Optional[Dict[str, Any]] = None, **kwargs: Any
    ) -> None:
        step_log.phase_ended("evaluate", self._ended or now(), {})
        step_log.evaluation(
            {
                name[len(EVALUATION_PREFIX) :]: float(value)
                for name, value in (metrics or {}).items()
                if name.startswith(EVALUATION_PREFIX) and not name.endswith(RATE_SUFFIX)
            }
        )

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end_step(None)
        step_log.close_window()

    def _end_step(self, loss: Optional[float]) -> None:
        if self._is_open:
            self._is_open = False
            step_log.end_step(self._samples, None, loss, self._learning_rate)
            self._ended = now()
