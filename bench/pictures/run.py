"""How one run is measured: its step log with all that the functions find in it that read real
logs.
"""

import json
from collections.abc import Iterator
from math import exp, log10
from random import Random

from bench.pictures.canvas import (
    ACCENT,
    FAINT,
    INK,
    SOFT,
    WARM,
    WASH,
    Place,
    band,
    dot,
    line,
    page,
    scale,
    text,
)
from traindyno.core.measurement.measured_run import MeasuredRun, measure_run
from traindyno.core.step_log.line import end_line, environment_line, phase_line, step_line
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.step_table import StepTable, tabulate_steps

WIDTH = 900
HEIGHT = 450
LEFT = 62
RIGHT = 24
TOP = 44
BOTTOM = 330
STEPS = 300
CHANGE = 110
BEGIN = 1_700_000_000.0
FIRST_SECONDS = 14.0
SLOW = 1.4
FAST = 1.0
NOISE = 0.02
COMPILATION = 170
COMPILE_SECONDS = 9.0
CHECKPOINT_STEPS = 40
CHECKPOINT_SECONDS = 3.0
EVALUATION_STEPS = 60
EVALUATION_SECONDS = 6.0
SAMPLES = 64


def draw() -> str:
    measured, table = example()
    return page(WIDTH, HEIGHT, "What is found in the step log of one run", _parts(measured, table))


def example() -> tuple[MeasuredRun, StepTable]:
    """The loader is slow until step 110; checkpoints and evaluations recur; one compilation is
    logged later.
    """
    step_log = read_step_log(
        {f"job/rank-00000.{int(BEGIN * 1000)}.jsonl": map(json.dumps, _log_lines())}
    )
    session = step_log.measured
    assert session is not None
    table = tabulate_steps(session)
    return measure_run(
        step_log, session, table, warmup_steps=None, peak_flops_per_device=None
    ), table


def _log_lines() -> Iterator[dict[str, object]]:
    source = Random(8)
    now = BEGIN
    yield environment_line(now, 0, 1, "algo-1", {})
    for step in range(STEPS):
        for name, seconds in _phases_before(step):
            yield phase_line(name, now, now + seconds)
            now += seconds
        warming = (FIRST_SECONDS if step == 0 else 0.8 * exp(-step / 3)) + (
            SLOW if step < CHANGE else FAST
        )
        seconds = warming * exp(source.gauss(0, NOISE))
        yield step_line(step=step, begin=now, end=now + seconds, wait_seconds=0.0, samples=SAMPLES)
        now += seconds
    yield end_line(now, STEPS)


def _phases_before(step: int) -> Iterator[tuple[str, float]]:
    if step == COMPILATION:
        yield "compile", COMPILE_SECONDS
    if step and step % CHECKPOINT_STEPS == 0:
        yield "checkpoint", CHECKPOINT_SECONDS
    if step and step % EVALUATION_STEPS == 0:
        yield "evaluate", EVALUATION_SECONDS


def _parts(measured: MeasuredRun, table: StepTable) -> Iterator[str]:
    across = scale(0, len(table), LEFT, WIDTH - RIGHT)
    up = scale(log10(0.7), log10(20.0), BOTTOM, TOP)
    first = across(measured.steady_state.warmup_steps)
    yield band(first, WIDTH - RIGHT, TOP, BOTTOM, color=WASH)
    yield from _axes(across, up)
    yield from _intervals(table, across, up)
    yield text("first step", across(4), up(log10(table.interval_seconds[0])) + 5, color=SOFT)
    latest = table.numbers[measured.steady_state.warmup_steps]
    yield text(f"latest regime: from step {latest} on", first + 8, TOP - 10, color=ACCENT)
    yield text("left out: another regime", first - 8, TOP - 10, color=SOFT, anchor="end")
    steady, long_run = _step_seconds(measured)
    for seconds, dashes in ((steady, "none"), (long_run, "6 4")):
        y = up(log10(seconds))
        yield line([(first, y), (WIDTH - RIGHT, y)], color=ACCENT, dashes=dashes)
    for index, finding in enumerate(_findings(measured)):
        yield text(finding, LEFT, BOTTOM + 62 + 22 * index)


def _axes(across: Place, up: Place) -> Iterator[str]:
    for seconds in (1, 2, 5, 10, 20):
        y = up(log10(seconds))
        yield line([(LEFT, y), (WIDTH - RIGHT, y)], color=FAINT, width=1)
        yield text(f"{seconds} s", LEFT - 8, y + 5, color=SOFT, anchor="end")
    for step in range(0, STEPS, 50):
        yield text(str(step), across(step), BOTTOM + 18, color=SOFT, anchor="middle")
    yield text("step", WIDTH - RIGHT, BOTTOM + 18, color=SOFT, anchor="end")


def _intervals(table: StepTable, across: Place, up: Place) -> Iterator[str]:
    """A dot for each step: from the end of the step before to its own end, logged phases
    included.
    """
    for index, seconds in enumerate(table.interval_seconds):
        names = table.phases_by_interval.get(index, {})
        x = across(index + 0.5)
        y = up(log10(seconds))
        yield dot(x, y, color=WARM if names else INK)
        if names:
            yield text(" + ".join(names), x, y - 7, color=WARM, anchor="middle", size=11)


def _step_seconds(measured: MeasuredRun) -> tuple[float, float]:
    """Seconds of the steady step alone, and with the events that recur."""
    assert measured.throughput is not None
    long_run = 1 / measured.throughput.steps_per_second
    return long_run * (1 - measured.throughput.recurring_share), long_run


def _findings(measured: MeasuredRun) -> Iterator[str]:
    steady, long_run = _step_seconds(measured)
    recurring = ", ".join(
        f"{work.name} {work.seconds:.1f} s in {work.steps_between:.0f}"
        for work in measured.recurring
    )
    once = ", ".join(
        f"{work.name} {work.seconds:.1f} s at step {work.step}" for work in measured.one_time
    )
    yield (
        f"line: {steady:.3f} s for a step; dashed: {long_run:.3f} s with what recurs ({recurring} "
        "steps)"
    )
    yield f"rate: {SAMPLES} samples ÷ {long_run:.3f} s = {SAMPLES / long_run:.1f} samples/s"
    yield f"paid once, and in no rate: {once}"
