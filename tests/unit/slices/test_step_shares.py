"""Shares of a step from any probes, also from those that contradict each other."""

import re
from itertools import pairwise
from random import Random

import pytest

from traindyno.core.measurement.step_parts import PartSeconds, StepParts
from traindyno.core.suite.settings import Settings
from traindyno.slices.slowness.verdict import (
    COMMUNICATION,
    DATA,
    LEAST_NAMED_SHARE,
    OPTIMIZER,
    CellSteps,
    advise_workers,
    describe_steps,
    divide_step,
)

RAW = (DATA, COMMUNICATION, OPTIMIZER)
SAID = {"loading data": DATA, "communication": COMMUNICATION, "optimizer": OPTIMIZER}
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


@pytest.mark.parametrize("unknown", [(), (COMMUNICATION,), (OPTIMIZER,), (COMMUNICATION, OPTIMIZER)])
@pytest.mark.parametrize("noise", [0.001, 0.05, 0.5])
def test_shares_of_any_probes_are_100_percent_and_none_is_claimed_that_may_be_noise(
    noise: float, unknown: tuple[str, ...]
) -> None:
    random, claimed = Random(f"{noise} {unknown}"), 0
    for _ in range(200):
        falling = [1.0, *sorted((random.random() for _ in RAW), reverse=True)]
        times = [max(0.01, random.gauss(time, noise)) for time in falling]
        parts = probed(times, [random.uniform(0, 2 * noise) for _ in times], unknown=unknown, waiting=random.random())
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
            assert any(share.half_width > LEAST_NAMED_SHARE for share in shares.parts.values() if share)
            continue
        (sentence,) = [text for text in texts if text.startswith("By its probes")]
        percents = [int(found) for found in re.findall(r"(\d+) % \(±", sentence)]
        assert sum(percents) == pytest.approx(100, abs=len(percents) / 2)
        named = [SAID[name] for name in re.findall(r"\) (loading data|communication|optimizer)", sentence)]
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


def test_probes_that_contradict_each_other_show_how_little_they_tell() -> None:
    """The held batches took 0.2 s, and less of a step 0.9 s: no difference below 0.7 s is one."""
    shares = divide_step(probed([1.0, 0.2, 0.9, 0.1], [0.001] * 4))
    assert shares is not None
    # Closest times that never rise: 1.0, 0.55, 0.55, 0.1
    assert [share.value for share in shares.parts.values() if share] == pytest.approx([0.45, 0.0, 0.45])
    assert [share.half_width for share in shares.parts.values() if share] == pytest.approx([0.7] * 3)
    assert shares.found == {}
    assert shares.rest.value == 1
    assert [*describe_steps("A", CellSteps(step_parts=probed([1.0, 0.2, 0.9, 0.1], [0.001] * 4)))] == [
        "The probes of A are too noisy to tell what its step consists of (± 70 %)."
    ]


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
    texts = describe_steps("single", CellSteps(step_parts=probed([1.0, 1.02, 1.02, 0.9], [0.02, 0.0, 0.02, 0.02])))
    assert "communication" not in "".join(texts)


def test_a_cell_without_probes_has_no_shares() -> None:
    part = PartSeconds(mean=1.0, error=0.1)
    assert divide_step(StepParts(samples_per_step=8, step=part, waiting=part, data=part)) is None
    assert divide_step(None) is None
