"""`traindyno init`: a first suite for a model and its data, with what is estimated of each cell."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from traindyno.api.data_defaults import chat_columns
from traindyno.api.local_paths import find_local, path_problem
from traindyno.api.suite_defaults import suite_name_of
from traindyno.api.suite_text import SuiteUnreadable
from traindyno.cli.client import Client
from traindyno.cli.inputs.plan_options import PricesOption, QuotasOption
from traindyno.cli.lab_choice import FormatOption, LabChoice, with_options_of
from traindyno.cli.option_rules import refuse
from traindyno.cli.option_values import finite, refuse_unwritable, write_new
from traindyno.cli.output import STANDARD_OUTPUT, OutputFormat, print_json, tell, titled_table
from traindyno.core.costs.quantity_text import UNKNOWN, counted, number_text, usd_text
from traindyno.core.documents.problems import Unexpected, close_to, refusal, shown
from traindyno.core.documents.stored import to_document
from traindyno.core.instances.instance_types import close_instance_types, find_instance_type
from traindyno.core.suite.choices import GoalKind, Task
from traindyno.slices.estimates.first_suite import (
    USUAL_ADAPTER,
    Asked,
    NothingFits,
    NothingKnown,
    Proposal,
    is_proposed,
    propose,
)
from traindyno.slices.estimates.first_suite_text import estimate_texts, suite_text, token_figures
from traindyno.travelling_files import listed

GOALS = [GoalKind.CHEAPEST.value, GoalKind.FASTEST.value]
MOST_HOURS = 4
NUMBERS = {"examples": int, "max_usd": float}
TASKS = [task.value for task in Task if task is not Task.SCRIPT]
EXAMPLE = "--task causal-lm --model ./model --data ./texts --max-usd 20"
FileArgument = Annotated[
    Path, typer.Argument(help="The suite file to write; one that exists is kept.")
]
ModelOption = Annotated[
    str | None,
    typer.Option(help="A Hub id, a model's folder, or the config.json of a new model."),
]
DataOption = Annotated[
    str | None, typer.Option(help="A file or folder, an s3:// URI, or a Hub id.")
]
ScriptOption = Annotated[str | None, typer.Option(help="A folder with your own training program.")]
TemplateOption = Annotated[
    str | None, typer.Option(help="A file with the template of conversations.")
]
ExamplesOption = Annotated[int | None, typer.Option(help="Samples of the whole training.", min=1)]
SequenceLengthOption = Annotated[int | None, typer.Option(help="Tokens of one sequence.", min=1)]
AdapterOption = Annotated[
    int | None,
    typer.Option(help="Train LoRA of this rank beside the frozen model, such as 16.", min=1),
]
MaxUsdOption = Annotated[
    float | None,
    typer.Option(help="The most that measuring may cost.", min=0.01, callback=finite),
]
MaxHoursOption = Annotated[
    float, typer.Option(help="The longest that measuring may take.", min=0.1, callback=finite)
]
InstanceOption = Annotated[
    list[str] | None, typer.Option(help="Only this instance type; repeat the option for more.")
]
MaxInstancesOption = Annotated[
    int,
    typer.Option(help="The most instances of one cell: 1, 2, 4 … are tried.", min=1, max=64),
]


def _task(given: str) -> Task:
    return Task(_one_of(TASKS, given, f"a task of the built-in trainer: {', '.join(TASKS)}"))


def _goal(given: str) -> GoalKind:
    return GoalKind(_one_of(GOALS, given, " or ".join(GOALS)))


def _one_of(accepted: Sequence[str], given: str, expected: str) -> str:
    if given not in accepted:
        raise typer.BadParameter(str(Unexpected(expected, given, meant=close_to(given, accepted))))
    return given


@with_options_of(
    LabChoice,
    refuse("lab", beside=("prices", "quotas"), why="with both files no lab is read"),
    refuse("model", "task", "adapter", beside="script", why="a script brings its own"),
    refuse(
        "prices",
        "quotas",
        "instance",
        "max_instances",
        "max_usd",
        "max_hours",
        beside="local",
        why="--local measures this machine, where nothing is paid",
    ),
)
def init(
    choice: LabChoice,
    file: FileArgument = Path("suite.yaml"),
    model: ModelOption = None,
    data: DataOption = None,
    task: Annotated[
        Task | None,
        typer.Option(help="What the model learns.", parser=_task, metavar=f"[{'|'.join(TASKS)}]"),
    ] = None,
    script: ScriptOption = None,
    text_column: Annotated[str | None, typer.Option(help="The data's column with texts.")] = None,
    label_column: Annotated[str | None, typer.Option(help="The data's column with labels.")] = None,
    chat_template: TemplateOption = None,
    examples: ExamplesOption = None,
    sequence_length: SequenceLengthOption = None,
    adapter: AdapterOption = None,
    goal: Annotated[
        GoalKind | None,
        typer.Option(
            help="Without it, fastest with --local and cheapest elsewhere.",
            parser=_goal,
            metavar=f"[{'|'.join(GOALS)}]",
        ),
    ] = None,
    max_usd: MaxUsdOption = None,
    max_hours: MaxHoursOption = MOST_HOURS,
    instance: InstanceOption = None,
    max_instances: MaxInstancesOption = 1,
    prices: PricesOption = None,
    quotas: QuotasOption = None,
    output: FormatOption = OutputFormat.TABLE,
) -> None:
    """Write a first suite: the cells that fit into memory, in the order of their estimated cost or
    time, and the cell that people would use without measuring. Starts nothing.

    In a terminal it asks for what is missing.
    """
    refuse_unwritable(file, "FILE")
    goal = goal or default_goal(is_local=choice.local)
    for name in instance or ():
        _check_type(name)
    _check_template(chat_template)
    given: dict[str, Any] = {"task": task, "model": model, "data": data, "script": script}
    given |= {"examples": examples, "sequence_length": sequence_length, "max_usd": max_usd}
    given |= {"text_column": text_column, "label_column": label_column}
    given["chat_template"] = chat_template
    _complete(given, is_local=choice.local)
    sections = {**_sections(given, file), "goal": goal.value}
    if not choice.local:
        sections["limits"] = {"max_usd": given["max_usd"], "max_hours": max_hours}
    lab = None if prices and quotas else choice.chosen.name
    if lab:
        choice.choose(needs_service=False)
    asked = Asked(
        sections=sections,
        folder=file.parent,
        instances=tuple(instance or ()),
        max_instances=max_instances,
        local=choice.local,
        adapter=None if adapter is None else replace(USUAL_ADAPTER, rank=adapter),
    )
    proposal = propose(asked, prices=prices, quotas=quotas, lab=lab, say=tell)
    write_new(file, suite_text(proposal), "FILE")
    _show(proposal, file, output)
    cells = counted(len(proposal.cells), "cell")
    tell(f"wrote {file}: {cells}; next: traindyno plan {file}{' --local' * choice.local}")


def _check_template(file: str | None) -> None:
    problem = None if file is None else path_problem(file, Path(), may_be_hub_id=False)
    if problem is not None:
        raise typer.BadParameter(problem, param_hint="--chat-template")


def default_goal(*, is_local: bool) -> GoalKind:
    """That of a suite without one."""
    return GoalKind.FASTEST if is_local else GoalKind.CHEAPEST


def _check_type(name: str) -> None:
    """Refuse an instance type that `init` doesn't propose, and name close ones."""
    if find_instance_type(name) is not None and is_proposed(name):
        return
    meant = [close for close in close_instance_types(name) if is_proposed(close) and close != name]
    message = refusal(
        f"got {shown(name)}", "an instance type with GPUs, such as ml.g5.xlarge", meant
    )
    raise typer.BadParameter(message, param_hint="--instance")


def _complete(given: dict[str, Any], *, is_local: bool) -> None:
    """Add what the data says and what a person answers in a terminal to the given options.

    Refuses paths that don't exist.
    """
    for name in ("model", "data", "script"):
        if given[name] is not None:
            _existing(name, given[name])
    given["task"] = _find_task(given)
    given |= _ask_for(_missing(given, is_local=is_local))


def _find_task(given: Mapping[str, Any]) -> Task | None:
    """The task that was given, or the one that the data is for, if it has conversations."""
    task: Task | None = given["task"]
    if task is not None or given["script"] is not None or given["data"] is None:
        return task
    chat = chat_columns({"path": given["data"]}, Path())
    if not chat:
        return None
    tell(f"task {Task.CAUSAL_LM.value}: the data has {' and '.join(chat)}")
    return Task.CAUSAL_LM


def _missing(given: Mapping[str, Any], *, is_local: bool) -> list[str]:
    """Options that `init` needs and that were not given."""
    wanted = ["task", "model", "data"] if given["script"] is None else ["examples"]
    if not is_local:
        wanted.append("max_usd")
    return [name for name in wanted if given[name] is None]


def _sections(given: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """The suite's name and its workload, as its file has them, with paths from its folder."""
    folder = file.parent
    script = given["script"]
    workload: dict[str, Any] = {"source": script and written(script, folder)}
    if script is None:
        workload = {"task": given["task"].value, "model": _model(given["model"], folder)}
        if isinstance(workload["model"], dict):
            workload["tokenizer"] = {
                "train_vocabulary_size": workload["model"]["config"].get("vocab_size", 32_000)
            }
    data = given["data"] and written(given["data"], folder)
    template = given["chat_template"] and written(given["chat_template"], folder)
    columns = {
        "text_column": given["text_column"],
        "label_column": given["label_column"],
        "chat_template": template,
    }
    named = {name: column for name, column in columns.items() if column is not None}
    fields = {
        "dataset": {"path": data, **named} if named else data,
        "examples": given["examples"],
        "sequence_length": given["sequence_length"],
    }
    workload |= {name: value for name, value in fields.items() if value is not None}
    return {"name": suite_name_of(file.stem) or file.stem, **workload}


def _ask_for(missing: Sequence[str]) -> dict[str, Any]:
    """Ask for missing values in a terminal; an answer that is refused is asked for again."""
    options = {name: f"--{name.replace('_', '-')}" for name in missing}
    if missing and not sys.stdin.isatty():
        message = "it is missing, and there is no terminal to ask in"
        raise typer.BadParameter(message, param_hint=", ".join(options.values()))
    answers = dict[str, Any]()
    for name, option in options.items():
        text = option.removeprefix("--")
        if name in NUMBERS:
            answers[name] = typer.prompt(text, type=NUMBERS[name])
        elif name == "task":
            answers[name] = typer.prompt(f"task ({', '.join(TASKS)})", value_proc=_task)
        else:
            answers[name] = typer.prompt(text, value_proc=partial(_existing, name))
    return answers


def _existing(name: str, value: str) -> str:
    problem = path_problem(value, Path()) if value else 'got "", expected a path or an id'
    if problem:
        raise typer.BadParameter(problem, param_hint=f"--{name}")
    return value


def written(value: str, folder: Path) -> str:
    """A path from the current folder as one that starts where the suite file is."""
    is_elsewhere = folder.resolve() != Path.cwd() and not value.startswith(("~", "/"))
    if not is_elsewhere or find_local(value, Path()) is None:
        return value
    from_folder = os.path.relpath(value, folder.resolve())
    return from_folder if from_folder.startswith("..") else f"./{from_folder}"


def _model(given: str, folder: Path) -> str | dict[str, Any]:
    """The model as a suite names it: the content of a config.json for a new model, else the path or
    id.
    """
    path = Path(given).expanduser()
    if path.suffix != ".json" or not path.is_file():
        return written(given, folder)
    try:
        configuration = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SuiteUnreadable(
            f"{given} is no JSON ({error}); expected the config.json of a model"
        ) from error
    if not isinstance(configuration, dict) or "model_type" not in configuration:
        raise SuiteUnreadable(
            f"{given} has no model_type; expected the config.json of a model, as transformers "
            "writes it"
        )
    return {"config": configuration}


def _show(proposal: Proposal, file: Path, output: OutputFormat) -> None:
    if output is OutputFormat.JSON:
        print_json(_document(proposal, file))
    else:
        _print(proposal)


def _print(proposal: Proposal) -> None:
    table = titled_table(
        f"Estimates of {proposal.work}, none of them measured",
        "cell~",
        "memory per device",
        "time",
        "cost",
        ">tokens/s",
        ">$ per billion tokens",
        "evidence",
        "quota",
    )
    for cell, candidate in zip(proposal.plan.cells, proposal.cells, strict=True):
        texts = estimate_texts(candidate, proposal.inputs.prices)
        has, needed = proposal.quota(candidate)
        quota = UNKNOWN if has is None else f"have {has}, need {needed}"
        per_second, per_billion = token_figures(candidate, proposal.tokens).values()
        table.add_row(
            cell.label,
            texts["memory"],
            texts["time"],
            texts["cost"],
            number_text(per_second),
            UNKNOWN if per_billion is None else usd_text(per_billion),
            candidate.evidence,
            quota,
        )
    STANDARD_OUTPUT.print(table)
    if proposal.why_unknown:
        STANDARD_OUTPUT.print(
            f"no basis for estimates: {proposal.why_unknown}; after one run of each cell, plan has "
            "its time and cost"
        )
    for reason in dict.fromkeys(proposal.left_out.values()):
        names = [name for name, why in proposal.left_out.items() if why == reason]
        STANDARD_OUTPUT.print(f"left out, {reason}: {listed(names)}")
    if proposal.too_little:
        STANDARD_OUTPUT.print(proposal.too_little)
    for reason in proposal.plan.refusals:
        STANDARD_OUTPUT.print(f"before it can run: {reason}")
    if note := proposal.inputs.note:
        STANDARD_OUTPUT.print(note)
        for name in dict.fromkeys(candidate.settings.instance for candidate in proposal.cells):
            if price := proposal.inputs.prices.get(name):
                STANDARD_OUTPUT.print(f"price of {name}: {price.source}")
    if (model := proposal.suite.suite.workload.model) is not None and model.path is None:
        STANDARD_OUTPUT.print(
            "the model is new: its weights are random, and its tokenizer is trained on the data"
        )
    cap = proposal.suite.suite.limits.max_usd
    worst = proposal.plan.worst_case_usd
    STANDARD_OUTPUT.print(
        f"measuring costs at most {usd_text(cap if worst is None else min(cap, worst))}"
    )


def _document(proposal: Proposal, file: Path) -> dict[str, Any]:
    cells = [
        {
            "label": cell.label,
            **to_document(candidate),
            **token_figures(candidate, proposal.tokens),
            "fits": candidate.fits,
            "quota": dict(zip(("have", "need"), proposal.quota(candidate), strict=True)),
        }
        for cell, candidate in zip(proposal.plan.cells, proposal.cells, strict=True)
    ]
    return {
        "suite": str(file),
        "why_no_basis": proposal.why_unknown,
        "cells": cells,
        "before_it_can_run": proposal.plan.refusals,
        "left_out": proposal.left_out,
        "too_little": proposal.too_little,
        "note": proposal.inputs.note,
    }


def client() -> Client:
    return Client(
        commands={"init": (init, EXAMPLE)}, before="plan", refusals=(NothingFits, NothingKnown)
    )
