"""What a verdict makes of failed, diverged, contended and unlike trials, of hosts, and of
accuracy.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.run_samples import completed_results, failed_result, known, make_suite, remeasured
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.measured_run import Contention
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log import line
from traindyno.core.suite.choices import Strategy
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.verdict import Finding, Verdict
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.figures.hosts import STATED_PRIORS, HostClass, HostSpread

SUITE = make_suite(
    matrix={"strategy": (Strategy.DDP, Strategy.FSDP)}, training={"instance": "ml.p4d.24xlarge"}
)
DDP, FSDP = SUITE.cells
FAST = (1.0, 1.01, 0.99)
SLOW = (1.3, 1.31, 1.29)


def results_of(
    ddp: Sequence[float] = FAST, fsdp: Sequence[float] = SLOW, **changes: Any
) -> list[RunResult]:
    return completed_results((DDP, FSDP), ddp, fsdp, suite=SUITE, **changes)


def judged(results: Sequence[RunResult]) -> Verdict:
    return judge(SUITE, (DDP, FSDP), results)


def on_host(result: RunResult, host: str) -> RunResult:
    return replace(result, environment=replace(known(result.environment), host_ids=(host,)))


def test_failed_trials_raise_cost_and_stand_in_the_headline(snapshot: Snapshot) -> None:
    plain = judged(results_of())
    failures = [failed_result(DDP, trial, Outcome.LOSS_DIVERGED) for trial in (4, 5)]
    verdict = judged([*results_of(), *failures])
    before = plain.row(DDP.cell_id).usd
    after = verdict.row(DDP.cell_id).usd
    # three of five attempts succeed: each success is paid 5 / 3 times
    assert known(after).mean == pytest.approx(known(before).mean * 5 / 3, rel=1e-4)
    assert verdict.recommended == FSDP.cell_id
    snapshot(" ".join(describe_verdict(verdict).cautions))
    alone = describe_verdict(judge(SUITE, (DDP,), [*results_of(fsdp=()), *failures]))
    snapshot(alone.headline)


def test_a_cell_with_a_non_finite_loss_is_not_recommended(snapshot: Snapshot) -> None:
    results = results_of()
    broken = [
        remeasured(result, diverged_at_step=20)
        if result.run.cell == DDP and result.measured
        else result
        for result in results
    ]
    verdict = judged(broken)
    assert verdict.recommended == FSDP.cell_id
    assert (verdict.row(DDP.cell_id).trials, verdict.row(DDP.cell_id).diverged) == (0, 3)
    snapshot(" ".join(describe_verdict(verdict).cautions))


def test_a_busy_host_costs_a_caution_and_never_the_answer() -> None:
    busy, busier = (
        Contention(steal_share=0.1, foreign_share=share, queue_share=0.1) for share in (0.06, 0.2)
    )
    results = [
        remeasured(result, contention=busier if result.run.cell == DDP else busy)
        for result in results_of()
    ]
    verdict = judged(results)
    assert verdict.finding is Finding.RECOMMENDED
    assert [row.hosts.others_cpu_share for row in verdict.rows] == pytest.approx([0.3, 0.16])
    caution = "Other work used up to 30 % of the CPU time of the hosts in trials of ddp, fsdp"
    assert any(told.startswith(caution) for told in describe_verdict(verdict).cautions)
    assert not any(
        told.startswith("Other work") for told in describe_verdict(judged(results_of())).cautions
    )


def test_cells_on_two_single_hosts_are_not_told_apart_by_a_small_difference(
    snapshot: Snapshot,
) -> None:
    steps = (1.0, 1.001, 0.999), (1.03, 1.031, 1.029)
    hosts = {DDP.cell_id: "a", FSDP.cell_id: "b"}
    apart = [on_host(result, hosts[result.run.cell.cell_id]) for result in results_of(*steps)]
    shared = [on_host(result, "a") for result in results_of(*steps)]
    assert judged(results_of(*steps)).finding is Finding.RECOMMENDED
    assert judged(shared).finding is Finding.RECOMMENDED
    verdict = judged(apart)
    assert verdict.finding is Finding.UNDECIDED
    snapshot(describe_verdict(verdict).headline)
    cautions = " ".join(describe_verdict(verdict).cautions)
    snapshot(cautions)
    snapshot(" ".join(describe_verdict(judged(shared)).cautions))


def test_a_narrower_spread_from_history_decides(snapshot: Snapshot) -> None:
    steps = (1.0, 1.001, 0.999), (1.03, 1.031, 1.029)
    hosts = {DDP.cell_id: "a", FSDP.cell_id: "b"}
    results = [on_host(result, hosts[result.run.cell.cell_id]) for result in results_of(*steps)]
    history = dict.fromkeys(
        HostClass, HostSpread(deviation=0.005, typical=0.005, degrees_of_freedom=20, source="past")
    )
    verdict = judge(SUITE, (DDP, FSDP), results, host_priors=history)
    assert verdict.finding is Finding.RECOMMENDED
    snapshot(" ".join(describe_verdict(verdict).cautions))
    # a plan that says nothing of the class leaves the stated prior
    others = {HostClass.MANY_HOSTS: history[HostClass.MANY_HOSTS]}
    expected = known(judge(SUITE, (DDP, FSDP), results, host_priors=others).best)
    assert expected.hosts.spread == STATED_PRIORS[HostClass.ONE_HOST]


def test_work_is_counted_in_one_unit() -> None:
    """A packed example holds twice the tokens: at the same samples per second it does the work in
    half the time.
    """
    facts = {line.WORK_UNIT: line.TOKENS}
    results = results_of(fsdp=FAST, facts=facts)
    twice = completed_results([FSDP], FAST, suite=SUITE, samples=4, facts=facts)
    assert judged(results).finding is Finding.WITHIN_TOLERANCE
    doubled = [remeasured(result, tokens=2 * _tokens(result)) for result in twice]
    row = judged([*results[:3], *doubled]).row(FSDP.cell_id)
    reference = judged(results).row(DDP.cell_id)
    assert known(row.seconds).mean == pytest.approx(known(reference.seconds).mean, rel=0.01)


def _tokens(result: RunResult) -> int:
    return known(known(known(result.measured).throughput).tokens)


def test_a_trial_with_an_unknown_bill_is_left_out_and_not_its_cell() -> None:
    first, *rest = results_of()
    unknown = replace(first, billable_seconds=None, attempts=())
    row = judged([unknown, *rest]).row(DDP.cell_id)
    assert (known(row.usd).count, row.trials) == (2, 3)


def test_the_size_of_unsteady_trials_is_in_the_headline() -> None:
    results = results_of(fsdp=())
    unsteady = remeasured(results[0], is_reached=False, reason="step times drift")
    headline = describe_verdict(judged([unsteady, *results[1:]])).headline
    # 60 steps of about a second; the whole work is 100,000 examples
    assert re.search(
        r" The trials ran for [\d.]+ s each, the work takes [\d.]+ h: take it as ± \d+ %;"
        r" for longer trials: measurement\.max_steps: 600\.$",
        headline,
    )
    training = replace(SUITE, limits=replace(SUITE.limits, chain_jobs=True))
    text = describe_verdict(judge(training, (DDP, FSDP), [unsteady, *results[1:]]))
    assert not re.search("trials (ran|of)", " ".join(text.lead).lower())
