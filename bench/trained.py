"""What one training left: its steps' seconds, tokens and losses."""

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """``tokens`` are those of each step without padding. ``losses`` is empty where none were kept."""

    step_seconds: tuple[float, ...]
    tokens: tuple[int, ...]
    losses: tuple[float, ...] = ()
    peak_memory_bytes: int | None = None

    def median_step_seconds(self, warmup_steps: int) -> float:
        return median(self.step_seconds[warmup_steps:])

    def tokens_per_second(self, warmup_steps: int) -> float:
        return sum(self.tokens[warmup_steps:]) / sum(self.step_seconds[warmup_steps:])
