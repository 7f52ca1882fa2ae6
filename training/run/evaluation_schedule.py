"""When a run evaluates its model: after every so many steps, and after the last one."""

from collections.abc import Callable, Mapping

from traindyno.callbacks import StepLogger
from traindyno.core.suite.suite import Measurement


class EvaluationSchedule:
    """All ranks take the same steps, so they evaluate at the same steps without communication.

    ``evaluate`` of None: the run has no data to evaluate on. ``observe`` is called with the metrics of each evaluation.
    """

    def __init__(
        self,
        measurement: Measurement,
        step_log: StepLogger,
        evaluate: Callable[[], Mapping[str, float]] | None,
        *,
        examples: int,
        observe: Callable[[Mapping[str, float]], None] = lambda _: None,
    ) -> None:
        self._every = measurement.evaluate_every_steps if evaluate is not None else None
        self._is_wanted = measurement.evaluates and evaluate is not None
        self._step_log = step_log
        self._evaluate = evaluate
        self._examples = examples
        self._observe = observe
        self._steps = 0
        self._evaluated_at: int | None = None

    def after_step(self) -> None:
        self._steps = max(self._steps + 1, self._step_log.steps)  # a resumed run has done some before
        if self._every is not None and self._steps % self._every == 0:
            self._evaluate_now()

    def at_end(self) -> None:
        if self._is_wanted and self._evaluated_at != self._steps:
            self._evaluate_now()

    def _evaluate_now(self) -> None:
        assert self._evaluate is not None, "there is nothing to evaluate on"
        with self._step_log.phase("evaluate", {"examples": self._examples}):
            metrics = self._evaluate()
        self._step_log.evaluation(dict(metrics))
        self._evaluated_at = self._steps
        self._observe(metrics)
