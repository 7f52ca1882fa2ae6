"""The argument that receives a trial's seed: only a script has one, and nothing else of the suite gives it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from traindyno.core.documents.problems import shown
from traindyno.core.errors import Problem
from traindyno.core.suite.checks.job_limits_check import MODEL_PARALLEL_PARAMETERS, SDK_PREFIX
from traindyno.core.suite.choices import Task
from traindyno.core.suite.settings import HYPERPARAMETER_PREFIX
from traindyno.core.suite.suite import Suite

PATH = "measurement.seed_argument"
ARGUMENT = re.compile(r"[a-zA-Z][a-zA-Z0-9_.\-]{0,255}")


def check_seed_argument(suite: Suite) -> Iterator[Problem]:
    name = suite.measurement.seed_argument
    if name is None:
        return
    if suite.workload.task is not Task.SCRIPT:
        message = f"task {suite.workload.task} gets the seed of each trial without it, expected nothing"
        yield Problem(path=PATH, message=message)
    if not ARGUMENT.fullmatch(name) or name.startswith(SDK_PREFIX) or name == MODEL_PARALLEL_PARAMETERS:
        expected = f"the name of an argument without dashes in front, such as seed; not {SDK_PREFIX}…"
        yield Problem(path=PATH, message=f"got {shown(name)}, expected {expected}")
    for section, given in _given(suite):
        if name in given:
            message = (
                f"{section} gives the argument {name} too, expected it in one of them; training.seed is the seed of"
                " the first trial"
            )
            yield Problem(path=PATH, message=message)


def _given(suite: Suite) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "workload.hyperparameters", suite.workload.hyperparameters
    points = {"training": suite.training, "matrix": suite.matrix}
    points |= {f"include[{index}]": entry for index, entry in enumerate(suite.include)}
    for section, point in points.items():
        own = {name: value for name, value in point.items() if name.startswith(HYPERPARAMETER_PREFIX)}
        yield section, {name.removeprefix(HYPERPARAMETER_PREFIX): value for name, value in own.items()}
