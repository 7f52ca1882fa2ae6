"""Plans and executions of suites, for programs and notebooks.

A call uses its lab's account for its own time only.
"""

import os
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from traindyno.api.lab_target import Lab, LabTarget
from traindyno.api.notebook import ReportPage, Results, Say, display_here, results_of, say_on_output
from traindyno.api.plans import PlannedSuite, file_lines, plan_in_account, start_suite
from traindyno.api.progress import follow
from traindyno.api.reports import FoundReport, read_report, require_success
from traindyno.api.suite_loading import Suite, check_startable
from traindyno.aws.account import account_of
from traindyno.aws.executions import Execution
from traindyno.core.instances.instance_types import LOCAL_PREFIX
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Verdict
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.sagemaker.request import build_training_job_request
from traindyno.sagemaker.sdk_jobs import SdkJobRefused, build_estimator, build_model_trainer
from traindyno.travelling_files import allowed_paths

AWS = Lab()
PathText = str | os.PathLike[str]


class SuiteExecution:
    """An execution of a suite in a lab."""

    def __init__(self, execution_id: str, lab: Lab) -> None:
        self.execution_id = execution_id
        self.lab = lab

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.execution_id!r}, {self.lab!r})"

    def describe(self) -> Execution:
        """The execution's status and times. Raises ExecutionUnknown."""
        with self.lab.opened() as target:
            return target.describe(self.execution_id)

    def watch(self, *, say: Say = say_on_output) -> "SuiteExecution":
        """Follows it to its end: in a notebook by a live display, elsewhere in lines that ``say``
        gets.

        Interrupting it leaves the execution running. Returns itself. Raises ExecutionFailed.
        """
        with self.lab.opened() as target:
            require_success(follow(target, self.execution_id, display_here(say)))
        return self

    def report(self) -> ReportPage:
        """The report. A stopped or failed execution has one of what it measured until then.

        Raises ExecutionFailed if that is nothing, or ReportMissing while it runs.
        """
        with self.lab.opened() as target:
            stored = read_report(target, target.describe(self.execution_id))
            return ReportPage(stored.report, stored.html.decode(), target.features)

    def verdict(self) -> Verdict:
        """Raises as ``report`` does."""
        return self._find_report().report.verdict

    def results(self) -> Results:
        """A row for each run. Raises as ``report`` does."""
        return results_of(self._find_report().report)

    def estimator(self, *, sagemaker_session: Any = None) -> Any:
        """The recommended cell as an estimator of the SageMaker SDK 2, whose ``fit()`` asks for the
        job that the lab would start for the cell alone.

        Raises SdkJobRefused, and as ``report`` does.
        """
        return build_estimator(self._winning_request(), session=sagemaker_session)

    def model_trainer(self, *, sagemaker_session: Any = None) -> Any:
        """The same as a ModelTrainer of the SDK 3, whose ``train()`` asks for the job.

        Raises SdkJobRefused, and as ``report`` does.
        """
        return build_model_trainer(self._winning_request(), session=sagemaker_session)

    def _winning_request(self) -> dict[str, Any]:
        with self.lab.opened() as target:
            stored = read_report(target, target.describe(self.execution_id))
            return winning_request(target, stored.report)

    def _find_report(self) -> FoundReport:
        with self.lab.opened() as target:
            return read_report(target, target.describe(self.execution_id))


def winning_request(target: LabTarget, report: Report) -> dict[str, Any]:
    """What the lab asks for where the recommended cell has a job of its own."""
    recommended = report.verdict.recommended
    runs = (result.run for result in report.results if result.run.cell.cell_id == recommended)
    run = next(runs, None)
    if run is None or run.cell.settings.instance.startswith(LOCAL_PREFIX):
        recommendation = "recommends no cell" if run is None else f"recommends {run.cell.label}"
        raise SdkJobRefused(
            f"{report.execution_id} {recommendation}: expected a verdict with a cell on an "
            f"instance of AWS"
        )
    deployment = target.deployment
    suite = report.suite
    row = target.services.executions.find(report.execution_id)
    if row is not None and row.script_s3_uri is not None:
        suite = replace(suite, workload=replace(suite.workload, source=row.script_s3_uri))
    settings = JobSettings(
        region=deployment.serving.region,
        role_arn=deployment.training_role_arn,
        results_bucket=deployment.bucket,
        lab=deployment.lab,
        source_s3_uri=row.source_s3_uri if row else deployment.source_s3_uri,
        images=row.images if row else {},
        jobs=deployment.serving.jobs,
    )
    return build_training_job_request(run, suite, attempt=1, settings=settings)


def plan(
    suite: Suite,
    *,
    lab: Lab = AWS,
    prices: PathText | None = None,
    quotas: PathText | None = None,
    memory: bool = True,
    also_send: Iterable[PathText] = (),
    say: Say = say_on_output,
) -> PlannedSuite:
    """The suite's cells, lanes, quotas, cost and time, as ``traindyno plan`` shows them.

    Creates nothing.

    With files of ``prices`` and ``quotas``, no account and no lab are needed. ``memory`` estimates
    that of each cell, where the training libraries are installed. Raises SuiteInvalid.
    """
    check_startable(suite)
    is_offline = prices is not None and quotas is not None
    with nullcontext() if is_offline else account_of(lab.environment(), lab.profile):
        return plan_in_account(
            suite,
            lab=lab.name,
            prices=None if prices is None else Path(prices),
            quotas=None if quotas is None else Path(quotas),
            memory=memory,
            allowed=allowed_paths(also_send),
            say=say,
        )


def run(
    suite: Suite,
    *,
    lab: Lab = AWS,
    name: str | None = None,
    continues: str | None = None,
    also_send: Iterable[PathText] = (),
    say: Say = say_on_output,
) -> SuiteExecution:
    """Starts the suite, as ``traindyno run --no-wait`` does; ``name`` is by default the suite's and
    the time. ``continues`` is an ended execution that it takes over, as with ``--continue``.

    Raises SuiteInvalid, SuiteRefused, LabNotDeployed, StagingRefused, ExecutionNameRefused,
    ExecutionUnknown or StillRunning.
    """
    check_startable(suite)
    allowed = allowed_paths(also_send)
    files = tuple(file_lines(suite, allowed))
    with lab.opened() as target:
        execution_id = start_suite(
            suite, target, files=files, name=name, allowed=allowed, say=say, continues=continues
        )
    return SuiteExecution(execution_id, lab)


def find_execution(execution_id: str, *, lab: Lab = AWS) -> SuiteExecution:
    """An execution that was started before. Raises ExecutionUnknown."""
    execution = SuiteExecution(execution_id, lab)
    execution.describe()
    return execution
