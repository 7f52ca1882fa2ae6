"""Published figures: their file, their judgement and their command."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from tests.unit.run_samples import completed_result, known, make_suite
from tests.unit.step_log_samples import START
from traindyno.api.suite_loading import load_suite
from traindyno.cli.main import commands
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.line import evaluation_line
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import Strategy
from traindyno.core.verdict.cell_runs import group_runs
from traindyno.slices.claims.client import summary_lines
from traindyno.slices.claims.lab import ClaimFinding, ClaimJudgement, judge_claims
from traindyno.slices.claims.suite import Claims, ClaimsInvalid, parse_claims

SUITES = Path(__file__).parents[3] / "suites"
PACKS = sorted(path.parent.name for path in SUITES.glob("*/claims.yaml"))
SUITE = make_suite(
    matrix={"strategy": (Strategy.DDP, Strategy.FSDP), "instance_count": (1, 2)},
    training={"instance": "ml.p4d.24xlarge"},
)
CELLS = SUITE.cells
UNCLEAR = (ClaimFinding.AMBIGUOUS, ClaimFinding.NO_CELL)
TRAINIUM = SUITES / "bert-trainium/claims.yaml"


def cell_of(strategy: Strategy, instance_count: int = 1) -> Cell:
    return next(
        cell
        for cell in CELLS
        if (cell.settings.strategy, cell.settings.instance_count) == (strategy, instance_count)
    )


def trials(cell: Cell, step_seconds: list[float]) -> list[RunResult]:
    return [
        completed_result(cell, trial, step_seconds=seconds, suite=SUITE)
        for trial, seconds in enumerate(step_seconds, start=1)
    ]


def pair(ddp: list[float], fsdp: list[float]) -> list[RunResult]:
    """Trials of both cells that the claim below compares, by their seconds of a step."""
    return trials(cell_of(Strategy.DDP), ddp) + trials(cell_of(Strategy.FSDP), fsdp)


def steady(fsdp_seconds: float) -> list[RunResult]:
    return pair([1.0, 1.001, 0.999], [fsdp_seconds + change for change in (0.0, 0.001, -0.001)])


def judged(results: list[RunResult], **changes: Any) -> ClaimJudgement:
    claim = {
        "claim_id": "gain",
        "text": "FSDP is a quarter faster",
        "source": "a table",
        "published": 0.25,
        "quantity": "samples_per_second",
        "form": "gain",
        "tolerance": 0.1,
        "cell": {"strategy": "fsdp", "instance_count": 1},
        "against": {"strategy": "ddp", "instance_count": 1},
        **changes,
    }
    claims = parse_claims({"title": "sample", "source": "here", "claims": [claim]})
    (judgement,) = judge_claims(claims, group_runs(SUITE, CELLS, results), results)
    return judgement


def measured(results: list[RunResult], **changes: Any) -> float:
    return known(judged(results, **changes).measured).mean


def shipped(name: str) -> dict[str, ClaimJudgement]:
    document = yaml.safe_load((SUITES / name / "claims.yaml").read_text(encoding="utf-8"))
    return {
        judgement.claim.claim_id: judgement
        for judgement in judge_claims(parse_claims(document), (), ())
    }


def test_a_figure_within_its_tolerance_is_reproduced() -> None:
    judgement = judged(steady(0.8))
    # 1 / 0.8 - 1
    assert judgement.finding is ClaimFinding.REPRODUCED
    assert known(judgement.measured).mean == pytest.approx(0.25, abs=1e-3)
    assert "accepted 0.225 to 0.275" in judgement.reason


@pytest.mark.parametrize(
    ("fsdp_seconds", "changes", "finding"),
    [
        (0.7, {}, ClaimFinding.NOT_REPRODUCED),
        (0.95, {}, ClaimFinding.NOT_REPRODUCED),
        # accepted from 0.2492: the interval around 0.25 begins below it
        (0.8, {"published": 0.28, "tolerance": 0.11}, ClaimFinding.UNDECIDED),
        # accepted up to 0.2501: the interval ends above it
        (0.8, {"published": 0.22, "tolerance": 0.137}, ClaimFinding.UNDECIDED),
        # gains of 0.25, 0.5 and 0.05 against a limit of 0.3
        (1 / 1.25, {"published": 0.3, "bound": "at_most"}, ClaimFinding.REPRODUCED),
        (1 / 1.5, {"published": 0.3, "bound": "at_most"}, ClaimFinding.NOT_REPRODUCED),
        (1 / 1.5, {"published": 0.3, "bound": "at_least"}, ClaimFinding.REPRODUCED),
        (1 / 1.05, {"published": 0.3, "bound": "at_least"}, ClaimFinding.NOT_REPRODUCED),
    ],
)
def test_the_measured_interval_is_compared_with_the_accepted_range(
    fsdp_seconds: float, changes: dict[str, Any], finding: ClaimFinding
) -> None:
    assert judged(steady(fsdp_seconds), **changes).finding is finding


def test_a_claim_matching_several_cells_or_none_says_so() -> None:
    results = pair([1.0, 1.001], [0.8, 0.801])
    several = judged(results, cell={"strategy": "fsdp"})
    assert (several.finding, several.measured) == (ClaimFinding.AMBIGUOUS, None)
    assert "{strategy: fsdp} matches 2 cells of different settings" in several.reason
    none = judged(results, against={"strategy": "zero1"})
    assert (none.finding, none.reason) == (
        ClaimFinding.NO_CELL,
        "no cell of the suite matches {strategy: zero1}",
    )


def test_an_accuracy_is_compared_with_the_last_evaluations() -> None:
    def evaluated(strategy: Strategy, *shares: float) -> list[RunResult]:
        return [
            completed_result(
                cell_of(strategy),
                trial,
                suite=SUITE,
                after=[evaluation_line(START, 60, {"accuracy": share})],
            )
            for trial, share in enumerate(shares, start=1)
        ]

    results = evaluated(Strategy.DDP, 0.90, 0.901) + evaluated(Strategy.FSDP, 0.81, 0.8105)
    change = judged(results, quantity="accuracy", form="ratio", published=0.9, tolerance=0.02)
    # 0.81 / 0.9
    assert (change.finding, round(known(change.measured).mean, 3)) == (ClaimFinding.REPRODUCED, 0.9)
    value = judged(results, quantity="accuracy", form="value", published=0.9, tolerance=0.02)
    assert value.finding is ClaimFinding.NOT_REPRODUCED


def test_noise_across_the_tolerance_is_undecided() -> None:
    assert judged(pair([1.0, 1.1, 0.9], [0.8, 0.9, 0.7])).finding is ClaimFinding.UNDECIDED
    assert judged(pair([1.0], [0.8])).finding is ClaimFinding.UNDECIDED


def test_contradiction_within_the_tolerance_leaves_the_figure_to_the_measurement() -> None:
    results = steady(0.8)
    near = {"value": 0.262, "text": "a = 0.262; contradicts another"}
    assert judged(results, contradiction=near).finding is ClaimFinding.REPRODUCED
    assert judged(results, contradiction=near).reason.endswith(
        "published 0.25000, but a = 0.262; contradicts another"
    )
    assert judged([], contradiction=near).finding is ClaimFinding.INCONSISTENT
    assert (
        judged(results, contradiction={"value": 0.31, "text": "a"}).finding
        is ClaimFinding.INCONSISTENT
    )


def test_a_figure_returned_by_simulated_runs_is_played() -> None:
    results = pair([1.0, 1.001], [0.8, 0.801])
    simulated = [replace(result, is_simulated=True) for result in results]
    assert judged(simulated).finding is ClaimFinding.PLAYED
    assert judged(simulated, published=0.5).finding is ClaimFinding.NOT_REPRODUCED


def test_a_saving_in_time_is_not_a_gain_in_rate() -> None:
    results = pair([1.0, 1.0], [0.8, 0.8])
    # (12,499 x 0.8 + 170) / (12,499 + 170) = 0.8027: a saving of 0.197
    saving = measured(results, quantity="seconds", form="saving", published=0.2)
    assert saving == pytest.approx(0.1973, abs=1e-4)


def test_scaling_efficiency_divides_by_the_instances() -> None:
    one = cell_of(Strategy.DDP)
    two = cell_of(Strategy.DDP, 2)
    results = trials(one, [1.0, 1.0]) + trials(two, [0.625, 0.625])
    compared = {
        "cell": {"strategy": "ddp", "instance_count": 2},
        "against": {"strategy": "ddp", "instance_count": 1},
    }
    # 1.6 times the rate of one on two instances
    assert measured(results, form="scaling_efficiency", published=0.8, **compared) == pytest.approx(
        0.8, rel=1e-3
    )


def test_claim_without_runs_is_not_measured_or_not_testable() -> None:
    assert judged([]).finding is ClaimFinding.NOT_MEASURED
    assert judged([], untestable="the library is gone").finding is ClaimFinding.NOT_TESTABLE


def test_every_contradiction_in_the_four_posts_is_listed() -> None:
    contradicting = {
        f"{pack}: {name}"
        for pack in PACKS
        for name, judgement in shipped(pack).items()
        if judgement.finding is ClaimFinding.INCONSISTENT
    }
    assert contradicting == {
        "albert-scaling: efficiency-16-nodes",
        "albert-scaling: faster-training-time",
        "albert-scaling: faster-training-time-title",
        "bert-trainium: faster-time-to-train",
        "bert-trainium: half-the-cost",
        "bert-trainium: half-the-cost-conclusion",
        "bert-trainium: half-the-cost-introduction",
        # one mismatch, seen from each of its three figures
        "bert-trainium: trn1-billed-time",
        "bert-trainium: trn1-cost",
        "bert-trainium: trn1-price",
        "gpt2-compiler: instances",
        "gptj-parallel: six-times-by-the-epoch-alone",
    }


@pytest.mark.parametrize("pack", PACKS)
def test_contradictions_are_worked_out_rightly_and_name_claims_of_the_file(pack: str) -> None:
    judgements = shipped(pack)
    for contradiction in (judgement.claim.contradiction for judgement in judgements.values()):
        if contradiction is None:
            continue
        calculation, _, named = contradiction.text.partition("; contradicts ")
        arithmetic, _, result = calculation.rpartition(" = ")
        if arithmetic:
            assert contradiction.value == pytest.approx(eval(arithmetic), rel=1e-4)
            assert contradiction.value == pytest.approx(float(result.replace(",", "")), rel=2e-3)
        assert set(named.split(", ")) <= judgements.keys()


@pytest.mark.parametrize("pack", PACKS)
def test_shipped_claim_quotes_its_sentence_and_matches_one_original_cell(pack: str) -> None:
    """Cells have no results: a claim that matches none or several of them says so, the others are
    not measured.
    """
    suite = load_suite(SUITES / pack / "original.yaml").suite
    cells = suite.cells
    claims = parse_claims(suite.features["claims"])
    assert [claim.claim_id for claim in claims.claims if not claim.sentence] == []
    # a run without results, so that its cell is known and nothing is measured
    findings = {
        judgement.claim.claim_id: judgement
        for judgement in judge_claims(
            without_contradictions(claims), group_runs(SUITE, cells, ()), ()
        )
    }
    assert {
        name: judgement.reason
        for name, judgement in findings.items()
        if judgement.finding in UNCLEAR
    } == {}
    assert {judgement.finding for judgement in findings.values()} == {
        ClaimFinding.NOT_MEASURED,
        ClaimFinding.NOT_TESTABLE,
    }


def without_contradictions(claims: Claims) -> Claims:
    """The same claims to be judged by cells alone."""
    return replace(
        claims, claims=tuple(replace(claim, contradiction=None) for claim in claims.claims)
    )


def test_a_wrong_document_lists_all_its_problems() -> None:
    with pytest.raises(ClaimsInvalid) as raised:
        parse_claims({"title": "x", "claims": [{"claim_id": 3, "form": "gian"}]})
    text = str(raised.value)
    assert "source" in text
    assert "claims[0].claim_id: got 3, expected text" in text
    assert "gain" in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"against": {}}, r"claims\[0\].against: form gain compares two cells"),
        ({"quantity": "setting"}, "expected untestable with quantity setting"),
    ],
)
def test_an_untestable_claim_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ClaimsInvalid, match=words):
        judged([], **changes)


def test_without_an_execution_the_claims_are_counted_and_contradictions_listed() -> None:
    listed = CliRunner().invoke(commands, ["claims", str(TRAINIUM), "--format", "json"])
    findings = {
        document["claim"]["claim_id"]: document["finding"] for document in json.loads(listed.stdout)
    }
    assert (findings["faster-time-to-train"], findings["p4d-cost"]) == (
        "internally_inconsistent",
        "not_measured",
    )
    done = CliRunner().invoke(commands, ["claims", str(TRAINIUM)], env={"COLUMNS": "200"})
    text = " ".join(done.stdout.split())
    assert "39 claims; contradictions of the source's figures: 3" in text
    assert "findings: 7 internally inconsistent, 8 not measured, 24 not testable" in text
    assert (
        "statements of another form than a number, such as versions, which are not judged: 1"
        in text
    )
    assert (
        "in 7 claims: trn1-price, trn1-billed-time, trn1-cost, faster-time-to-train, half-the-cost,"
        in text
    )


@pytest.mark.parametrize("pack", PACKS)
def test_the_page_of_a_post_counts_its_contradictions_as_the_command_does(pack: str) -> None:
    page = (SUITES.parent / "docs" / "experiments" / f"{pack}.md").read_text()
    claims, words = re.findall(r"\(([0-9]+) claims?, (one|two|three) contradictions?\)", page)[0]
    line, *more = summary_lines(tuple(shipped(pack).values()))
    assert line.endswith(f"figures: {('one', 'two', 'three').index(words) + 1}")
    assert more[0].startswith(f"in {claims} claim")
