"""`traindyno init`: a first suite for a model and its data, with what is estimated of each cell."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from traindyno.api.local_paths import find_local, path_problem
from traindyno.api.suite_defaults import chat_columns, suite_name_of
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
    estimate_texts,
    is_proposed,
    propose,
    suite_text,
    token_figures,
)
from traindyno.travelling_files import listed

GOALS = (GoalKind.CHEAPEST, GoalKind.FASTEST)
MOST_HOURS = 4
NUMBERS = {"examples": int, "max_usd": float}
TASKS = [each.value for each in Task if each is not Task.SCRIPT]


def _task(given: str) -> Task:
    if given not in TASKS:
        expected = f"a task of the built-in trainer: {', '.join(TASKS)}"
        raise typer.BadParameter(str(Unexpected(expected, given, meant=close_to(given, TASKS))))
    return Task(given)


@with_options_of(
    LabChoice,
    refuse("lab", beside=("prices", "quotas"), why="with both files no lab is read"),
    refuse("model", "task", "adapter", beside="script", why="a script brings its own"),
    refuse(
        *("prices", "quotas", "instance", "max_instances", "max_usd", "max_hours"),
        beside="local",
        why="--local measures this machine, where nothing is paid",
    ),
)
def init(
    choice: LabChoice,
    file: Annotated[
        Path, typer.Argument(help="The suite file to write; one that exists is kept.")
    ] = Path("suite.yaml"),
    model: Annotated[
        str | None,
        typer.Option(help="A Hub id, a model's folder, or the config.json of a new model."),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="A file or folder, an s3:// URI, or a Hub id.")
    ] = None,
    task: Annotated[
        Task | None,
        typer.Option(help="What the model learns.", parser=_task, metavar=f"[{'|'.join(TASKS)}]"),
    ] = None,
    script: Annotated[
        str | None, typer.Option(help="A folder with your own training program.")
    ] = None,
    text_column: Annotated[str | None, typer.Option(help="The data's column with texts.")] = None,
    label_column: Annotated[str | None, typer.Option(help="The data's column with labels.")] = None,
    chat_template: Annotated[
        str | None, typer.Option(help="A file with the template of conversations.")
    ] = None,
    examples: Annotated[
        int | None, typer.Option(help="Samples of the whole training.", min=1)
    ] = None,
    sequence_length: Annotated[
        int | None, typer.Option(help="Tokens of one sequence.", min=1)
    ] = None,
    adapter: Annotated[
        int | None,
        typer.Option(help="Train LoRA of this rank beside the frozen model, such as 16.", min=1),
    ] = None,
    goal: Annotated[GoalKind, typer.Option(help="cheapest or fastest.")] = GoalKind.CHEAPEST,
    max_usd: Annotated[
        float | None,
        typer.Option(help="The most that measuring may cost.", min=0.01, callback=finite),
    ] = None,
    max_hours: Annotated[
        float, typer.Option(help="The longest that measuring may take.", min=0.1, callback=finite)
    ] = MOST_HOURS,
    instance: Annotated[
        list[str] | None, typer.Option(help="Only this instance type; repeat the option for more.")
    ] = None,
    max_instances: Annotated[
        int,
        typer.Option(help="The most instances of one cell: 1, 2, 4 … are tried.", min=1, max=64),
    ] = 1,
    prices: PricesOption = None,
    quotas: QuotasOption = None,
    output: FormatOption = OutputFormat.TABLE,
) -> None:
    """Write a first suite: the cells that fit into memory, in the order of their estimated cost or
    time, and the cell that people would use without measuring. Starts nothing.

    In a terminal it asks for what is missing.
    """
    refuse_unwritable(file, "FILE")
    if goal not in GOALS:
        raise typer.BadParameter(
            refusal(f"got {shown(goal.value)}", "cheapest or fastest", ()), param_hint="--goal"
        )
    for name in instance or ():
        if find_instance_type(name) is None or not is_proposed(name):
            expected = "an instance type with GPUs, such as ml.g5.xlarge"
            meant = [
                each for each in close_instance_types(name) if is_proposed(each) and each != name
            ]
            message = refusal(f"got {shown(name)}", expected, meant)
            raise typer.BadParameter(message, param_hint="--instance")
    given: dict[str, Any] = {"task": task, "model": model, "data": data, "script": script}
    given |= {"examples": examples, "max_usd": max_usd}
    for name in ("model", "data", "script"):
        if given[name] is not None:
            _existing(name, given[name])
    is_open = script is None and task is None and data is not None
    if is_open and (chat := chat_columns({"path": data}, Path())):
        given["task"] = Task.CAUSAL_LM
        tell(f"task {Task.CAUSAL_LM.value}: the data has {' and '.join(chat)}")
    wanted = ("task", "model", "data") if script is None else ("examples",)
    given |= _ask_for(
        [
            name
            for name in (*wanted, *(() if choice.local else ("max_usd",)))
            if given[name] is None
        ],
    )
    workload: dict[str, Any] = {"source": script and written(script, file.parent)}
    if script is None:
        workload = {"task": given["task"].value, "model": _model(given["model"], file.parent)}
        if isinstance(workload["model"], dict):
            workload["tokenizer"] = {
                "train_vocabulary_size": workload["model"]["config"].get("vocab_size", 32_000)
            }
    data = given["data"] and written(given["data"], file.parent)
    template = chat_template and written(chat_template, file.parent)
    columns = {
        "text_column": text_column,
        "label_column": label_column,
        "chat_template": template,
    }
    columns = {name: value for name, value in columns.items() if value is not None}
    fields = {"dataset": {"path": data, **columns} if columns else data}
    fields |= {"examples": given["examples"], "sequence_length": sequence_length}
    workload |= {name: value for name, value in fields.items() if value is not None}
    limits = {} if choice.local else {"max_usd": given["max_usd"], "max_hours": max_hours}
    name = suite_name_of(file.stem) or file.stem
    sections = {
        "name": name,
        **workload,
        "goal": goal.value,
        **({"limits": limits} if limits else {}),
    }
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
    if output is OutputFormat.JSON:
        print_json(_document(proposal, file))
    else:
        _print(proposal)
    tell(
        f"wrote {file}: {counted(len(proposal.cells), 'cell')}; next: traindyno plan "
        f"{file}{' --local' * choice.local}"
    )


def _ask_for(missing: Sequence[str]) -> dict[str, Any]:
    """In a terminal an answer that is refused is asked for again."""
    options = {name: f"--{name.replace('_', '-')}" for name in missing}
    if missing and not sys.stdin.isatty():
        message = "it is missing, and there is no terminal to ask in"
        raise typer.BadParameter(message, param_hint=", ".join(options.values()))
    found = dict[str, Any]()
    for name, option in options.items():
        text = option.removeprefix("--")
        if name in NUMBERS:
            found[name] = typer.prompt(text, type=NUMBERS[name])
        elif name == "task":
            found[name] = typer.prompt(f"task ({', '.join(TASKS)})", value_proc=_task)
        else:
            found[name] = typer.prompt(text, value_proc=partial(_existing, name))
    return found


def _existing(name: str, value: str) -> str:
    if problem := path_problem(value, Path()) if value else 'got "", expected a path or an id':
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
    """The content of a config.json as the configuration of a new model; else the path or id
    itself.
    """
    path = Path(given).expanduser()
    if path.suffix != ".json" or not path.is_file():
        return written(given, folder)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SuiteUnreadable(
            f"{given} is no JSON ({error}); expected the config.json of a model"
        ) from error
    if not isinstance(found, dict) or "model_type" not in found:
        raise SuiteUnreadable(
            f"{given} has no model_type; expected the config.json of a model, as transformers "
            "writes it"
        )
    return {"config": found}


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
    for cell, each in zip(proposal.plan.cells, proposal.cells, strict=True):
        texts = estimate_texts(each, proposal.inputs.prices)
        has, needed = proposal.quota(each)
        quota = UNKNOWN if has is None else f"have {has}, need {needed}"
        per_second, per_billion = token_figures(each, proposal.tokens).values()
        table.add_row(
            cell.label,
            texts["memory"],
            texts["time"],
            texts["cost"],
            number_text(per_second),
            UNKNOWN if per_billion is None else usd_text(per_billion),
            each.evidence,
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
        for name in dict.fromkeys(each.settings.instance for each in proposal.cells):
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
            **to_document(each),
            **token_figures(each, proposal.tokens),
            "fits": each.fits,
            "quota": dict(zip(("have", "need"), proposal.quota(each), strict=True)),
        }
        for cell, each in zip(proposal.plan.cells, proposal.cells, strict=True)
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


EXAMPLE = "--task causal-lm --model ./model --data ./texts --max-usd 20"
CLIENT = Client(
    commands={"init": (init, EXAMPLE)}, before="plan", refusals=(NothingFits, NothingKnown)
)
