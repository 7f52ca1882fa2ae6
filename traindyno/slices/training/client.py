"""`traindyno train`, and what `traindyno watch` shows of a training."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from traindyno.api.lab_target import LabTarget
from traindyno.api.plans import repeat_text
from traindyno.api.reports import ExecutionFailed, write_report
from traindyno.aws.executions import EXECUTION_NAME_RULE
from traindyno.cli.client import Client
from traindyno.cli.commands.run_commands import FAILED, follow_to_end
from traindyno.cli.commands.serving_commands import deploy_recommended
from traindyno.cli.completion import complete_execution
from traindyno.cli.lab_choice import (
    DEFAULT_FOLDER,
    CellOption,
    FolderOption,
    LabChoice,
    with_options_of,
)
from traindyno.cli.option_rules import refuse
from traindyno.cli.option_values import execution_name, finite, new_execution_name
from traindyno.cli.output import STANDARD_OUTPUT, tell, titled_table
from traindyno.core.costs.projected_actual import HEADINGS
from traindyno.core.costs.quantity_text import seconds_text, usd_text
from traindyno.core.documents.places import one_line
from traindyno.core.documents.stored import JsonValue
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.s3_keys import (
    s3_uri,
    saved_model_key,
)
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite import MOST_HOURS, Suite
from traindyno.slices.training.card import card_key, kept_files
from traindyno.slices.training.lab import (
    TrainingDisplay,
    checkpoint_keys,
    find_result,
    find_training,
    plan_from_verdict,
    plan_to_resume,
    start_training,
)
from traindyno.slices.training.model_folder import leave_model
from traindyno.slices.training.plan import Projected, Training
from traindyno.slices.training.report import compared, compared_time_and_cost

SourceArgument = Annotated[
    str,
    typer.Argument(
        help="An execution, whose verdict's cell is trained; with --resume, a training.",
        callback=execution_name,
        autocompletion=complete_execution,
    ),
]
MaxUsdOption = Annotated[
    float | None,
    typer.Option(
        min=0.01,
        max=1e9,
        callback=finite,
        help="The most that the training may cost; by default what the projection needs, and "
        "one job more.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="NAME=VALUE: a script's hyperparameter that differs from the trials'."
    ),
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Continue a training that was stopped, or that failed.")
]
DeployOption = Annotated[
    bool, typer.Option("--deploy", help="Then serve the model, as `traindyno deploy` does.")
]
NameOption = Annotated[
    str | None,
    typer.Option(help=f"The training's name, {EXECUTION_NAME_RULE}.", callback=new_execution_name),
]


def _hyperparameters(given: list[str] | None) -> dict[str, JsonValue]:
    """Read ``NAME=VALUE``; the value is JSON, or text. Raises BadParameter."""
    hyperparameters: dict[str, JsonValue] = {}
    for assignment in given or ():
        name, sign, text = assignment.partition("=")
        if not name or not sign:
            raise typer.BadParameter(f"got {assignment}, expected NAME=VALUE", param_hint="--set")
        try:
            hyperparameters[name] = json.loads(text)
        except ValueError:
            hyperparameters[name] = text
    return hyperparameters


@with_options_of(
    LabChoice,
    refuse(
        "cell",
        "spot",
        "name",
        "set_",
        beside="resume",
        why="a resumed training goes on as it began",
    ),
    refuse("deploy", beside="no_wait", why="the model is served when the training has ended"),
)
def train(
    choice: LabChoice,
    source: SourceArgument,
    *,
    cell: CellOption = None,
    max_usd: MaxUsdOption = None,
    spot: Annotated[bool, typer.Option("--spot", help="Train on spot instances.")] = False,
    set_: SetOption = None,
    resume: ResumeOption = False,
    deploy: DeployOption = False,
    name: NameOption = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Only start it.")] = False,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Train the whole workload with the cell that a verdict recommends; keep the model, with a
    model card.

    A training that was stopped continues with --resume. Ctrl-C ends the command only; `traindyno
    watch` follows again.
    """
    amount = None if max_usd is None else Decimal(str(max_usd))
    changes = _hyperparameters(set_)
    target = choice.find_target()
    if resume:
        suite, training = _resumed(target, source, amount)
    else:
        target.require_execution(source)
        suite, training = plan_from_verdict(
            target,
            source,
            cell=cell,
            name=name,
            max_usd=amount,
            is_spot=spot,
            changes=changes,
            say=tell,
        )
    if changes and suite.workload.task is not Task.SCRIPT:
        raise typer.BadParameter("only a script has hyperparameters of its own", param_hint="--set")
    for line in start_lines(suite, training, target.option):
        tell(line)
    start_training(target, suite, training)
    tell(f"started {training.execution_id}")
    if no_wait:
        return
    show_training(target, training, folder)
    if deploy:
        deploy_recommended(choice, training.execution_id)


def _resumed(
    target: LabTarget, training_id: str, max_usd: Decimal | None
) -> tuple[Suite, Training]:
    suite, training = plan_to_resume(target, training_id, max_usd=max_usd)
    if not any(checkpoint_keys(target, training).values()):
        before = training.earlier[-1]
        tell(f"{before} left no checkpoint: {training.execution_id} begins again with step 1")
    return suite, training


def start_lines(suite: Suite, training: Training, option: str) -> Iterator[str]:
    projected = training.projected
    limits = suite.limits
    if projected is not None:
        yield _projected_text(suite, projected)
    if projected is not None and projected.usd is not None and projected.usd > limits.max_usd:
        yield (
            f"caution: the projection is more than the cap of {usd_text(limits.max_usd)}; there, "
            "the training stops"
        )
    if projected is not None and (projected.seconds or 0) > MOST_HOURS * 3600:
        yield (
            f"caution: an execution ends after {MOST_HOURS // 24} days, and the projection is "
            "longer: --resume goes on then"
        )
    yield (
        f"starting {training.execution_id}: cell {training.cell.label}, at most "
        f"{usd_text(limits.max_usd)}, jobs of {seconds_text(limits.max_job_seconds)} at most"
    )
    if not training.earlier:
        yield repeat_text(training.execution_id)
    yield (
        f"follow it with: traindyno watch {training.execution_id}{option}; stop it with: traindyno "
        f"stop {training.execution_id}{option}; go on with: traindyno train --resume "
        f"{training.training_id}{option}"
    )


def _projected_text(suite: Suite, projected: Projected) -> str:
    examples = f"workload.examples: {suite.workload.examples}"
    if projected.seconds is None:
        return f"projected: unknown, no trial of the cell has a time for {examples}"
    figures = ", ".join(
        " ".join(figure.texts()[:2]) for figure in compared_time_and_cost(projected, None, None)
    )
    if suite.workload.task is not Task.SCRIPT:
        return f"projected: {figures}"
    return f"projected: {figures}, for {examples}; the script's arguments say its length (--set)"


def show_training(target: LabTarget, training: Training, folder: Path) -> None:
    """Follow a training to its end, print what was projected and what it took, and download its
    model card.
    """
    name = training.execution_id
    ended = follow_to_end(target, name, TrainingDisplay(target, training, tell))
    result = find_result(target, training)
    if result is None:
        raise ExecutionFailed(
            ended, [f"{name}: {ended.status.lower()}, without a result", ended.cause or ""]
        )
    figures = compared(training, result)
    if result.outcome is not Outcome.COMPLETED:
        so_far = ", ".join(figure.texts()[2] for figure in figures[:2])
        why = f": {result.message}" if result.message else ""
        tell(f"{name}: {result.outcome.replace('_', ' ')} after {so_far}{why}")
        more = " --max-usd USD" if result.outcome is Outcome.COST_STOPPED else ""
        again = f"traindyno train --resume {training.training_id}{more}{target.option}"
        tell(f"go on from its newest checkpoint, or without one from step 1, with: {again}")
        raise typer.Exit(FAILED)
    table = titled_table(
        f"{training.training_id}: completed", *(f"{heading}~" for heading in HEADINGS)
    )
    for figure in figures:
        table.add_row(*figure.texts())
    STANDARD_OUTPUT.print(table)
    for evaluation in result.measured.evaluations if result.measured else ():
        metrics = evaluation.metrics.items()
        STANDARD_OUTPUT.print(
            f"step {evaluation.step}: "
            + ", ".join(f"{one_line(key)} {value:.4g}" for key, value in metrics)
        )
    for what, uri in kept_files(target.results, result).items():
        STANDARD_OUTPUT.print(f"{what}: {uri}")
    if folder != DEFAULT_FOLDER:
        leave_trained_model(target, name, folder)
    card = target.results.find(card_key(name))
    if card is not None:
        where = s3_uri(target.results.name, card_key(name))
        tell(f"model card: {write_report(folder, training.training_id, card, '.md')}, {where}")
    tell(f"serve it with: traindyno deploy {name}{target.option}")


def leave_trained_model(target: LabTarget, execution: str, folder: Path) -> None:
    """Download the model of a training; nothing if the execution is no training, or saved no model.

    Raises ModelNotLeft.
    """
    training = find_training(target, execution)
    result = None if training is None else find_result(target, training)
    if result is None or result.outcome is not Outcome.COMPLETED:
        return
    place = (execution, result.run.run_id, result.attempts[-1].job_name)
    key = saved_model_key(*place, is_kept=True)
    if not any(target.results.list_keys(key)):
        tell(f"{execution} saved no model")
        return
    leave_model(target.results, key, folder)
    tell(f"the model is in {folder.resolve()}")


class _Training(Client):
    """Follows trainings, and leaves their models."""

    def follow(self, target: LabTarget, execution: str, folder: Path) -> bool:
        training = find_training(target, execution)
        if training is not None:
            show_training(target, training, folder)
        return training is not None

    def leave(self, target: LabTarget, execution: str, folder: Path) -> None:
        leave_trained_model(target, execution, folder)


def client() -> Client:
    return _Training(commands={"train": (train, "first --max-usd 500 --spot")})
