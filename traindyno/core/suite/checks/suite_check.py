"""What a well-formed suite must also satisfy, section by section; the grid is checked once the
sections are right.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from traindyno.core.documents.extent import excess_of
from traindyno.core.documents.problems import paths_of, shown, without
from traindyno.core.errors import Problem, SuiteInvalid
from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.run.settings import HYPERPARAMETER_PREFIX, BatchSearch
from traindyno.core.suite.checks.grid_check import (
    check_bounds,
    check_fixed,
    check_instance_type,
    check_matrix,
    check_points,
    check_value,
)
from traindyno.core.suite.checks.job_limits_check import (
    MODEL_PARALLEL_PARAMETERS,
    SDK_PREFIX,
    check_job_limits,
    given_values,
)
from traindyno.core.suite.checks.secrets_check import check_secrets
from traindyno.core.suite.checks.workload_check import check_workload
from traindyno.core.suite.choices import Jobs, Quality, Task
from traindyno.core.suite.feature import SuiteFeature
from traindyno.core.suite.preparation import LOCAL_INSTANCE, REMOTE_INSTANCE
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import parse_section, structure_suite

SEED_ARGUMENT = "measurement.seed_argument"
CONFIRM = "measurement.confirm"
LAST_NAME = re.compile(r"[A-Za-z_]\w*")
MEANT = 0.8  # how alike a name and its misspelling are at least
#: What a suite must have, so that the rest of one without it can be checked.
STAND_INS = {"name": "suite", "goal": "cheapest"}
ANY_LIMITS = {"max_usd": 1, "max_hours": 1, "max_job_seconds": 3600}
ARGUMENT_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_.\-]{0,255}")
NAME = re.compile(r"[a-zA-Z0-9](?:-?[a-zA-Z0-9])*")
NAME_CHARACTERS = 40
BATCH_SIZE = "batch_size_per_device"


def _check_argument(suite: Suite, path: str, name: str | None, what: str = "") -> Iterator[Problem]:
    """The name of a script's argument that the lab gives.

    ``what``: it is needed, because it is this.
    """
    is_script = suite.workload.task is Task.SCRIPT
    if is_script and name is None and what:
        yield Problem(
            path=path,
            message=f"got nothing, expected the name of the script's argument that is {what}",
        )
    elif not is_script and name is not None:
        message = f"got {shown(name)}: only task script has arguments, expected nothing"
        yield Problem(path=path, message=message)
    if name is None:
        return
    if (
        not ARGUMENT_NAME.fullmatch(name)
        or name.startswith(SDK_PREFIX)
        or name == MODEL_PARALLEL_PARAMETERS
    ):
        expected = (
            f"the name of an argument without dashes in front, such as seed; not {SDK_PREFIX}…"
        )
        yield Problem(path=path, message=f"got {shown(name)}, expected {expected}")


def check_seed_argument(suite: Suite) -> Iterator[Problem]:
    name = suite.measurement.seed_argument
    yield from _check_argument(suite, SEED_ARGUMENT, name)
    for section, given in _given_arguments(suite):
        if name in given:
            message = (
                f"{section} gives the argument {name} too, expected it in one of them; "
                "training.seed is the seed of the first trial"
            )
            yield Problem(path=SEED_ARGUMENT, message=message)


def _given_arguments(suite: Suite) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "workload.hyperparameters", suite.workload.hyperparameters
    points = {"training": suite.training, "matrix": suite.matrix}
    points |= {f"include[{index}]": point for index, point in enumerate(suite.include)}
    for section, point in points.items():
        own = {
            name: value for name, value in point.items() if name.startswith(HYPERPARAMETER_PREFIX)
        }
        yield (
            section,
            {name.removeprefix(HYPERPARAMETER_PREFIX): value for name, value in own.items()},
        )


def check_suite(suite: Suite, features: Sequence[SuiteFeature]) -> Iterator[Problem]:
    problems = [*_check_sections(suite, features)]
    yield from problems
    if not problems:
        yield from check_points(suite)


def _check_sections(suite: Suite, features: Sequence[SuiteFeature]) -> Iterator[Problem]:
    if not NAME.fullmatch(suite.name) or len(suite.name) > NAME_CHARACTERS:
        expected = (
            f"1 to {NAME_CHARACTERS} letters, digits and single hyphens, as in albert-scaling"
        )
        yield Problem(path="name", message=f"got {shown(suite.name)}, expected {expected}")
    yield from check_bounds(suite)
    yield from check_workload(suite.workload)
    yield from check_job_limits(suite)
    yield from check_seed_argument(suite)
    yield from _check_confirm(suite)
    yield from _check_goal(suite)
    yield from _check_warmup(suite)
    most = suite.limits.max_job_seconds
    longest = suite.limits.max_run_seconds
    if longest is not None and longest > most:
        message = f"got {longest}, expected at most limits.max_job_seconds, {most}"
        yield Problem(path="limits.max_run_seconds", message=message)
    if suite.limits.chain_jobs and (
        suite.measurement.jobs is Jobs.SHARED or not suite.keeps_checkpoints
    ):
        message = (
            "got true, expected it with measurement: {jobs: separate, checkpoint_every_steps: …}"
        )
        yield Problem(path="limits.chain_jobs", message=message)
    given = suite.measurement
    if given.save_best and not (
        given.save_model and given.evaluate_every_steps and given.checkpoint_every_steps
    ):
        message = (
            "got true, expected it with save_model, evaluate_every_steps and checkpoint_every_steps"
        )
        yield Problem(path="measurement.save_best", message=message)
    yield from check_batch_search(suite)
    yield from _check_preparation(suite)
    for name in suite.pricing.spot:
        yield from check_instance_type(f"pricing.spot.{name}", name)
    for feature in features:
        if feature.section is not None:
            section: Any = parse_section(suite.features, feature.section)
            yield from check_bounds(section)
            yield from feature.check(section)
    yield from check_matrix(suite)
    yield from check_fixed(suite)
    for path, point in _points(suite):
        for name, value in point.items():
            yield from check_value(f"{path}.{name}", name, value)


def _check_confirm(suite: Suite) -> Iterator[Problem]:
    confirm = suite.measurement.confirm
    limits = suite.limits
    if confirm is None:
        return
    if suite.goal.target is not None:
        message = (
            f"a run for goal {suite.goal.kind} ends at its target, and nothing is projected: "
            "expected no confirm"
        )
        yield Problem(path=CONFIRM, message=message)
    yield from _check_argument(
        suite, f"{CONFIRM}.argument", confirm.argument, "its number of steps"
    )
    in_one_job = 1 if suite.measurement.jobs is Jobs.SEPARATE else 2
    for field, seconds, runs in (
        ("max_job_seconds", limits.max_job_seconds, in_one_job),
        ("max_run_seconds", limits.max_run_seconds, 1),
    ):
        if seconds is not None and seconds < (least := confirm.room_seconds(runs)):
            planned = (
                f"{'one run' if runs == 1 else 'two runs'} of confirm.minutes {confirm.minutes:g}"
            )
            message = (
                f"got {seconds}, expected at least {least}: room for {planned}, should they be slow"
            )
            yield Problem(path=f"limits.{field}", message=message)


def _check_goal(suite: Suite) -> Iterator[Problem]:
    """A goal with a limit needs the spread between trials, one of quality evaluations during the
    run.

    The whole training of a chosen cell is a suite of one trial and of the same goal.
    """
    target = suite.goal.target
    task = suite.workload.task
    has_limit = suite.goal.hours is not None or suite.goal.usd is not None
    if has_limit and suite.measurement.trials == 1 and not suite.has_one_cell:
        message = (
            f"got 1, expected at least 2: goal {suite.goal.kind} needs the spread between trials"
        )
        yield Problem(path="measurement.trials", message=message)
    if target is None or task is Task.SCRIPT:
        return
    if suite.measurement.evaluate_every_steps is None:
        message = (
            f"goal {suite.goal.kind} needs evaluations during the run: got nothing, expected a "
            "number of steps"
        )
        yield Problem(path="measurement.evaluate_every_steps", message=message)
    if target.quality is Quality.PERPLEXITY and task is Task.SEQUENCE_CLASSIFICATION:
        message = f"task {task} has no perplexity, expected accuracy or loss"
        yield Problem(path=f"goal.{suite.goal.kind}", message=message)


def _check_warmup(suite: Suite) -> Iterator[Problem]:
    """A run that sets its own number of steps, or ends at a target, needs no step that counts."""
    given = suite.measurement
    counts_steps = given.least_seconds is None and suite.goal.target is None
    if (
        counts_steps
        and suite.workload.task is not Task.SCRIPT
        and given.warmup is not None
        and given.warmup >= given.max_steps
    ):
        message = (
            f"got {given.warmup}, expected fewer than measurement.max_steps, {given.max_steps}: a "
            "rate needs a step after them"
        )
        yield Problem(path="measurement.warmup", message=message)


def _check_preparation(suite: Suite) -> Iterator[Problem]:
    name = suite.preparation.instance
    if name is None:
        return
    yield from check_instance_type("preparation.instance", name)
    instance_type = find_instance_type(name)
    if instance_type and instance_type.has_accelerator:
        message = (
            f"got {shown(name)}, expected a type without accelerators: {REMOTE_INSTANCE} or "
            f"{LOCAL_INSTANCE}"
        )
        yield Problem(path="preparation.instance", message=message)


def _points(suite: Suite) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "training", suite.training
    yield "baseline", suite.baseline
    for section in ("include", "exclude"):
        for index, point in enumerate(getattr(suite, section)):
            yield f"{section}[{index}]", point


def check_batch_search(suite: Suite) -> Iterator[Problem]:
    """A parent process starts the probes, and each later trial needs what the first one found."""
    searches = [
        (path, value)
        for path, value in given_values(suite, BATCH_SIZE)
        if isinstance(value, BatchSearch)
    ]
    for path, value in searches:
        yield from _check_argument(
            suite, f"{path}.argument", value.argument, "its batch per device"
        )
        if f"{HYPERPARAMETER_PREFIX}{value.argument}" in suite.matrix:
            message = (
                f"got {value.argument}, which is an axis of the matrix: expected another "
                "hyperparameter"
            )
            yield Problem(path=f"{path}.argument", message=message)
    if not searches:
        return
    if suite.measurement.jobs is not Jobs.SHARED:
        message = (
            f"got {suite.measurement.jobs}, expected shared: the parent of a shared job probes "
            "batches"
        )
        yield Problem(path="measurement.jobs", message=message)
    if suite.measurement.save_model:
        message = (
            "got true, expected false: a run that saves its model has a job without a parent that "
            "probes batches"
        )
        yield Problem(path="measurement.save_model", message=message)


def parse_suite(document: Mapping[str, Any], features: Sequence[SuiteFeature] = ()) -> Suite:
    """A suite that has no fields but its own and those of ``features``.

    Raises SuiteInvalid with all problems of form, and those of content that they don't hide.
    """
    excess = excess_of(document)
    if excess is not None:
        raise SuiteInvalid([excess])
    try:
        suite = structure_suite(document, features)
    except SuiteInvalid as error:
        further = problems_of_the_rest(document, error.problems, features)
        raise SuiteInvalid([*error.problems, *further]) from error
    problems = [*check_secrets(document), *check_suite(suite, features)]
    if problems:
        raise SuiteInvalid(problems)
    return suite


def problems_of_the_rest(
    document: Mapping[str, Any], wrong: Sequence[Problem], features: Sequence[SuiteFeature]
) -> Iterator[Problem]:
    """Problems of content in what the document has beside the values of a wrong form.

    Left out: what a missing field causes, and what names a field that was perhaps meant.
    """
    if not isinstance(document, Mapping):
        return
    # an element of a list takes the whole list with it, so that the others keep their numbers
    rest = without(document, {problem.path.partition("[")[0] for problem in wrong})
    there = set(paths_of(rest))
    limits = {**ANY_LIMITS, **rest.get("limits", {})}
    filled = {**STAND_INS, **rest, "limits": limits}
    try:
        problems = [*check_suite(structure_suite(filled, features), features)]
    except SuiteInvalid:
        return
    # messages name fields, and no section
    hidden = [LAST_NAME.findall(problem.path)[-1] for problem in wrong if "." in problem.path]
    for problem in problems:
        words = LAST_NAME.findall(problem.message)
        is_caused = any(get_close_matches(name, words, cutoff=MEANT) for name in hidden)
        if problem.path in there and not is_caused:
            yield problem
