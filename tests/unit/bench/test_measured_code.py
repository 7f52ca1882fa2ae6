"""A section of docs/performance.md that is older than its code is listed; a benchmark of unlike work fails."""

import ast
import re
from pathlib import Path

import pytest

from bench import __main__ as bench
from bench import document, groups
from bench.equal_work import equal_work_figures
from bench.figure_text import section_lines
from bench.figures import Figure, Section, at_least, at_most, spread
from bench.kept import Kept, telling_each_minute
from bench.loop_cases import SIZES, best_cell_case, same_work_case
from bench.measured_code import PATHS, code_digest
from bench.race_case import RaceResult
from localcloud.home import REPO_ROOT

CASE = same_work_case(SIZES[0], is_quick=True)
TITLE = groups.TITLES["step_log"]
STEP_LOG = "bench/step_log.py"
MET = Figure(name="time", value=1.0, unit="s", budget=at_most(2))


def result(**evidence: float | None) -> RaceResult:
    return RaceResult(our_step_seconds=(), our_tokens_per_second=(), flops_per_token=1.0, parameters=1, **evidence)  # type: ignore[arg-type]


def section(*figures: Figure) -> Section:
    return Section(title=TITLE, command=groups.command("step_log"), figures=figures)


@pytest.mark.parametrize(("difference", "is_equal"), [(0.0, True), (1e-5, True), (0.007, False), (None, False)])
def test_losses_that_differ_or_are_unknown_are_unlike_work(difference: float | None, is_equal: bool) -> None:
    checks = equal_work_figures(CASE, result(largest_loss_difference=difference))
    assert (section(*checks).failed_checks == ()) is is_equal


@pytest.mark.parametrize(("difference", "is_equal"), [(0, True), (1, False), (None, False)])
def test_tokens_that_only_one_side_counts_are_unlike_work(difference: int | None, is_equal: bool) -> None:
    checks = equal_work_figures(
        best_cell_case("BERT", "data", is_quick=True), result(token_count_difference=difference)
    )
    assert (section(*checks).failed_checks == ()) is is_equal


@pytest.mark.parametrize("is_quick", [True, False])
@pytest.mark.parametrize(("difference", "status"), [(0.0, 0), (0.5, 1)])
def test_a_benchmark_of_unlike_work_fails_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_quick: bool, difference: float, status: int
) -> None:
    checks = equal_work_figures(CASE, result(largest_loss_difference=difference))
    monkeypatch.setattr(bench, "measure", lambda *_, **__: section(MET, *checks))
    monkeypatch.setattr(bench, "DOCUMENT", tmp_path / "performance.md")
    assert bench.main(["step_log", *(["--quick"] if is_quick else [])]) == status
    assert bench.DOCUMENT.exists() is (status == 0 and not is_quick)


def test_every_group_says_which_code_it_measures() -> None:
    assert list(PATHS) == list(groups.MODULES)
    digests = [code_digest(group) for group in groups.MODULES]
    assert len(set(digests)) == len(digests)
    missing = [path for paths in PATHS.values() for path in paths if not (REPO_ROOT / path).exists()]
    assert missing == []


# They hold and print figures, and decide none.
FRAME = frozenset({"bench/figures.py", "bench/groups.py", "bench/kept.py", "bench/tell.py"})
NAMED = re.compile(r"bench\.\w+")


def bench_files(file: str, known: frozenset[str] = frozenset()) -> frozenset[str]:
    """The file and those of the folder bench that it names, as an import or to start a process, and so on."""
    if file in known:
        return known
    known |= {file}
    tree = ast.parse((REPO_ROOT / file).read_text(encoding="utf-8"))
    for named in sorted({f"{name.replace('.', '/')}.py" for node in ast.walk(tree) for name in named_modules(node)}):
        if named not in FRAME and (REPO_ROOT / named).exists():
            known = bench_files(named, known)
    return known


def named_modules(node: ast.AST) -> list[str]:
    match node:
        case ast.ImportFrom(module="bench"):
            return [f"bench.{alias.name}" for alias in node.names]
        case ast.ImportFrom(module=str(name)) | ast.Constant(value=str(name)) if NAMED.fullmatch(name):
            return [name]
    return []


@pytest.mark.parametrize("group", groups.MODULES)
def test_a_group_measures_all_that_it_uses_of_the_benchmarks(group: str) -> None:
    module = groups.MODULES[group].replace(".", "/") + ".py"
    assert sorted(bench_files(module) - {module} - set(PATHS[group])) == []


def copied(root: Path) -> Path:
    """The code that the group step_log measures."""
    for path in ("traindyno/callbacks/log.py", *(path for path in PATHS["step_log"] if path.endswith(".py")), STEP_LOG):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes((REPO_ROOT / path).read_bytes())
    return root


def test_a_section_is_outdated_from_a_change_of_its_code_until_it_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = copied(tmp_path)
    monkeypatch.setattr(bench, "DOCUMENT", tmp_path / "performance.md")
    monkeypatch.setattr(bench, "digests_by_title", lambda: {TITLE: code_digest("step_log", root)})

    def measure() -> None:
        lines = section_lines(section(MET), f"today · commit abc1234 · code {code_digest('step_log', root)}")
        bench.DOCUMENT.write_text(document.merge("", {TITLE: "\n".join(lines)}, [TITLE]))

    def outdated() -> str:
        assert bench.main(["--outdated"]) == 0
        return capsys.readouterr().err

    measure()
    assert outdated() == ""
    (root / "traindyno/callbacks/log.py").write_text("changed = True\n")
    assert outdated() == "older than its code: python -m bench step_log\n"
    measure()
    assert outdated() == ""


def test_a_section_from_before_there_were_digests_is_outdated() -> None:
    page = document.merge("", {TITLE: "\n".join(section_lines(section(MET), "today · commit abc1234"))}, [TITLE])
    assert document.outdated_titles(page, {TITLE: "0" * 12}) == [TITLE]


def test_files_elsewhere_and_bytecode_dont_age_a_section(tmp_path: Path) -> None:
    root = copied(tmp_path)
    before = code_digest("step_log", root)
    for path in ("training/run/train.py", "traindyno/callbacks/__pycache__/log.py", "traindyno/callbacks/log.pyc"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("changed = True\n")
    assert code_digest("step_log", root) == before
    (root / "traindyno/callbacks/new.py").write_text("")
    assert code_digest("step_log", root) != before


def measured_spread(kept: Kept) -> object:
    figure = Figure(name="step", value=spread([1.0, 2.0, 3.0]), unit="s", budget=at_least(1))
    return kept.case("spread", Section, lambda: section(figure)).figures[0].value


def test_a_group_that_was_cut_off_measures_only_what_it_lacks(tmp_path: Path) -> None:
    measured: list[str] = []

    def case(kept: Kept, name: str, value: float) -> Section:
        def measure() -> Section:
            measured.append(name)
            return section(Figure(name=name, value=value, unit="s", budget=at_most(2)))

        return kept.case(name, Section, measure)

    for _ in range(2):
        assert measured_spread(Kept(folder=tmp_path / "spread", is_resumed=True)) == spread([1.0, 2.0, 3.0])
    folder = tmp_path / "loop-0123"
    first = case(Kept(folder=folder), "BERT h64, batch 4", 1.5)
    resumed = Kept(folder=folder, is_resumed=True)
    assert case(resumed, "BERT h64, batch 4", 9.0) == first
    case(resumed, "BERT h64, batch 32", 1.0)
    assert measured == ["BERT h64, batch 4", "BERT h64, batch 32"]
    assert case(Kept(folder=folder), "BERT h64, batch 4", 9.0) != first
    assert case(Kept(folder=tmp_path / "loop-4567", is_resumed=True), "BERT h64, batch 4", 3.0) != first
    assert case(Kept(folder=None, is_resumed=True), "BERT h64, batch 4", 3.0) != first


def test_a_long_case_tells_its_progress(capsys: pytest.CaptureFixture[str]) -> None:
    from time import sleep

    with telling_each_minute("10,000 runs", seconds=0.01):
        sleep(0.1)
    assert capsys.readouterr().err.count("10,000 runs: ") >= 2
