"""Trials on a busy host are repeated once, and the repeat counts in place of what it repeats."""

import json
from dataclasses import replace

import pytest

from tests.unit.run_samples import completed_result, make_suite
from tests.unit.verdict_samples import SECOND, make_row, make_verdict
from traindyno.core.measurement.contention import Contention
from traindyno.core.measurement.run_result import RunResult, parse_run_result, run_result_document
from traindyno.core.step_log.line import LOCAL_CLOUD
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.choices import Search, Strategy
from traindyno.core.suite.suite import Measurement, Suite
from traindyno.core.verdict.contention_text import describe_remedies
from traindyno.core.verdict.repeats import busy_programs
from traindyno.core.verdict.rounds import plan_round
from traindyno.core.verdict.summarise import summarise
from traindyno.core.verdict.verdict import judge
from traindyno.core.verdict.verdict_text import describe_verdict

BUSY = Contention(
    steal_share=0.2,
    foreign_share=0.3,
    queue_share=0.2,
    involuntary_switches_per_second=50.0,
    programs=("firefox", "code"),
)
SUITE = make_suite(
    training={"instance": "ml.p4d.24xlarge"},
    matrix={"strategy": (Strategy.DDP, Strategy.FSDP)},
    measurement=Measurement(trials=2),
)
DDP, FSDP = expand_cells(SUITE)


def contended(result: RunResult) -> RunResult:
    assert result.measured is not None
    return replace(result, measured=replace(result.measured, contention=BUSY))


def results(*, contended_trial: int, seconds: float = 3.0) -> list[RunResult]:
    """One-second steps, and one trial of ddp that other work slowed down."""
    found = [completed_result(cell, trial) for cell in (DDP, FSDP) for trial in (1, 2)]
    slow = contended(completed_result(DDP, contended_trial, step_seconds=seconds))
    return [slow if (each.run.cell, each.run.trial) == (DDP, contended_trial) else each for each in found]


def next_round(suite: Suite, found: list[RunResult], number: int = 2) -> list[tuple[str, int]]:
    runs = plan_round(suite, (DDP, FSDP), execution_id="e", round_number=number, results=found)
    return [(run.cell.label, run.trial) for run in runs]


@pytest.mark.parametrize("trial", [1, 2])
def test_a_contended_trial_is_run_once_more(trial: int) -> None:
    found = results(contended_trial=trial)
    # Cells have two trials, so that the repeat of trial 1 is trial 3.
    assert next_round(SUITE, found) == [("ddp", trial + 2)]


def test_a_repeat_is_not_repeated_beyond_the_suites_limit() -> None:
    found = [*results(contended_trial=1), contended(completed_result(DDP, 3))]
    assert next_round(SUITE, found, 3) == []
    patient = replace(SUITE, limits=replace(SUITE.limits, max_contended_repeats=2))
    assert next_round(patient, found, 3) == [("ddp", 5)]
    never = replace(SUITE, limits=replace(SUITE.limits, max_contended_repeats=0))
    assert next_round(never, results(contended_trial=1)) == []


def test_on_a_quiet_host_nothing_is_repeated() -> None:
    quiet = [completed_result(cell, trial) for cell in (DDP, FSDP) for trial in (1, 2)]
    assert next_round(SUITE, quiet) == []


def test_a_race_repeats_before_it_drops_cells() -> None:
    suite = replace(SUITE, search=Search.RACE, measurement=Measurement(trials=4))
    slow = contended(completed_result(DDP, 1, step_seconds=3.0))
    found = [slow, completed_result(FSDP, 1)]
    assert next_round(suite, found) == [("ddp", 5)]


def test_the_repeat_counts_in_place_of_the_contended_run_and_both_are_paid() -> None:
    first = results(contended_trial=1)
    before = judge(SUITE, (DDP, FSDP), first)
    after = judge(SUITE, (DDP, FSDP), [*first, completed_result(DDP, 3)])
    # 8 samples in a step of one second, and in the slow trial in three.
    assert before.row(DDP.cell_id).samples_per_second is not None
    assert before.row(DDP.cell_id).samples_per_second.mean < 6  # type: ignore[union-attr]
    assert after.row(DDP.cell_id).samples_per_second.mean == pytest.approx(8)  # type: ignore[union-attr]
    assert after.row(DDP.cell_id).trials == 2
    assert after.spent_usd is not None
    assert before.spent_usd is not None
    assert after.spent_usd > before.spent_usd


def test_an_interruption_of_a_run_that_was_repeated_counts() -> None:
    """The host was busy; that the capacity failed is as true as with the hours that remain."""
    first, *others = results(contended_trial=1)
    assert first.measured is not None
    hit = replace(first, measured=replace(first.measured, interruptions=1, lost_seconds=10.0))
    runs = [hit, *others, completed_result(DDP, 3)]
    spot = [replace(each, price=replace(each.price, purchase="spot")) for each in runs]
    assert [row.hazard and row.hazard.count for row in judge(SUITE, (DDP, FSDP), spot).rows] == [1, 1]


def test_a_contended_run_is_marked_in_its_row() -> None:
    slow, *others = results(contended_trial=1)
    assert summarise(slow).is_contended is True
    assert [summarise(each).is_contended for each in others] == [False] * 3


def test_what_was_busy_and_what_helps_is_in_the_verdict() -> None:
    never = replace(SUITE, limits=replace(SUITE.limits, max_contended_repeats=0))
    verdict = judge(never, (DDP, FSDP), results(contended_trial=1))
    assert [row.busy_programs for row in verdict.rows] == [("firefox", "code"), ()]
    text = describe_verdict(verdict)
    assert "other work on the hosts slowed trials down (most CPU time: firefox, code)" in text.headline
    assert text.changes[0] == "Close firefox and code while the suite runs, or what you can of them."
    assert "raise limits.max_contended_repeats (now 0, at most 10)" in text.changes[1]
    most = replace(SUITE, limits=replace(SUITE.limits, max_contended_repeats=10))
    assert text.changes[0] in describe_verdict(judge(most, (DDP, FSDP), results(contended_trial=1))).changes
    assert "max_contended_repeats" not in str(describe_verdict(judge(most, (DDP, FSDP), results(contended_trial=1))))


def test_the_remedies_are_those_of_the_contended_cells() -> None:
    own = make_row(
        instance="local.cpu", instance_count=2, contended_trials=1, busy_programs=(LOCAL_CLOUD, "a", "b", "c")
    )
    remote = make_row(SECOND, contended_trials=1, busy_programs=(LOCAL_CLOUD, "traindyno"))
    fewer = "A smaller instance_count on this machine has fewer processes, and leaves cores to other work."
    assert list(describe_remedies(make_verdict(rows=(own,)))) == [
        "Close a and b while the suite runs, or what you can of them.",
        fewer,
    ]
    assert list(describe_remedies(make_verdict(rows=(remote,)))) == []
    assert list(describe_remedies(make_verdict(rows=(replace(own, contended_trials=0),)))) == []
    alone = replace(own, instance_count=1, busy_programs=("make",))
    assert list(describe_remedies(make_verdict(rows=(alone,)))) == ["Close make while the suite runs."]


def test_programs_of_hosts_that_were_not_contended_are_not_named() -> None:
    quiet = replace(BUSY, steal_share=0.0, queue_share=0.0)
    first = completed_result(DDP, 1)
    assert first.measured is not None
    found = [replace(first, measured=replace(first.measured, contention=quiet)), *results(contended_trial=2)[1:]]
    assert busy_programs(found[:1]) == ()
    assert summarise(found[0]).busy_programs is None
    assert summarise(contended(first)).busy_programs == "firefox, code"


def test_a_result_without_names_of_programs_says_nothing_of_them() -> None:
    document = json.loads(json.dumps(run_result_document(contended(completed_result(DDP, 1)))))
    del document["measured"]["contention"]["programs"]
    assert busy_programs([parse_run_result(document)]) == ()
