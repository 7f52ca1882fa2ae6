"""What a suite file may leave out: each default with its reason, from the file, its data, its model
and this machine.

The built-in tasks need a task, a model, a dataset and what varies; a script its source, arguments
and examples.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeGuard

from traindyno.api.data_defaults import fill_built_in
from traindyno.api.local_paths import find_local, find_path_problems, source_problem
from traindyno.api.suite_draft import SuiteDraft
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.documents.problems import refusal, shown, unknown_field
from traindyno.core.run.settings import setting_types
from traindyno.core.run.workload import Workload
from traindyno.core.suite.checks.suite_check import NAME_CHARACTERS
from traindyno.core.suite.choices import Task
from traindyno.core.suite.feature import SuiteFeature
from traindyno.core.suite.suite import JOB_SECONDS, Confirm
from traindyno.core.suite.suite_file import accepted_fields, sections_of

WORKLOAD_FIELDS = {field.name: None for field in fields(Workload)}
# Section → its fields that may stand at the top of a file.
FIELDS_AT_THE_TOP = {"workload": WORKLOAD_FIELDS, "measurement": {"confirm": None}}
INSTANCE_SECTIONS = ("training", "baseline", "matrix")
#: Nothing is paid on this machine; the amount is for its nominal price.
LOCAL_USD = 1
LOCAL_HOURS = 1
#: A quarter of fewer hours is spent on starting processes before the first cells are measured.
SHORT_HOURS = 0.25
LEAST_JOB_SECONDS = 60
TIMES = ("limits.max_hours", "limits.max_job_seconds")


def suite_name_of(stem: str) -> str:
    """The name of a suite whose file's name says it, without its suffix; empty where no letter or
    digit is in it.
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", stem).strip("-")[:NAME_CHARACTERS].strip("-")


def _spread(document: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The document with the fields at its top moved into the sections that they belong to, and the
    names of those that stand in both places, each with its section.
    """
    spread = dict(document)
    twice = list[tuple[str, str]]()
    for section, names in FIELDS_AT_THE_TOP.items():
        moved = {name: spread[name] for name in spread if name in names}
        inner = spread.get(section, {})
        if moved and isinstance(inner, Mapping):
            spread = {name: value for name, value in spread.items() if name not in moved}
            spread[section] = {**moved, **inner}
            twice += [(name, section) for name in sorted(moved.keys() & inner.keys())]
    return spread, twice


class CompletedSuite(SuiteDraft):
    """A suite document with its defaults."""

    def __init__(
        self,
        written: Mapping[str, Any],
        *,
        stem: str,
        folder: Path,
        is_local: bool,
        features: Iterable[SuiteFeature] = (),
    ) -> None:
        """Fill the defaults of a suite document.

        Args:
            written: Document as it was written.
            stem: Name of the suite file without its suffix.
            folder: Folder where relative paths start.
            is_local: The suite runs on this machine.
        """
        document, twice = _spread(written)
        super().__init__(document, folder)
        self._is_local = is_local
        for name, section in twice:
            self.refuse(
                name, f"got it here and in {section}, expected {name} in one of the two places"
            )
        self._refuse_unknown(accepted_fields(sections_of(features)))
        for name in ("workload", "training", "limits"):
            if isinstance(self.document.get(name), Mapping):
                self.document[name] = dict(self.document[name])
        suite_name = suite_name_of(stem)
        if suite_name:
            self.give("name", suite_name, "the file's name")
        self._fill_instance()
        if all(value.startswith("local.") for value in self._instances()):
            self.give("goal", "fastest", "nothing is paid on this machine")
        else:
            self.give("goal", "cheapest", "unless you say fastest")
        workload = self.document.get("workload")
        if isinstance(workload, dict):
            if isinstance(workload.get("dataset"), str):
                workload["dataset"] = {"path": workload["dataset"]}
            if workload.get("task", Task.SCRIPT if "source" in workload else None) == Task.SCRIPT:
                self._fill_script(workload)
            else:
                fill_built_in(self, workload)
        self._fill_limits()
        self._refuse_paths(workload)

    def _refuse_unknown(self, accepted: Collection[str]) -> None:
        """Note unknown fields at the top of the file; a setting belongs into a section."""
        settings = {name: f"training.{name}" for name in setting_types()}
        for name in self.document.keys() - {*accepted}:
            problem = unknown_field("", name, [*WORKLOAD_FIELDS, *accepted])
            if name in settings:
                message = refusal(
                    f"unknown field {shown(name)}",
                    "it there, or a list in matrix",
                    [settings[name]],
                )
                problem = replace(problem, message=message)
            self.problems.append(problem)
            self.open_paths.add(problem.path)

    def _instances(self) -> list[str]:
        sections = [self.document.get(name) for name in INSTANCE_SECTIONS]
        included = self.document.get("include")
        sections += included if isinstance(included, list) else []
        instances = [
            section.get("instance") for section in sections if isinstance(section, Mapping)
        ]
        values = [
            value
            for instance in instances
            for value in (instance if isinstance(instance, list) else [instance])
        ]
        return [value for value in values if isinstance(value, str)]

    def _fill_instance(self) -> None:
        if self._instances():
            return
        if not self._is_local:
            message = (
                "got nothing, expected an instance type such as ml.g5.xlarge; with --local it is "
                "this machine"
            )
            self.refuse("training.instance", message)
            return
        from localcloud.sagemaker_service.instance_table import count_gpus  # noqa: PLC0415  (the wheel lacks it)

        has_gpu = count_gpus() > 0
        self.give("training.instance", "local.gpu" if has_gpu else "local.cpu", "--local")
        training = self.document.get("training")
        matrix = self.document.get("matrix", {})
        if (
            not has_gpu
            and isinstance(training, Mapping)
            and isinstance(matrix, Mapping)
            and "strategy" not in matrix
        ):
            self.give("training.strategy", "single", "one process")

    def _fill_limits(self) -> None:
        limits = self.document.setdefault("limits", {})
        if not isinstance(limits, dict):
            return
        written = "max_minutes" if "max_minutes" in limits else "max_hours"
        if "max_minutes" in limits:
            self._take_minutes(limits)
        if self._is_local:
            self.give("limits.max_usd", LOCAL_USD, "nothing is paid on this machine")
            self.give("limits.max_hours", LOCAL_HOURS, "of this machine")
        hours = limits.get("max_hours")
        with suppress(ValueError):  # a number may be text, as JSON writes money
            hours = float(hours) if isinstance(hours, str) else hours
        if _is_number(hours):
            self._fill_job_seconds(hours, written)
        else:
            self.open_paths.add("limits.max_job_seconds")

    def _take_minutes(self, limits: dict[str, Any]) -> None:
        """Write a limit in minutes as hours."""
        minutes = limits.pop("max_minutes")
        if "max_hours" in limits:
            self.refuse("limits.max_minutes", "got it beside max_hours, expected one of the two")
        elif _is_number(minutes) and minutes > 0:
            limits["max_hours"] = round(minutes / 60, 4)
        else:
            message = f"got {shown(minutes)}, expected a number above 0"
            self.refuse("limits.max_minutes", message, leaves_open=TIMES)

    def _fill_job_seconds(self, hours: float, written: str) -> None:
        """Fill the limit of a job from that of the suite, whose field is ``written``."""
        is_long = hours > SHORT_HOURS
        jobs_in_a_row = 4 if is_long else 2
        seconds = max(LEAST_JOB_SECONDS, round(hours * SECONDS_PER_HOUR / jobs_in_a_row))
        if JOB_SECONDS.most is not None:
            seconds = min(seconds, int(JOB_SECONDS.most))
        reason = f"{'a quarter' if is_long else 'half'} of {written}, so that leaders run again"
        measurement = self.document.get("measurement")
        confirm = measurement.get("confirm") if isinstance(measurement, Mapping) else None
        minutes = confirm.get("minutes") if isinstance(confirm, Mapping) else None
        if _is_number(minutes):
            room_seconds = Confirm(minutes=max(0, minutes)).room_seconds(2)
            if room_seconds > seconds:
                seconds = room_seconds
                reason = "room for the two runs of confirm"
        self.give("limits.max_job_seconds", seconds, reason)

    def _refuse_paths(self, workload: object) -> None:
        """Note paths that don't exist beside other problems, since ``check_startable`` would refuse
        them later.
        """
        if self.problems and isinstance(workload, dict):
            beside = [
                problem
                for problem in find_path_problems(workload, self.folder)
                if problem.path not in self.open_paths
            ]
            self.problems += beside
            self.open_paths |= {problem.path for problem in beside}

    def _fill_script(self, workload: Mapping[str, Any]) -> None:
        self.give("workload.task", "script", "there is a source")
        source = workload.get("source")
        if "entry_point" in workload:
            return
        wrong = source_problem(source, None, self.folder) if isinstance(source, str) else None
        if wrong is not None:
            self.refuse(f"workload.{wrong[0]}", wrong[1], leaves_open=["workload.entry_point"])
        folder = find_local(source, self.folder) if isinstance(source, str) else None
        if folder is None or not folder.is_dir():
            return
        programs = sorted(path.name for path in folder.glob("*.py"))
        if "train.py" in programs:
            self.give("workload.entry_point", "train.py", f"in {source}")
        elif len(programs) == 1:
            self.give("workload.entry_point", programs[0], f"the only program in {source}")
        else:
            known_programs = ", ".join(programs) or "no .py file"
            self.refuse(
                "workload.entry_point",
                f"got nothing, expected one of the programs in {source}: {known_programs}",
            )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
