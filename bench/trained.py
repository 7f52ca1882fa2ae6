"""The results of one training, step by step."""

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """One training."""

    step_seconds: tuple[float, ...]
    #: The tokens of each step without padding.
    tokens: tuple[int, ...]
    #: The loss of each step; empty if none was stored.
    losses: tuple[float, ...] = ()
    peak_memory_bytes: int | None = None

    def median_step_seconds(self, warmup_steps: int) -> float:
        return median(self.step_seconds[warmup_steps:])

    def tokens_per_second(self, warmup_steps: int) -> float:
        return sum(self.tokens[warmup_steps:]) / sum(self.step_seconds[warmup_steps:])
