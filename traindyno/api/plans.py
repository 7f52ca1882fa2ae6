"""Plans of suites, the local data that they read, and the start of their executions."""

import secrets
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from traindyno.api.chat_check import chat_lines
from traindyno.api.lab_target import Lab, LabTarget
from traindyno.api.local_paths import StagingRefused, find_local, travel_lines
from traindyno.api.memory_estimates import EstimatesUnavailable, estimate_cells, first_batches
from traindyno.api.model_check import model_lines
from traindyno.api.plan_inputs import PlanInputs, read_plan_inputs
from traindyno.api.staging import StagingArea
from traindyno.api.suite_loading import Suite
from traindyno.aws import clients
from traindyno.aws.client_errors import error_code, is_access_denied
from traindyno.aws.deployment import LabNotDeployed
from traindyno.aws.executions import check_execution_name
from traindyno.core.costs.quantity_text import counted
from traindyno.core.documents.stored import to_document
from traindyno.core.errors import SuiteRefused
from traindyno.core.planning.history import Histories, learn_from
from traindyno.core.planning.memory import CellMemory
from traindyno.core.planning.plan import Plan, plan_suite
from traindyno.core.planning.preparation_plan import refuse_preparation
from traindyno.core.run.data_formats import (
    TOKENISED,
    DatasetFilesInvalid,
    is_documentation,
    is_hidden,
    split_files,
)
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite import Suite as CheckedSuite
from traindyno.lab.continue_suite import CONTINUES, FIRST_BATCHES
from traindyno.sagemaker.images import unavailable_images
from traindyno.store.past_runs import read_past_runs
from traindyno.travelling_files import Reason, Travelling, listed, travelling_data

MISSED = (Reason.LINK, Reason.UNREADABLE)
Say = Callable[[str], None]


def data_lines(suite: CheckedSuite, *, beside: Path, allowed: Collection[Path] = ()) -> list[str]:
    """What `plan` and `run` say of a dataset's files.

    There are no lines for a dataset that is not on this machine, and for a script's, which reads
    its files itself. Raises DatasetFilesInvalid for files that no run could read, and for files of
    the set that would be missing.
    """
    dataset = suite.workload.dataset
    if dataset is None or dataset.path is None or suite.workload.task is Task.SCRIPT:
        return []
    local = find_local(dataset.path, beside)
    if local is None:
        return []
    travelling = travelling_data(local, allowed=allowed)
    if TOKENISED in travelling.files:
        return [f"data: {dataset.path} is tokenised already"]
    try:
        _refuse_missed(travelling)
        names = list(travelling.files)
        lines = []
        used = set[str]()
        for split in filter(None, {dataset.split: None, dataset.evaluation_split: None}):
            files = split_files(names, dataset, split)
            used.update(files)
            lines.append(f"data: split {split} reads {listed(files)}")
        unused = [name for name in names if name not in used]
        if unused:
            lines.append(f"data: not read: {listed(unused)}")
    except DatasetFilesInvalid as error:
        raise DatasetFilesInvalid(f"workload.dataset.path: {dataset.path}: {error}") from error
    if suite.job_measurement.evaluates and dataset.evaluation_split is None:
        lines.insert(
            1,
            (
                "data: evaluation reads a random part of the training sequences, which is then "
                "not trained on"
            ),
        )
    return lines


def _refuse_missed(travelling: Travelling) -> None:
    missed = [
        name
        for name, reason in travelling.left_out.items()
        if reason in MISSED and not is_hidden(name) and not is_documentation(name)
    ]
    if missed:
        rest = listed(list(travelling.files))
        raise DatasetFilesInvalid(
            f"a part of the data would be missing: {listed(missed)} (links, which are not "
            f"followed, or unreadable); {f'only {rest}' if rest else 'nothing'} would be read; "
            "put the files in their place, or remove them; a link to a file can also be named with "
            "--also-send"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundHistories:
    """Earlier runs of the suite's cells; ``why_none`` says why none could be read."""

    by_cell: Histories = field(default_factory=dict)
    why_none: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSuite:
    """A suite with its plan.

    ``plan`` has cells, lanes, costs and times; ``inputs`` prices and quotas; ``files`` says what
    would be sent.
    """

    suite: Suite
    plan: Plan
    inputs: PlanInputs
    histories: FoundHistories
    files: tuple[str, ...]

    @property
    def is_refused(self) -> bool:
        return bool(self.plan.refusals)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why the suite would be refused, in lines; none if it would start."""
        return tuple(line for refusal in self.plan.refusals for line in refusal.splitlines())

    def document(self) -> dict[str, Any]:
        """The plan with its inputs, of JSON values and decimal numbers."""
        document: dict[str, Any] = to_document(self.plan)
        del document["execution_id"]
        return {
            "suite": self.suite.suite.name,
            "region": self.inputs.region,
            "is_refused": self.is_refused,
            "limits": to_document(self.suite.suite.limits),
            **document,
            "quotas": to_document(tuple(self.inputs.quotas.values())),
            "why_no_history": self.histories.why_none,
        }


def plan_in_account(
    suite: Suite,
    *,
    lab: str,
    prices: Path | None,
    quotas: Path | None,
    memory: bool,
    allowed: Collection[Path],
    say: Say,
) -> PlannedSuite:
    """The plan by the prices, quotas and earlier runs of the account of this process's environment.

    With files of both, no account is needed. ``allowed`` are the files that travel although the
    rule leaves them out.
    """
    files = tuple(file_lines(suite, allowed))
    inputs = read_plan_inputs(
        suite.staged,
        price_path=prices,
        quota_path=quotas,
        now=time.time(),
    )
    histories = FoundHistories(why_none="--prices and --quotas are given, so no lab is read")
    if inputs.note is not None:
        histories = FoundHistories(
            why_none="without an AWS account there are no earlier runs to read"
        )
        files += (inputs.note,)
    elif prices is None or quotas is None:
        histories = find_histories(suite, lab=lab, allowed=allowed, say=say)
    memory_cells, memory_notes = _estimate_memory(suite, say) if memory else ((), ())
    planned = _plan_by(inputs, suite, histories.by_cell, memory_cells)
    return PlannedSuite(
        suite=suite,
        plan=replace(planned, notes=(*planned.notes, *memory_notes)),
        inputs=inputs,
        histories=histories,
        files=files,
    )


def _plan_by(
    inputs: PlanInputs, suite: Suite, histories: Histories, memory: Sequence[CellMemory]
) -> Plan:
    planned = plan_suite(
        suite.staged,
        execution_id=suite.suite.name,
        prices=inputs.prices,
        quotas=inputs.quotas,
        histories=histories,
        memory=memory,
    )
    unavailable = unavailable_images(suite.suite, inputs.region) if inputs.region else ()
    return replace(planned, refusals=(*planned.refusals, *unavailable))


def require_accepted(plan: Plan) -> None:
    """Raises SuiteRefused with all reasons."""
    if plan.refusals:
        lines = [line for reason in plan.refusals for line in reason.splitlines()]
        raise SuiteRefused([*lines, f"can't start: {counted(len(plan.refusals), 'reason')} above"])


def refuse_early(suite: Suite, say: Say) -> None:
    """Raise SuiteRefused, with all reasons of a plan, for a suite that the lab would refuse.

    Only the lab knows whether the data is prepared already: reasons against the preparation alone
    are left to it, and so are prices and quotas that the account's user may not read.
    """
    try:
        inputs = read_plan_inputs(
            suite.staged, price_path=None, quota_path=None, now=time.time(), counts_in_use=False
        )
    except (BotoCoreError, ClientError) as error:
        say(f"prices and quotas can't be read here, the lab checks them: {error}")
        return
    if inputs.why_assumed is not None:
        return
    planned = _plan_by(inputs, suite, {}, ())
    of_preparation = refuse_preparation(suite.staged, planned.preparation, inputs.quotas)
    if not {*planned.refusals} <= {*of_preparation}:
        require_accepted(planned)


def _estimate_memory(suite: Suite, say: Say) -> tuple[tuple[CellMemory, ...], tuple[str, ...]]:
    """The cells' memory, and why it is unknown."""
    try:
        return estimate_cells(suite.suite, beside=suite.folder, say=say), ()
    except EstimatesUnavailable as error:
        return (), (f"memory is not estimated: {error}",)


def file_lines(suite: Suite, allowed: Collection[Path]) -> Iterator[str]:
    """Which files of this machine ``run`` sends, what each split reads, and what becomes of the
    model.

    Raises for files that are missing.
    """
    reads = data_lines(suite.suite, beside=suite.folder, allowed=allowed)
    yield from travel_lines(suite.document["workload"], beside=suite.folder, allowed=allowed)
    yield from reads
    yield from chat_lines(suite.suite, suite.folder)
    yield from model_lines(suite.suite, suite.folder)


def find_histories(
    suite: Suite, *, lab: str, allowed: Collection[Path] = (), say: Say
) -> FoundHistories:
    """Reads the lab's table; writes nothing."""
    try:
        target = Lab(name=lab).find()
        document = stage(suite, target, allowed=allowed, say=say, sends=False)
        staged = parse_suite(document, target.features)
        services = target.services
        past = read_past_runs(
            staged, index=services.work_index, executions=services.executions, runs=services.runs
        )
        return FoundHistories(by_cell=learn_from(staged, past))
    except (LabNotDeployed, StagingRefused) as error:
        return FoundHistories(why_none=str(error))
    except ClientError as error:
        if is_access_denied(error):
            return FoundHistories(
                why_none=f"{error_code(error)} in {error.operation_name} of lab {lab}"
            )
        raise


def start_suite(
    suite: Suite,
    target: LabTarget,
    *,
    files: Sequence[str],
    name: str | None,
    allowed: Collection[Path],
    say: Say,
    continues: str | None,
) -> str:
    """Upload the local files of the suite and start the execution, whose name is returned.

    Nothing is sent of a suite that the lab would refuse. ``files`` are its ``file_lines``, which
    are found before the lab is. ``continues`` is the execution that it takes over. Raises
    ExecutionNameRefused, StillRunning or SuiteRefused.
    """
    made = f"{suite.suite.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    execution_id = made if name is None else name
    check_execution_name(execution_id)
    if continues is not None:
        target.require_ended(continues)
    refuse_early(suite, say)
    for line in files:
        say(line)
    staged = stage(suite, target, allowed=allowed, say=say)
    say(f"starting {execution_id}; {repeat_text(execution_id)}")
    beside = {
        CONTINUES: continues,
        FIRST_BATCHES: first_batches(suite.suite, beside=suite.folder),
    }
    target.executions.start(
        execution_id, {**staged, **{name: value for name, value in beside.items() if value}}
    )
    return execution_id


def repeat_text(execution_id: str) -> str:
    """A second try under another name would be another execution, which is billed too."""
    return f"if this is interrupted before it is started, repeat it with --name {execution_id}"


def stage(
    suite: Suite, target: LabTarget, *, allowed: Collection[Path] = (), say: Say, sends: bool = True
) -> dict[str, Any]:
    """The suite's document with what is on this machine in the lab's bucket."""
    area = StagingArea(
        beside=suite.folder,
        s3=clients.s3(),
        bucket=target.deployment.bucket,
        tell=say,
        sends=sends,
        allowed=allowed,
    )
    return area.stage_suite(suite.document)
