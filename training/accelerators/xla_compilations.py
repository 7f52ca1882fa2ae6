"""Which compilations PyTorch/XLA has done since one last asked, from its own metrics."""

from typing import Any

METRIC = "CompileTime"


class XlaCompilations:
    def __init__(self, metrics: Any) -> None:
        self._metrics = metrics
        self._count = 0

    def new(self) -> list[tuple[float, float]]:
        """Begin and end, in epoch seconds, of each."""
        data = self._metrics.metric_data(METRIC)
        if data is None:
            return []
        count, _, samples = data
        new, self._count = count - self._count, count
        return [(end - nanoseconds / 1e9, end) for end, nanoseconds in samples[len(samples) - new :]] if new else []
