"""Text of suites, logs and services is shown as it is: no markup, nothing that a terminal obeys."""

import ast
import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from rich.table import Table

from tests.unit.cli.test_execution_receipt import target_of
from tests.unit.cli.test_finish import ENDED, target_with
from tests.unit.cli.test_progress import JOB, SUMMARY, state
from tests.unit.core.documents.test_visible_text import LETTERS, OBEYED
from tests.unit.planned_lab import empty_lab
from tests.unit.report.test_report import report_of
from tests.unit.run_samples import completed_result, failed_result, make_suite
from tests.unit.suites import script_document
from traindyno.api.progress import NoProgress
from traindyno.aws.executions import Execution
from traindyno.cli.commands.run_commands import finish
from traindyno.cli.display import progress
from traindyno.cli.lab_choice import LabChoice
from traindyno.cli.main import app
from traindyno.cli.output import STANDARD_OUTPUT, OutputFormat, Terminal, print_json
from traindyno.core.documents.problems import visible
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.suite import Suite
from traindyno.features import FEATURES
from traindyno.report.html import render
from traindyno.store.executions import Judgement

LITERALS = ("[/INST]", "[bold]x[/bold]", ":smile:")
HOSTILE = f"{' '.join(LITERALS)} \x1b]0;t\x07\x9b31m\x7f\u202e\u2066\u200f\ud800\r"
CLI = Path(progress.__file__).parents[1]
WIDE = 4_000
# What display and commands build of: the rest of rich, such as Text.from_markup, would pass text
# around the terminal.
PARTS_OF_RICH = {
    "rich.console.Group",
    "rich.console.RenderableType",
    "rich.live.Live",
    "rich.padding.Padding",
    "rich.table.Table",
}
WRITERS = {
    "sys.stdout",
    "sys.stderr",
    "typer.echo",
    "typer.secho",
    "typer.style",
    "typer.prompt",
    "typer.confirm",
}
# entry.py writes one line of its own words, where Ctrl-C came before the modules were loaded.
MODULES = sorted(path for path in CLI.rglob("*.py") if path.name not in {"output.py", "entry.py"})


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """No text is folded; Typer reads the variable."""
    monkeypatch.setattr(STANDARD_OUTPUT, "width", WIDE)
    monkeypatch.setenv("COLUMNS", str(WIDE))


def hostile_suite() -> Suite:
    return make_suite(
        name=HOSTILE,
        matrix={"hyperparameters.prompt": (HOSTILE, f"2{HOSTILE}")},
        training={"instance": "ml.p4d.24xlarge"},
    )


def hostile_results() -> list[RunResult]:
    suite = hostile_suite()
    first, second = suite.cells
    assert HOSTILE in first.label
    failed = failed_result(second, 1, Outcome.USER_CODE_ERROR, HOSTILE)
    measured = [completed_result(first, trial, suite=suite) for trial in (1, 2)]
    return [*measured, replace(failed, log_tail=(HOSTILE,))]


def ended(**changes: Any) -> Execution:
    return replace(ENDED, **{"execution_id": HOSTILE, **changes})


def show_verdict(folder: Path) -> None:
    target = target_with(report_of(hostile_results(), hostile_suite()))
    finish(
        target,
        ended(execution_id="[/INST] [bold]x[/bold] :smile: \x1b\u202e"),
        OutputFormat.TABLE,
        folder,
    )


def show_failure(folder: Path) -> None:
    with pytest.raises(BaseException, match="1"):
        finish(
            target_of(empty_lab()),
            ended(status="FAILED", error="States.TaskFailed", cause=HOSTILE),
            OutputFormat.TABLE,
            folder,
        )


def watch_on_a_terminal(_: Path) -> None:
    """Rich's own sequences move the cursor, so what it draws between them is looked at."""
    console = Terminal(file=StringIO(), width=WIDE)
    summary = replace(SUMMARY, outcome=Outcome.USER_CODE_ERROR, message=HOSTILE, cell_label=HOSTILE)
    summary = replace(summary, is_contended=True)
    job = replace(JOB, label=HOSTILE, phase=HOSTILE, step=None)
    seen = replace(state(ended=2), ended={"r1": summary}, jobs=(job,))
    with progress.LiveDisplay(console) as shown:
        shown.update(seen)
        shown.update(NoProgress(HOSTILE))
    sys.stdout.write(console.file.getvalue())  # type: ignore[attr-defined]


def call(*words: str) -> int:
    """The command as a shell starts it."""
    with pytest.MonkeyPatch.context() as patched, pytest.raises(SystemExit) as left:
        patched.setattr("sys.argv", ["traindyno", *words])
        app()
    return int(str(left.value.code or 0))


def plan(folder: Path) -> None:
    """The refusal of an argument that a shell would read."""
    quotas = {
        "ml.g5.xlarge for training job usage": 4,
        "Number of instances across all training jobs": 8,
    }
    files = {
        "suite.yaml": script_document(
            matrix={"hyperparameters.prompt": [sayable(HOSTILE), "plain"]},
            measurement={"trials": 1, "jobs": "separate"},
        ),
        "prices.yaml": {
            "region": "us-east-1",
            "as_of": "2026-11-21",
            "prices": {"local.cpu": 1, "ml.g5.xlarge": 1.4},
        },
        "quotas.yaml": {"region": "us-east-1", "quotas": quotas},
    }
    files["suite.yaml"]["training"] = {"instance": "ml.g5.xlarge"}
    for name, document in files.items():
        (folder / name).write_text(yaml.safe_dump(document), encoding="utf-8")
    paths = {name: str(folder / name) for name in files}
    assert (
        call(
            "plan",
            paths["suite.yaml"],
            "--prices",
            paths["prices.yaml"],
            "--quotas",
            paths["quotas.yaml"],
        )
        == 2
    )


def sayable(text: str) -> str:
    """A suite file can hold no lone surrogate."""
    return text.replace("\ud800", "")


def refuse_a_suite(folder: Path) -> None:
    path = folder / "suite.yaml"
    path.write_text(yaml.safe_dump({sayable(HOSTILE): sayable(HOSTILE)}), encoding="utf-8")
    assert call("plan", str(path)) == 2


def refuse_a_word(_: Path) -> None:
    """A command and the value of an option."""
    assert call(sayable(HOSTILE)) == call("list", "--format", sayable(HOSTILE)) == 2


def list_executions(_: Path) -> None:
    judgement = Judgement(
        finding="found", headline=HOSTILE, recommended=None, is_simulated=False, run_count=1
    )
    row = SimpleNamespace(run_count=2, judgement=judgement)
    target = SimpleNamespace(
        executions=SimpleNamespace(
            list_latest=lambda _: [ended(), ended(status="FAILED", error=HOSTILE)]
        ),
        services=SimpleNamespace(executions=SimpleNamespace(find=lambda _: row)),
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LabChoice, "find_target", lambda _: target)
        assert call("list") == 0


SHOWING: dict[str, Callable[[Path], None]] = {
    function.__name__: function
    for function in (
        show_verdict,
        show_failure,
        watch_on_a_terminal,
        plan,
        refuse_a_suite,
        refuse_a_word,
        list_executions,
    )
}


@pytest.mark.parametrize("name", SHOWING)
def test_hostile_text_is_shown_as_it_is(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    SHOWING[name](tmp_path)
    shown = capsys.readouterr()
    text = shown.out + shown.err
    assert OBEYED.search(text) is None, repr(text)
    for literal in LITERALS:
        assert literal in " ".join(text.split()), text


def texts(count: int) -> Iterator[str]:
    dice = random.Random(8)
    words = (
        ["[/INST]", "[bold]", "[/", "]", "\\", "[link=x]", ":smile:", "[@click=x]"] * 20
        + ["\x1b", "\x7f", "\u202e"] * 20
        + LETTERS
    )
    for _ in range(count):
        yield "".join(dice.choices(words, k=dice.randrange(1, 12)))


def drawn(text: str, *, is_terminal: bool) -> str:
    """The text in each of the seven places that rich makes a Text of."""
    console = Terminal(file=StringIO(), width=WIDE, force_terminal=is_terminal, color_system=None)
    table = Table(text, title=text, caption=text, title_justify="left")
    table.add_column(text)
    table.add_row(text, text)
    console.print(text)
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("is_terminal", [False, True])
def test_no_text_reaches_a_terminal_as_markup_or_control(is_terminal: bool) -> None:
    for text in texts(300):
        shown = drawn(text, is_terminal=is_terminal)
        assert OBEYED.search(shown) is None, repr(text)
        if not {"\n", "\t"} & set(text):
            assert shown.count(visible(text).strip()) >= 7, repr(text)


def test_json_is_exact_and_printable() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "stdout", sink := StringIO())
        for text in texts(300):
            sink.seek(sink.truncate(0))
            print_json({text: text})
            # JSON reads two halves of a surrogate pair as the character.
            joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
            assert json.loads(sink.getvalue()) == {joined: joined}
            assert sink.getvalue().replace("\n", "").isprintable()


def test_a_report_of_hostile_text_holds_nothing_for_a_browser_to_obey() -> None:
    page = render(report_of(hostile_results(), hostile_suite()), FEATURES)
    page.encode("utf-8")
    assert all(literal in page for literal in LITERALS)
    assert OBEYED.search(page) is None


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(CLI)))
def test_only_one_module_writes_to_the_terminal(path: Path) -> None:
    ways = set(ways_around(ast.parse(path.read_text(encoding="utf-8"))))
    assert not ways, (
        f"{path.name}: got {ways}, expected output.py's tell, print_json, styled or a Terminal"
    )


def ways_around(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (
                    alias.name for alias in names if alias.name.split(".")[0] in {"rich", "click"}
                )
            case ast.ImportFrom(module=str(module), names=names):
                if module.split(".")[0] in {"rich", "click"} or module in {"sys", "typer._click"}:
                    yield from (
                        {f"{module}.{alias.name}" for alias in names} - PARTS_OF_RICH - {"sys.exit"}
                    )
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if f"{owner}.{name}" in WRITERS:
                yield f"{owner}.{name}"
            case ast.Call(func=ast.Name(id="print")):
                yield "print"
            case ast.keyword(arg="markup" | "highlight" | "emoji" as name):
                yield f"{name}="
