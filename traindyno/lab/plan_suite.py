"""Check a suite, price it, and find existing tokens; write suite and plan before any job starts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from traindyno.aws.data_listing import DataListing
from traindyno.aws.objects import OriginalMissing
from traindyno.aws.prices import PriceSource
from traindyno.core.costs.prices import SECONDS_PER_HOUR, PriceList
from traindyno.core.errors import Problem, ServiceFault, SuiteInvalid, SuiteRefused
from traindyno.core.instances.instance_types import LOCAL_PREFIX, has_instance_storage
from traindyno.core.lab_names import EXECUTION_HOURS
from traindyno.core.measurement.run_result import run_result_document
from traindyno.core.planning.history import PastRun, learn_from, learn_host_priors, work_id_of
from traindyno.core.planning.plan import Plan, plan_suite, stored_plan
from traindyno.core.planning.preparation_plan import planned_instances
from traindyno.core.run.data_formats import TOKENISED
from traindyno.core.run.tokens import TokenSet
from traindyno.core.run.workload import Workload
from traindyno.core.s3_keys import (
    CODE_PREFIX,
    execution_code_key,
    execution_script_key,
    is_s3_uri,
    plan_key,
    result_key,
    s3_uri,
    suite_key,
)
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import Task
from traindyno.core.suite.feature import SuiteFeature
from traindyno.core.suite.preparation import (
    LOCAL_INSTANCE,
    Origin,
    model_key,
    needed_tokens,
    preparation_instance,
    preparation_settings,
    tokens_key,
)
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import stored_suite
from traindyno.lab.continue_suite import (
    CELL_LABELS,
    CONTINUES,
    FIRST_BATCHES,
    Continued,
    read_continued,
    split_input,
)
from traindyno.sagemaker.images import ImageUnavailable, find_conflicts, select_image_uri
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.store.executions import ExecutionRow, ExecutionRows
from traindyno.store.owners import RunRows
from traindyno.store.past_runs import WorkIndex, read_past_runs
from traindyno.store.results_bucket import USABLE_SECONDS, ResultsBucket, TokenCache
from traindyno.store.spending import Spending

PINNED = "by its revision"
GB = 10**9
# Room for the image's writable layer, the code and what the run writes.
ROOM_GB = 10
# Step Functions takes causes of up to 32,768 characters.
REFUSAL_LENGTH = 32_000
STAGED_CODE = (
    "expected the code in S3, s3://…/sourcedir.tar.gz: `traindyno run` uploads a folder, "
    "StartExecution does not"
)
EXPIRED_CODE = (
    "nothing is there: the code of an execution is kept for 90 days, and the code of a lab while "
    "it is deployed; expected a run without --continue, or a deployment"
)


class PlanSuiteServices(Protocol):
    """Services that planning a suite needs.

    ``runs`` and ``work_index`` have what earlier executions of the same work have measured.
    """

    bucket: ResultsBucket
    executions: ExecutionRows
    runs: RunRows
    spending: Spending
    work_index: WorkIndex


def refusal_answer(error: SuiteInvalid | SuiteRefused) -> dict[str, dict[str, str]]:
    """A function's answer to the state machine for a suite that can't run, with every reason."""
    return {"refused": {"error": type(error).__name__, "cause": str(error)[:REFUSAL_LENGTH]}}


def plan_execution(
    document: Mapping[str, Any],
    *,
    execution_id: str,
    services: PlanSuiteServices,
    settings: JobSettings,
    price_source: PriceSource,
    listing: DataListing,
    features: Sequence[SuiteFeature],
    now: float,
) -> Plan:
    """Plan an execution, and store its suite and plan.

    Args:
        document: The execution's input.
        execution_id: Name of the execution.
        services: Tables and bucket of the lab.
        settings: Settings of the lab's jobs.
        price_source: Source of today's prices.
        listing: Listing of the data in S3.
        now: Epoch seconds.

    Raises:
        SuiteInvalid: The suite has problems of form or content; the error has all.
        SuiteRefused: The suite can't run in this lab or within its limits.
    """
    given, beside = split_input(document)
    _refuse_earlier(execution_id, services.executions, now)
    earlier_id = beside.get(CONTINUES)
    suite = parse_suite(given, features)
    continued = None
    if earlier_id is not None:
        continued = read_continued(suite, earlier_id, execution_id=execution_id, services=services)
        settings = _as_before(settings, continued.row)
    _refuse_conflicts(suite, settings, listing)
    prices = price_source.read(planned_instances(suite))
    past = _past_of(suite, services)
    host_priors = continued.plan.host_priors if continued else learn_host_priors(past)
    if continued is None:
        tokens = plan_tokens(
            suite,
            execution_id=execution_id,
            settings=settings,
            listing=listing,
            cache=TokenCache(services.bucket),
            now=now,
        )
    else:
        tokens = _as_found(continued.tokens, TokenCache(services.bucket), now)
    plan = plan_suite(
        suite,
        execution_id=execution_id,
        prices=prices,
        quotas={},
        histories=learn_from(suite, past),
        tokens=tokens,
    )
    plan = replace(
        plan,
        cells=_labelled(plan, beside.get(CELL_LABELS, {})),
        host_priors=host_priors,
        first_batches=beside.get(FIRST_BATCHES, {}),
    )
    if plan.refusals:
        raise SuiteRefused(plan.refusals)
    _store(suite, plan, continued, services=services, settings=settings, prices=prices, now=now)
    return plan


def _refuse_earlier(execution_id: str, executions: ExecutionRows, now: float) -> None:
    """Step Functions forgets a name 90 days after the execution's end; what the lab keeps under it
    would count as this one's. A row of a call that is repeated is younger than any execution gets.
    """
    row = executions.find(execution_id)
    if row is not None and now - row.started_at > EXECUTION_HOURS * SECONDS_PER_HOUR:
        raise SuiteRefused(
            [f"the lab keeps an earlier execution {execution_id}: expected another name"]
        )


def _labelled(plan: Plan, labels: Any) -> tuple[Cell, ...]:
    """The plan's cells with the labels of another suite's; raises SuiteInvalid if there are none to
    read.
    """
    if not isinstance(labels, Mapping) or not all(
        isinstance(label, str) for label in labels.values()
    ):
        raise SuiteInvalid([Problem(path=CELL_LABELS, message="expected labels by cell id")])
    return tuple(replace(cell, label=labels.get(cell.cell_id, cell.label)) for cell in plan.cells)


def _as_before(settings: JobSettings, row: ExecutionRow) -> JobSettings:
    """The settings with the code and the images of the execution that is continued."""
    return replace(settings, source_s3_uri=row.source_s3_uri, images=row.images)


def _past_of(suite: Suite, services: PlanSuiteServices) -> Sequence[PastRun]:
    return read_past_runs(
        suite, index=services.work_index, executions=services.executions, runs=services.runs
    )


def _refuse_conflicts(suite: Suite, settings: JobSettings, listing: DataListing) -> None:
    siblings = [listing.siblings(field, uri) for field, uri in _prefixes(suite.workload)]
    conflicts = [
        *_unstaged(suite),
        *filter(None, siblings),
        *_full_volume(suite, settings, listing),
        *find_conflicts(suite, settings),
    ]
    if conflicts:
        raise SuiteRefused(conflicts)


def _full_volume(suite: Suite, settings: JobSettings, listing: DataListing) -> Iterator[str]:
    """A model in S3 is copied to each instance's volume before a run starts.

    Instance storage replaces the volume.
    """
    path = suite.workload.model.path if suite.workload.model else None
    types = {
        cell.settings.instance
        for cell in suite.cells
        if not cell.settings.instance.startswith(LOCAL_PREFIX)
    }
    on_volume = sorted(name for name in types if not has_instance_storage(name))
    size_gb = suite.job.volume_size_gb or settings.jobs.volume_size_gb
    size_bytes = listing.size_bytes(path) if is_s3_uri(path) and on_volume else None
    if size_bytes is not None and size_bytes > size_gb * GB:
        yield (
            f"workload.model.path: {path} has {size_bytes / GB:.1f} GB, and the volume of "
            f"{on_volume[0]} {size_gb} GB; expected job.volume_size_gb of at least "
            f"{-(-size_bytes // GB) + ROOM_GB}"
        )


def _prefixes(workload: Workload) -> Iterator[tuple[str, str]]:
    """The workload's inputs in S3, by field."""
    for field in ("dataset", "model", "tokenizer"):
        source = getattr(workload, field)
        if source is not None and is_s3_uri(source.path):
            yield f"workload.{field}.path", source.path
    template = workload.dataset.chat_template if workload.dataset else None
    if is_s3_uri(template):
        yield "workload.dataset.chat_template", template
    for name, uri in workload.channels.items():
        if is_s3_uri(uri):
            yield f"workload.channels.{name}", uri


def _unstaged(suite: Suite) -> Iterator[str]:
    source = suite.workload.source
    if suite.workload.task is Task.SCRIPT and not is_s3_uri(source):
        yield f"workload.source: got {source}: {STAGED_CODE}"


def _store(
    suite: Suite,
    plan: Plan,
    continued: Continued | None,
    *,
    services: PlanSuiteServices,
    settings: JobSettings,
    prices: PriceList,
    now: float,
) -> None:
    """Suite, plan and code in S3, and results that count on; the execution's row; its entry in the
    index of works.
    """
    bucket = services.bucket
    execution_id = plan.execution_id
    bucket.write_json(suite_key(execution_id), stored_suite(suite))
    bucket.write_json(plan_key(execution_id), stored_plan(plan))
    code = str(settings.source_s3_uri)
    source = _copy(bucket, code, execution_code_key(execution_id), f"{code}: {EXPIRED_CODE}")
    counted = continued.results if continued else ()
    for result in counted:
        bucket.write_json(result_key(execution_id, result.run.run_id), run_result_document(result))
    row = ExecutionRow(
        execution_id=execution_id,
        suite_name=suite.name,
        started_at=now,
        latest_end=now + float(suite.limits.max_hours * SECONDS_PER_HOUR),
        run_count=plan.run_count - len(counted),
        job_count=sum(lane.job_count for lane in plan.lanes),
        max_usd=suite.limits.max_usd,
        goal=suite.goal.kind,
        max_steps=suite.measurement.max_steps,
        trials=suite.measurement.trials,
        is_script=suite.workload.task is Task.SCRIPT,
        is_race=suite.search.is_race,
        source_s3_uri=source,
        script_s3_uri=_kept_script(suite, bucket, execution_id),
        images=settings.images,
        prices=prices,
        continues=continued.row.execution_id if continued else None,
    )
    if continued is None:
        services.executions.create(row)
    elif not services.spending.take_over(row, continued.spending):
        raise ServiceFault(f"{continued.row.execution_id} has changed since it was read")
    services.work_index.note(work_id_of(suite), execution_id, started_at=round(now))


def _kept_script(suite: Suite, bucket: ResultsBucket, execution_id: str) -> str | None:
    """None for a script in another bucket, which the lab may be unable to read."""
    script = suite.workload.source or ""
    if not script.startswith(s3_uri(bucket.name, CODE_PREFIX)):
        return None
    missing = f"workload.source: nothing is at {script}: {STAGED_CODE}"
    return _copy(bucket, script, execution_script_key(execution_id), missing)


def _copy(bucket: ResultsBucket, source: str, key: str, missing: str) -> str:
    try:
        return bucket.copy(source, key)
    except OriginalMissing as error:
        raise SuiteRefused([missing]) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _TokenPlan:
    suite: Suite
    execution_id: str
    settings: JobSettings
    listing: DataListing

    def dataset_content(self) -> str | None:
        """Identifies the dataset's content; None for a folder that its owner tokenised."""
        dataset = self.suite.workload.dataset
        assert dataset is not None
        if not is_s3_uri(dataset.path):
            return PINNED if dataset.revision else self.execution_id
        digest, names = self.listing.content("workload.dataset.path", dataset.path)
        return None if TOKENISED in names else digest

    def tokenizer_content(self, workload: Workload) -> str:
        """Identifies the tokenizer, and the file of its chat template.

        Without a revision, a Hub tokenizer may change between executions.
        """
        template = workload.dataset.chat_template if workload.dataset else None
        own = self._tokenizer_alone(workload)
        if not is_s3_uri(template):
            return own
        return f"{own} {self.listing.content('workload.dataset.chat_template', template)[0]}"

    def _tokenizer_alone(self, workload: Workload) -> str:
        tokenizer = workload.tokenizer
        if tokenizer is not None and tokenizer.path is None:
            return "trained on the data"
        source, field = (
            (tokenizer, "tokenizer") if tokenizer is not None else (workload.model, "model")
        )
        assert source is not None
        assert source.path is not None, (
            "a model from a config brings no tokenizer, which PlanSuite has checked"
        )
        if is_s3_uri(source.path):
            return self.listing.content(f"workload.{field}.path", source.path)[0]
        return PINNED if source.revision else self.execution_id

    def image(self) -> str:
        workload = replace(self.suite.workload, image=None)
        try:
            return select_image_uri(
                preparation_settings(preparation_instance(self.suite)),
                workload,
                self.settings,
            )
        except ImageUnavailable as error:
            raise SuiteRefused([str(error)]) from error

    def code(self) -> str:
        """Identifies the training code: the tarball is named by its content."""
        return str(self.settings.source_s3_uri).rpartition("/")[2]

    def with_keys(self, wanted: Sequence[TokenSet]) -> Iterator[TokenSet]:
        """A folder that its owner tokenised needs no tokens, but the model may need its copy."""
        workload = self.suite.workload
        data = (
            self.dataset_content()
            if any(not token_set.stages_model for token_set in wanted)
            else None
        )
        for token_set in wanted:
            if token_set.stages_model:
                is_local = preparation_instance(self.suite) == LOCAL_INSTANCE
                yield replace(
                    token_set,
                    key=model_key(workload, execution_id=self.execution_id, is_local=is_local),
                )
            elif data is not None:
                tokenizer = self.tokenizer_content(workload)
                origin = Origin(
                    code=self.code(), image=self.image(), data=data, tokenizer=tokenizer
                )
                yield replace(token_set, key=tokens_key(workload, token_set, origin))


def plan_tokens(
    suite: Suite,
    *,
    execution_id: str,
    settings: JobSettings,
    listing: DataListing,
    cache: TokenCache,
    now: float,
) -> tuple[TokenSet, ...]:
    """The tokens and the copy that the suite needs, each with its content key, and whether the lab
    has it already.

    Raises SuiteRefused if the dataset's, tokenizer's or model's prefix can't be listed or is empty.
    """
    planning = _TokenPlan(
        suite=suite, execution_id=execution_id, settings=settings, listing=listing
    )
    keyed = planning.with_keys(needed_tokens(suite))
    return _as_found(keyed, cache, now)


def _as_found(sets: Iterable[TokenSet], cache: TokenCache, now: float) -> tuple[TokenSet, ...]:
    """Each with whether the lab has it."""
    oldest = now - USABLE_SECONDS
    return tuple(
        replace(token_set, is_ready=cache.find(token_set.key, oldest=oldest) is not None)
        for token_set in sets
    )
