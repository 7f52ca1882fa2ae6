"""The small training of ``traindyno doctor --noise``."""

from localcloud.run_repeats import measure


def test_equal_runs_are_timed() -> None:
    told: list[str] = []
    assert len(measure(tell=told.append, runs=2, seconds=0.05)) == 2
    assert len(told) == 2
    assert all("ms a step" in text for text in told)
