"""Shares of a step from any probes, what verdict and report say about them, and the advice of more
loader workers.
"""

import re
from dataclasses import replace
from itertools import pairwise, product
from random import Random
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.core.measurement.test_step_parts import probe_line
from tests.unit.report.test_report import report_of
from tests.unit.run_samples import make_run, make_suite, result_from
from tests.unit.step_log_samples import file_name, log_lines
from tests.unit.verdict_samples import SECOND, make_estimate, make_rival, make_row, make_verdict
from traindyno.core.measurement.run_result import parse_run_result, run_result_document
from traindyno.core.measurement.step_parts import PartSeconds, StepParts
from traindyno.core.run.settings import Settings
from traindyno.core.step_log import line
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.verdict.slow_steps import (
    COMMUNICATION,
    DATA,
    LEAST_NAMED_SHARE,
    OPTIMIZER,
    CellSteps,
    LoaderAdvice,
    advise_workers,
    describe_steps,
    divide_step,
)
from traindyno.core.verdict.summarise import summarise
from traindyno.core.verdict.verdict import parse_verdict, verdict_document
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.report.html import render

RAW = (DATA, COMMUNICATION, OPTIMIZER)
SAID = {"loading data": DATA, "communication": COMMUNICATION, "optimizer": OPTIMIZER}
# 8 vCPUs for one GPU.
G5 = Settings(instance="ml.g5.2xlarge", batch_size_per_device=8)


def probed(
    times: list[float], errors: list[float], *, unknown: tuple[str, ...] = (), waiting: float = 0.0
) -> StepParts:
    """``times`` of a whole step, and of each probe in turn; one of an unknown part was not made."""
    known = [name for name in RAW if name not in unknown]
    parts = {
        name: PartSeconds(mean=before - after, error=error)
        for name, (before, after), error in zip(known, pairwise(times), errors, strict=False)
    }
    rest = PartSeconds(mean=times[len(known)], error=errors[-1])
    return StepParts(
        samples_per_step=8,
        step=PartSeconds(mean=times[0], error=0.0),
        waiting=PartSeconds(mean=waiting * times[0], error=0.0),
        data=parts[DATA],
        communication=parts.get(COMMUNICATION),
        optimizer=parts.get(OPTIMIZER),
        compute=None if COMMUNICATION in unknown else rest,
        is_probed=True,
    )


@pytest.mark.parametrize(
    "unknown", [(), (COMMUNICATION,), (OPTIMIZER,), (COMMUNICATION, OPTIMIZER)]
)
@pytest.mark.parametrize("noise", [0.001, 0.05, 0.5])
def test_shares_of_any_probes_are_100_percent_and_none_is_claimed_that_may_be_noise(
    noise: float, unknown: tuple[str, ...]
) -> None:
    random, claimed = Random(f"{noise} {unknown}"), 0
    for _ in range(200):
        falling = [1.0, *sorted((random.random() for _ in RAW), reverse=True)]
        times = [max(0.01, random.gauss(time, noise)) for time in falling]
        parts = probed(
            times,
            [random.uniform(0, 2 * noise) for _ in times],
            unknown=unknown,
            waiting=random.random(),
        )
        shares = divide_step(parts)
        assert shares is not None
        told = [*shares.found.values(), shares.rest]
        assert all(0 <= share.value <= 1 + 1e-9 for share in told)
        assert sum(share.value for share in told) == pytest.approx(1)

        texts = [*describe_steps("ddp", CellSteps(step_parts=parts))]
        assert "−" not in "".join(texts)
        assert "-" not in "".join(texts)
        if "too noisy" in texts[-1]:
            assert not shares.found
            assert any(
                share.half_width > LEAST_NAMED_SHARE for share in shares.parts.values() if share
            )
            continue
        (sentence,) = [text for text in texts if text.startswith("By its probes")]
        percents = [int(found) for found in re.findall(r"(\d+) % \(±", sentence)]
        assert sum(percents) == pytest.approx(100, abs=len(percents) / 2)
        named = [
            SAID[name]
            for name in re.findall(r"\) (loading data|communication|optimizer)", sentence)
        ]
        claimed += len(named)
        for name in named:
            part = getattr(parts, name)
            assert part.mean > part.half_width
        noisy = "".join(text for text in texts if "noise" in text).lower()
        for said, name in SAID.items():
            assert (said in noisy) == (name not in named and name not in unknown)
        assert ("can't be told apart" in sentence) == bool(unknown)
        if advise_workers(G5, parts):
            assert DATA in named
            assert shares.found[DATA].value >= LEAST_NAMED_SHARE
    assert claimed > 0 or noise == 0.5


def test_probes_that_contradict_each_other_show_how_little_they_tell(snapshot: Snapshot) -> None:
    """The held batches took 0.2 s, and less of a step 0.9 s: no difference below 0.7 s is one."""
    shares = divide_step(probed([1.0, 0.2, 0.9, 0.1], [0.001] * 4))
    assert shares is not None
    # Closest times that never rise: 1.0, 0.55, 0.55, 0.1
    assert [share.value for share in shares.parts.values() if share] == pytest.approx(
        [0.45, 0.0, 0.45]
    )
    assert [share.half_width for share in shares.parts.values() if share] == pytest.approx(
        [0.7] * 3
    )
    assert shares.found == {}
    assert shares.rest.value == 1
    snapshot(
        [*describe_steps("A", CellSteps(step_parts=probed([1.0, 0.2, 0.9, 0.1], [0.001] * 4)))]
    )


def test_a_step_is_longer_than_its_probes_by_what_they_leave_out() -> None:
    shares = divide_step(probed([2.0, 1.4, 1.0, 0.8], [0.01] * 4))
    assert shares is not None
    assert {name: share.value for name, share in shares.found.items()} == pytest.approx(
        {DATA: 0.3, COMMUNICATION: 0.2, OPTIMIZER: 0.1}
    )
    assert shares.rest.value == pytest.approx(0.4)
    assert shares.found[DATA].half_width == pytest.approx(1.96 * 0.01 / 2, rel=1e-3)


def test_a_single_process_has_no_communication_and_no_noise_of_it() -> None:
    shares = divide_step(probed([1.0, 1.02, 1.02, 0.9], [0.02, 0.0, 0.02, 0.02]))
    assert shares is not None
    communication = shares.parts[COMMUNICATION]
    assert communication is not None
    assert (communication.value, communication.half_width) == (0, 0)
    texts = describe_steps(
        "single", CellSteps(step_parts=probed([1.0, 1.02, 1.02, 0.9], [0.02, 0.0, 0.02, 0.02]))
    )
    assert "communication" not in "".join(texts)


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
    assert (
        text.startswith(
            "29 % (± 4 %) of a step of A waits for data, by its step log. The probes of A"
        )
        == is_named
    )
    assert ("waits for data" in text) == is_named
    assert ("45 % (± 8 %) loading data" in text) == (data[0] == 0.45)
    assert ("too noisy to tell what its step consists of (± 39 %)." in text) == (data[1] == 0.20)


def step_seconds(load: float, rest: float, workers: int) -> float:
    """Mean step of a long run: a process that loads by itself, or workers that load steps in turn,
    each at a time.
    """
    if workers == 0:
        return load + rest
    free, now, count = [0.0] * workers, 0.0, 2000
    for step in range(count):
        worker = step % workers
        made = free[worker] + load
        now = max(now, made) + rest
        # A worker begins its next step at once, as far as the prefetching allows, which does not
        # bind it here.
        free[worker] = made
    return now / count


def advice(
    load: float, rest: float, workers: int, instance: str = G5.instance
) -> LoaderAdvice | None:
    step = step_seconds(load, rest, workers)
    data = PartSeconds(mean=step - rest, error=0.0)
    parts = StepParts(
        samples_per_step=8, step=PartSeconds(mean=step, error=0.0), waiting=data, data=data
    )
    return advise_workers(replace(G5, instance=instance, loader_workers=workers), parts)


@pytest.mark.parametrize(("load", "workers"), list(product([0.02, 0.1, 0.25, 0.9], [0, 1, 2, 4])))
def test_the_advice_saves_what_it_says(load: float, workers: int) -> None:
    rest, now = 0.1, step_seconds(load, 0.1, workers)
    found = advice(load, rest, workers)
    if found is None:
        assert now == pytest.approx(rest, rel=0.08)
        return
    assert workers < found.loader_workers <= 7
    assert 1 - step_seconds(load, rest, found.loader_workers) / now == pytest.approx(
        found.saving, abs=0.03
    )
    assert found.is_bounded == (step_seconds(load, rest, 7) > rest * 1.05)


@pytest.mark.parametrize("instance", ["local.cpu", "ml.m7i.xlarge"])
def test_no_number_where_the_cores_train_or_are_unknown(instance: str) -> None:
    assert advice(0.5, 0.1, 0, instance) is None


def test_no_advice_for_a_wait_that_may_be_noise() -> None:
    step, data = PartSeconds(mean=1.0, error=0.2), PartSeconds(mean=0.3, error=0.2)
    parts = StepParts(samples_per_step=8, step=step, waiting=data, data=data)
    assert advise_workers(G5, parts) is None
    assert advise_workers(G5, None) is None


ABOUT_STEPS = ("waits for data", "By its probes", "within the noise", "By estimate")


def parts(data: float, *, communication: float = 0.1, is_probed: bool = True) -> StepParts:
    """A step of 1 s with 100 samples: 1,000 s for the work of the samples of a verdict."""
    of_data, exchange, known = (
        PartSeconds(mean=mean, error=0.01) for mean in (data, communication, 0.2)
    )
    waiting = StepParts(
        samples_per_step=100, step=PartSeconds(mean=1, error=0), waiting=of_data, data=of_data
    )
    rest = PartSeconds(mean=0.8 - data - communication, error=0.01)
    if not is_probed:
        return waiting
    return replace(waiting, communication=exchange, optimizer=known, compute=rest, is_probed=True)


def said(first: StepParts, second: StepParts, **changes: Any) -> list[str]:
    rows = (
        make_row(step_parts=first, **changes),
        make_row(SECOND, step_parts=second, seconds=make_estimate(1500.0)),
    )
    verdict = make_verdict(rows=rows, rivals=(make_rival(),))
    assert parse_verdict(verdict_document(verdict)) == verdict
    return [
        text
        for text in describe_verdict(verdict).support
        if any(words in text for words in ABOUT_STEPS)
    ]


def test_the_finalists_parts_are_sentences(snapshot: Snapshot) -> None:
    advice = LoaderAdvice(loader_workers=8, saving=0.12, is_bounded=False)
    snapshot(said(parts(0.31), parts(0.01, communication=0.5), loader_advice=advice))


def test_without_probes_a_wait_is_named_if_it_matters(snapshot: Snapshot) -> None:
    waits, little = parts(0.31, is_probed=False), parts(0.01, is_probed=False)
    snapshot(said(waits, little))


@pytest.mark.parametrize("facts", [{}, {"run": {"task": "causal-lm"}}])
def test_a_log_with_probes_becomes_a_row_of_the_report(facts: dict[str, Any]) -> None:
    """Only a built-in task gets advice: a script's argument for its workers is its own."""
    suite = make_suite(
        training={"batch_size_per_device": 8}, matrix={"instance": ("ml.g5.2xlarge",)}
    )
    (cell,) = suite.cells
    seconds = {line.WHOLE_STEP: 0.1, line.HELD_BATCHES: 0.06, line.NO_OPTIMIZER: 0.05}
    probes = [probe_line(name, [each] * 10) for name, each in seconds.items()]
    log = log_lines(
        step_seconds=[0.1] * 200, wait_seconds=0.04, after=probes, facts={"torch": "2", **facts}
    )
    result = result_from(read_step_log({file_name(): log}), run=make_run(cell), suite=suite)
    assert parse_run_result(run_result_document(result)) == result
    assert summarise(result).time.probe_seconds == pytest.approx(1)
    report = report_of([result], suite)
    (row,) = report.verdict.rows
    steps = row.part(CellSteps)
    assert steps.step_parts is not None
    assert steps.step_parts.is_probed
    assert bool(steps.loader_advice) == bool(facts)
    section = render(report).partition("Why slow</h3>")[2].partition("</table>")[0]
    cells = [re.sub(r"<[^>]*>", "", cell) for cell in section.split("<td")[1:]]
    # waiting, data, communication of one process, optimizer, the rest
    assert [cell.rpartition(">")[2] for cell in cells][1:6] == [
        f"{share} % (± 0 %)" for share in (40, 40, 0, 10, 50)
    ]
