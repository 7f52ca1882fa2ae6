"""Cells that count other work, or whose samples per step do not follow their batch size, get no
recommendation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.core.verdict.test_script_confounds import script_suite
from tests.unit.run_samples import completed_result, known, remeasured
from tests.unit.step_log_samples import START
from traindyno.callbacks.log import TEARDOWN
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_end import OutpacedBound
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.line import (
    CPU_SECONDS,
    FIRST_BATCHES,
    ROW_VALUES,
    SETUP,
    UNLOGGED_STEPS,
    WAIT_SECONDS,
    WORK_UNIT,
    phase_line,
)
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.next_round import plan_round
from traindyno.core.verdict.verdict import Finding, Verdict
from traindyno.core.verdict.verdict_text import describe_verdict

NAMES = [
    "batch_size",
    "per_device_train_batch_size",
    "train-batch-size",
    "bs",
    "trainBatchSize",
    "micro_batch_size",
    "bsz",
]
Points = Sequence[Mapping[str, Any]]
WHOLE = [32_768, 32_768, 16_384]
HALVES = [16_384, 16_384, 8_192]
OTHERS = [16_384, 16_384, 16_384]


def suite_of(points: Points, **changes: Any) -> Suite:
    """A cell for each point: a value for each argument."""
    cells = [
        {f"hyperparameters.{name}": value for name, value in point.items()} for point in points
    ]
    first, *others = cells
    return script_suite(
        matrix={name: [value] for name, value in first.items()},
        include=others,
        measurement={"trials": 2},
        **changes,
    )


def with_samples(result: RunResult, mean: float, most: int) -> RunResult:
    samples = round(mean * known(known(result.measured).throughput).steps)
    return remeasured(result, samples=samples, most_samples_per_step=most)


def judged(points: Points, samples: Sequence[float], most: Sequence[int] | None = None) -> Verdict:
    """The verdict of cells with this mean of samples in a step, and at most so many."""
    suite = suite_of(points, search="grid")
    cells = suite.cells
    results = [
        with_samples(completed_result(cell, trial, suite=suite), mean, largest)
        for cell, mean, largest in zip(cells, samples, most or [*map(round, samples)], strict=True)
        for trial in (1, 2)
    ]
    return judge(suite, cells, results)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "samples", [(35, 35), (35, 36.5), (40, 10)], ids=["constant", "nearly", "the other way"]
)
def test_samples_not_following_the_batch_size_are_unlike_work(
    snapshot: Snapshot, name: str, samples: tuple[float, float]
) -> None:
    verdict = judged([{name: 10}, {name: "40"}], samples, most=[35, 35])
    assert (verdict.finding, verdict.recommended) == (Finding.UNLIKE_WORK, None)
    assert verdict.to_decide.is_script
    snapshot(describe_verdict(verdict).headline)


def test_the_headline_has_the_numbers() -> None:
    points = [{"batch_size": 10}, {"batch_size": 40}]
    text = "No recommendation: batch_size varies from 10 to 40, samples per step are 35 in both."
    assert describe_verdict(judged(points, (35, 35))).headline == text
    of_three = describe_verdict(judged([*points, {"batch_size": 20}], (35, 35, 35)))
    assert of_three.headline == text.replace("both", "all 3")
    assert "samples=..." in of_three.changes[0]
    assert not [caution for caution in of_three.cautions if "can't be recommended" in caution]


@pytest.mark.parametrize(
    ("points", "samples", "most"),
    [
        ([{"bs": 16}, {"bs": 64}], (16, 64), None),
        ([{"bs": 100}, {"bs": 103}], (100, 103), None),
        ([{"bs": 64, "lr": 0.1}, {"bs": 16, "lr": 0.2}], (64, 16), None),
        (
            [
                {"bs": 8, "gradient_accumulation_steps": 4},
                {"bs": 32, "gradient_accumulation_steps": 1},
            ],
            (32, 32),
            None,
        ),
        (
            [{"bs": 8, "accumulate_grad_batches": 2}, {"bs": 8, "accumulate_grad_batches": 4}],
            (8, 8),
            None,
        ),
        ([{"bs": 8, "accum": 4}, {"bs": 64, "accum": 1}], (32, 64), None),
        # 100 rows: batches of 64 and 36, or 96 and 4; of 34, 34 and 32, or 49, 49 and 2
        ([{"bs": 64}, {"bs": 96}], (50, 50), [64, 96]),
        ([{"bs": 34}, {"bs": 49}], (33.3, 33.3), [34, 49]),
        # batches of 32 or 64 sequences, but no more than fit a number of tokens
        ([{"bs": 32}, {"bs": 64}], (27.1, 41.8), [32, 64]),
        # the part of a fixed batch that fits into memory
        ([{"micro_batch_size": 4}, {"micro_batch_size": 16}], (64, 64), None),
        ([{"bs": 64, "micro_bs": 4}, {"bs": 64, "micro_bs": 8}], (64, 64), None),
        (
            [
                {"batch_size": 4, "total_batch_size": 9999},
                {"batch_size": 8, "total_batch_size": 9999},
            ],
            (64, 64),
            None,
        ),
        # no batch size of a training step
        ([{"eval_batch_size": 4}, {"eval_batch_size": 64}], (8, 8), None),
        ([{"per_device_eval_batch_size": 4}, {"per_device_eval_batch_size": 64}], (8, 8), None),
        ([{"batch_norm": 4}, {"batch_norm": 64}], (8, 8), None),
        ([{"num_batches": 4}, {"num_batches": 64}], (8, 8), None),
        ([{"dataset_batch_size": 4}, {"dataset_batch_size": 64}], (8, 8), None),
        ([{"max_tokens_per_batch": 4096}, {"max_tokens_per_batch": 8192}], (8, 8), None),
        ([{"lr": 4}, {"lr": 64}], (8, 8), None),
    ],
)
def test_a_batch_size_followed_by_the_samples_is_compared(
    points: Points, samples: tuple[float, float], most: list[int] | None
) -> None:
    verdict = judged(points, samples, most)
    assert verdict.likeness.unlike is None
    assert verdict.recommended is not None


def test_more_processes_make_up_for_a_smaller_batch_each() -> None:
    """The processes are the suite's, or started by the script itself."""
    suite = script_suite(
        matrix={"instance_count": [1], "strategy": ["ddp"], "hyperparameters.batch_size": [32]},
        include=[
            {"instance_count": 2, "hyperparameters.batch_size": 16},
            {"hyperparameters.batch_size": 8},
        ],
        search="grid",
    )
    one, two, four = suite.cells
    results = [completed_result(cell, 1, suite=suite, samples=32) for cell in (one, two, four)]
    assert judge(suite, (one, two), results[:2]).likeness.unlike is None
    assert judge(suite, (one, two, four), results).finding is Finding.UNLIKE_WORK
    assert results[2].environment is not None
    spawned = replace(results[2], environment=replace(results[2].environment, world_size=4))
    assert judge(suite, (one, two, four), [*results[:2], spawned]).likeness.unlike is None


@pytest.mark.parametrize("search", ["grid", "race"])
@pytest.mark.parametrize("is_outpaced", [False, True])
def test_packed_blocks_and_rows_are_unlike_work_with_any_search(
    snapshot: Snapshot, search: str, is_outpaced: bool
) -> None:
    suite = suite_of([{"packing": "False"}, {"packing": "True"}], search=search)
    rows, blocks = suite.cells
    setup = phase_line(SETUP, 0.0, 1.0, {WORK_UNIT: "packed blocks of 64 tokens"})
    results = [
        completed_result(rows, 1, suite=suite),
        completed_result(blocks, 1, suite=suite, step_seconds=5.0, before=[setup]),
    ]
    if is_outpaced:
        (attempt,) = results[1].attempts
        attempt = replace(
            attempt, bound=OutpacedBound(by=results[0].run.run_id, steps=20, least_ratio=1.5)
        )
        results[1] = replace(results[1], outcome=Outcome.OUTPACED, attempts=(attempt,))
    verdict = judge(suite, (rows, blocks), results)
    assert (verdict.finding, verdict.recommended) == (Finding.UNLIKE_WORK, None)
    headline = describe_verdict(verdict).headline
    snapshot(headline)
    further = plan_round(suite, (rows, blocks), execution_id="e", round_number=2, results=results)
    assert further == ()


@pytest.mark.parametrize(
    ("point", "values", "processes", "is_refused"),
    [
        ({"sp": 2}, HALVES, 2, True),
        ({"sp": 2}, HALVES, 4, True),
        ({"sp": 2}, HALVES, 3, False),  # no two of three processes have equal shares
        ({"sp": 2}, OTHERS, 2, False),  # rows of varying length
        ({"sp": 2}, WHOLE, 2, False),
        ({"sp": 2}, None, 2, False),  # shared_by is said
        ({"sp": 1, "length": 64}, HALVES, 2, False),  # shorter rows are asked for
    ],
)
def test_a_cell_with_rows_possibly_split_from_anothers_is_unlike_work(
    point: dict[str, Any], values: list[int] | None, processes: int, is_refused: bool
) -> None:
    """As sequence parallelism: both processes have the same rows, each a half of each."""
    suite = suite_of([{"sp": 1, "length": 128}, {"length": 128} | point], search="grid")
    whole, parts = suite.cells
    results = []
    for cell, sizes in ((whole, WHOLE), (parts, values)):
        facts = {} if sizes is None else {ROW_VALUES: sizes}
        first = phase_line(FIRST_BATCHES, START, START, facts)
        result = completed_result(cell, 1, suite=suite, after=[first])
        environment = replace(known(result.environment), world_size=processes)
        results.append(replace(result, environment=environment))
    verdict = judge(suite, (whole, parts), results)
    assert (verdict.finding is Finding.UNLIKE_WORK) == is_refused
    if is_refused:
        headline = describe_verdict(verdict).headline
        assert "sp 2" in headline
        assert "say shared_by=2 in step_log.step(...) or StepLogCallback(...)" in headline
        assert headline.endswith("else shared_by=1.")


def test_a_cell_not_logging_each_step_leaves_the_answer_open() -> None:
    suite = suite_of([{"every": 1}, {"every": 50}])
    all_steps, some = suite.cells
    lacking = phase_line(
        TEARDOWN, START, START, {UNLOGGED_STEPS: 1950, CPU_SECONDS: 1.0, WAIT_SECONDS: 2.0}
    )
    results = [
        completed_result(all_steps, 1, suite=suite),
        completed_result(some, 1, suite=suite, after=[lacking]),
    ]
    assert results[1].samples_per_second is None
    verdict = judge(suite, (all_steps, some), results)
    assert (verdict.finding, verdict.recommended) == (Finding.UNLIKE_WORK, None)
    headline = (
        "No recommendation: every 50 did 1,950 steps that are not in its log, so its rate is "
        "unknown."
    )
    assert describe_verdict(verdict).headline == headline
    said = f"A trial of every 50: {results[1].message}."
    assert said in describe_verdict(verdict).cautions
    assert (
        plan_round(suite, (all_steps, some), execution_id="e", round_number=2, results=results)
        == ()
    )
