"""A benchmark of unlike work fails; one that was cut off continues."""

from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as bench
from bench import document, groups
from bench.equal_work import equal_work_figures
from bench.figures import Figure, Section, at_least, at_most, spread
from bench.kept import Kept, telling_each_minute
from bench.loop_cases import SIZES, best_cell_case, same_work_case
from bench.race_case import RaceResult

CASE = same_work_case(SIZES[0], is_quick=True)
TITLE = groups.TITLES["loop"]
MET = Figure(name="time", value=1.0, unit="s", budget=at_most(2))


def result(**evidence: Any) -> RaceResult:
    return RaceResult(
        our_step_seconds=(), our_tokens_per_second=(), flops_per_token=1.0, parameters=1, **evidence
    )


def section(*figures: Figure) -> Section:
    return Section(title=TITLE, command=groups.command("loop"), figures=figures)


@pytest.mark.parametrize(
    ("losses", "tokens", "is_equal"),
    [
        (0.0, 0, True),
        (1e-5, 0, True),
        (0.007, 0, False),
        (None, 0, False),
        (0.0, 1, False),
        (0.0, None, False),
    ],
)
def test_different_or_unknown_losses_or_tokens_are_unlike_work(
    losses: float | None, tokens: int | None, is_equal: bool
) -> None:
    evidence = result(largest_loss_difference=losses, token_count_difference=tokens)
    cases = (CASE, best_cell_case("BERT", "data", is_quick=True))
    checks = [check for case in cases for check in equal_work_figures(case, evidence)]
    assert (section(*checks).failed_checks == ()) is is_equal


@pytest.mark.parametrize("is_quick", [True, False])
@pytest.mark.parametrize(("difference", "status"), [(0.0, 0), (0.5, 1)])
def test_a_benchmark_of_unlike_work_fails_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_quick: bool, difference: float, status: int
) -> None:
    checks = equal_work_figures(CASE, result(largest_loss_difference=difference))
    monkeypatch.setattr(bench, "measure", lambda *_, **__: section(MET, *checks))
    monkeypatch.setattr(bench, "DOCUMENT", tmp_path / "performance.md")
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "performance.json")
    bench.DOCUMENT.write_text(f"{document.BEGIN}\n{document.END}\n")
    assert bench.main(["loop", *(["--quick"] if is_quick else [])]) == status
    assert bench.RESULTS.exists() is (status == 0 and not is_quick)


def measured_spread(kept: Kept) -> object:
    figure = Figure(name="step", value=spread([1.0, 2.0, 3.0]), unit="s", budget=at_least(1))
    return kept.case("spread", Section, lambda: section(figure)).figures[0].value


def test_a_cut_off_group_measures_only_its_missing_parts(tmp_path: Path) -> None:
    measured: list[str] = []

    def case(kept: Kept, name: str, value: float) -> Section:
        def measure() -> Section:
            measured.append(name)
            return section(Figure(name=name, value=value, unit="s", budget=at_most(2)))

        return kept.case(name, Section, measure)

    for _ in range(2):
        assert measured_spread(Kept(folder=tmp_path / "spread", is_resumed=True)) == spread(
            [1.0, 2.0, 3.0]
        )
    folder = tmp_path / "loop-0123"
    first = case(Kept(folder=folder), "BERT h64, batch 4", 1.5)
    resumed = Kept(folder=folder, is_resumed=True)
    assert case(resumed, "BERT h64, batch 4", 9.0) == first
    case(resumed, "BERT h64, batch 32", 1.0)
    assert measured == ["BERT h64, batch 4", "BERT h64, batch 32"]
    assert case(Kept(folder=folder), "BERT h64, batch 4", 9.0) != first
    assert (
        case(Kept(folder=tmp_path / "loop-4567", is_resumed=True), "BERT h64, batch 4", 3.0)
        != first
    )
    assert case(Kept(folder=None, is_resumed=True), "BERT h64, batch 4", 3.0) != first


def test_a_long_case_tells_its_progress(capsys: pytest.CaptureFixture[str]) -> None:
    from time import sleep

    with telling_each_minute("10,000 runs", seconds=0.01):
        sleep(0.1)
    assert capsys.readouterr().err.count("10,000 runs: ") >= 2
