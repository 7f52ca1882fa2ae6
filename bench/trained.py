"""The results of one training: seconds, tokens and losses of its steps."""

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """``tokens`` are those of each step without padding.

    ``losses`` is empty if none were stored.
    """

    step_seconds: tuple[float, ...]
    tokens: tuple[int, ...]
    losses: tuple[float, ...] = ()
    peak_memory_bytes: int | None = None

    def median_step_seconds(self, warmup_steps: int) -> float:
        return median(self.step_seconds[warmup_steps:])

    def tokens_per_second(self, warmup_steps: int) -> float:
        return sum(self.tokens[warmup_steps:]) / sum(self.step_seconds[warmup_steps:])
