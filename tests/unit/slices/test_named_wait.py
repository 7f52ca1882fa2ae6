"""When the verdict names the log's wait for data: where the probes can't tell what data costs."""

import pytest

from traindyno.core.measurement.step_parts import PartSeconds, StepParts
from traindyno.slices.slowness.verdict import CellSteps, describe_steps


def described(*, data: tuple[float, float], waiting: tuple[float, float]) -> str:
    """Means and standard errors, as shares of a step of one second."""
    parts = StepParts(
        samples_per_step=8,
        step=PartSeconds(mean=1.0, error=0.01),
        waiting=PartSeconds(mean=waiting[0], error=waiting[1]),
        data=PartSeconds(mean=data[0], error=data[1]),
        is_probed=True,
    )
    return " ".join(describe_steps("A", CellSteps(step_parts=parts)))


@pytest.mark.parametrize(
    ("data", "waiting", "is_named"),
    [
        ((0.45, 0.04), (0.29, 0.02), False),  # the probes say what data costs
        ((0.10, 0.20), (0.29, 0.02), True),  # noisy probes
        ((0.01, 0.02), (0.29, 0.02), False),  # the host waits, the device does not
        ((0.10, 0.20), (0.02, 0.005), False),
        ((0.10, 0.20), (0.29, 0.20), False),
    ],
)
def test_noisy_probes_do_not_hide_the_logs_wait(
    data: tuple[float, float], waiting: tuple[float, float], is_named: bool
) -> None:
    text = described(data=data, waiting=waiting)
    assert text.startswith("29 % (± 4 %) of a step of A waits for data, by its step log. The probes of A") == is_named
    assert ("waits for data" in text) == is_named
    assert ("45 % (± 8 %) loading data" in text) == (data[0] == 0.45)
    assert ("too noisy to tell what its step consists of (± 39 %)." in text) == (data[1] == 0.20)
