"""A suite's data becomes tokens that its runs read: keys, the cache's marker, and how a
preparation's end is told.
"""

from typing import Any

import pytest

from tests.unit.lab_in_memory import EXECUTION, NOW, PRICE, SETTINGS, UNHURRIED, MemoryLab, no_sleep
from tests.unit.planned_lab import MemoryBuckets, items_of_round, judge_execution, runs_of_item
from tests.unit.stubbed import stubbed
from tests.unit.suites import small_document, small_suite
from traindyno.aws.data_listing import DataListing
from traindyno.core.costs.receipt import write_receipt
from traindyno.core.errors import SlotUnavailable, SuiteRefused
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.plan import plan_suite, stored_plan
from traindyno.core.run.tokens import (
    TOKENS_MANIFEST,
    DataPreparation,
    TokenSet,
    tokens_manifest,
)
from traindyno.core.s3_keys import (
    plan_key,
    ready_tokens_key,
    report_data_key,
    report_html_key,
    suite_key,
    tokens_folder,
)
from traindyno.core.step_log.line import failure_text
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import stored_suite
from traindyno.core.verdict.report_data import parse_report
from traindyno.lab.finish_run import finish_run
from traindyno.lab.plan_round import TokensMissing, plan_next_round
from traindyno.lab.plan_suite import plan_tokens
from traindyno.lab.reconcile_runs import stop_overruns
from traindyno.lab.stop_runs import stop_runs
from traindyno.lab.submit_run import submit_run
from traindyno.store.results import load_preparations, load_results
from traindyno.store.results_bucket import USABLE_SECONDS, TokenCache

KEY = "0123456789abcdef" * 4
TOKEN = "waiting-task"
NAMED = {"dataset": {"format": "synthetic"}, "model": "me/model", "tokenizer": None}
HUB_DATA = {"path": "nyu-mll/glue", "name": "sst2"}


def workload(**changes: Any) -> dict[str, Any]:
    return {**small_document()["workload"], **changes}


def plan(
    suite: Suite,
    lab: MemoryLab | None = None,
    *,
    execution: str = EXECUTION,
    content: str = "d1",
    template: str = "",
    **files: set[str],
) -> tuple[TokenSet, ...]:
    names = files.get("names", {"train.csv"})
    objects = {f"s3://bucket/data/abc/{name}": content.encode() for name in names}
    objects["s3://bucket/template/chat.jinja"] = template.encode()
    return plan_tokens(
        suite,
        execution_id=execution,
        settings=SETTINGS,
        listing=DataListing(MemoryBuckets(objects)),
        cache=TokenCache((lab or MemoryLab()).bucket),
        now=NOW,
    )


def mark_ready(lab: MemoryLab, key: str, *, made_at: float = NOW) -> None:
    marker = {
        "version": 1,
        "key": key,
        "s3_uri": f"s3://results/{tokens_folder(key, 'job')}",
        "made_at": made_at,
    }
    lab.bucket.write_json(ready_tokens_key(key), marker)


def test_data_in_s3_is_known_by_its_objects() -> None:
    suite = small_suite()
    assert plan(suite) == plan(suite, execution="another")
    assert plan(suite) != plan(suite, content="d2")


def test_a_chat_template_in_s3_is_known_by_its_object() -> None:
    chat = {"path": "s3://bucket/data/abc/", "chat_template": "s3://bucket/template/"}
    suite = small_suite(workload=workload(dataset=chat))
    assert plan(suite, template="a") == plan(suite, execution="another", template="a")
    assert plan(suite, template="a") != plan(suite, template="b")


def test_a_folder_tokenised_by_its_owner_is_read_as_it_is() -> None:
    assert plan(small_suite(), names={"train/traindyno-data.json", "train/tokens.npy"}) == ()


def test_tokens_of_an_unpinned_hub_revision_serve_one_execution() -> None:
    floating = small_suite(workload=workload(dataset=HUB_DATA))
    pinned = small_suite(workload=workload(dataset={**HUB_DATA, "revision": "abc"}))
    assert plan(floating) != plan(floating, execution="another")
    assert plan(pinned) == plan(pinned, execution="another")
    for tokenizer, is_pinned in (
        ({"path": "gpt2"}, False),
        ({"path": "gpt2", "revision": "abc"}, True),
    ):
        suite = small_suite(workload=workload(tokenizer=tokenizer))
        assert (plan(suite) == plan(suite, execution="another")) is is_pinned


def test_existing_tokens_are_ready_until_they_are_old() -> None:
    lab = MemoryLab()
    suite = small_suite()
    (needed,) = plan(suite, lab)
    assert not needed.is_ready
    mark_ready(lab, needed.key)
    assert [planned.is_ready for planned in plan(suite, lab)] == [True]
    mark_ready(lab, needed.key, made_at=NOW - USABLE_SECONDS - 1)
    assert [planned.is_ready for planned in plan(suite, lab)] == [False]


def test_data_closed_to_the_lab_are_refused_with_the_deployments_remedy() -> None:
    with stubbed("s3") as (client, stubber):
        stubber.add_client_error("list_objects_v2", "AccessDenied")
        with pytest.raises(SuiteRefused, match=r"data_buckets = \["):
            DataListing(client).content("workload.dataset.path", "s3://theirs/data/")


def test_the_model_of_data_tokenised_by_its_owner_is_copied_without_tokens() -> None:
    (copy,) = plan(
        small_suite(workload=workload(model="me/model")),
        names={"train/traindyno-data.json", "train/t.npy"},
    )
    assert copy.stages_model


@pytest.mark.parametrize(
    ("revision", "is_reused"), [("0123456789" * 4, True), ("main", False), (None, False)], ids=str
)
def test_only_a_commits_copy_serves_other_executions(revision: str | None, is_reused: bool) -> None:
    """A branch may name other files tomorrow. The suite's other choices don't matter."""
    suite = small_suite(workload=workload(model={"path": "me/model", "revision": revision}))
    other = small_suite(
        workload=workload(model={"path": "me/model", "revision": revision}, sequence_length=64)
    )
    keys = [plan(suite)[-1].key, plan(other, execution="another")[-1].key]
    assert plan(suite)[-1].stages_model
    assert (keys[0] == keys[1]) is is_reused


def test_every_run_reads_the_labs_copy_of_the_model() -> None:
    lab, copy = lab_with_preparation(packing=None, workload=workload(**NAMED))
    assert (copy.preparation_id, copy.label) == (f"stage-{KEY[:8]}", "model staging")
    job = submit(lab, copy)
    lab.bucket.write_json(f"{tokens_folder(KEY, job)}{TOKENS_MANIFEST}", tokens_manifest(KEY, {}))
    end(lab, job)
    runs = [run for item in items_of_round(lab) for run in runs_of_item(item)]
    assert {(run.tokens, run.model_s3_uri) for run in runs} == {
        (None, f"s3://results/{tokens_folder(KEY, job)}")
    }
    (recorded,) = load_preparations(lab.bucket, EXECUTION)
    assert [line.label for line in write_receipt([recorded]).lines] == ["model staging"]
    del lab.objects.contents[ready_tokens_key(KEY)]
    with pytest.raises(TokensMissing, match=KEY):
        plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)


def lab_with_preparation(
    *, packing: bool | None = True, **changes: Any
) -> tuple[MemoryLab, DataPreparation]:
    """A lab that has taken in a small suite of two cells, and the job that prepares its data, not
    yet submitted.
    """
    suite = small_suite(**changes)
    lab = MemoryLab(max_usd=suite.limits.max_usd)
    tokens = TokenSet(packing=packing, key=KEY)
    planned = plan_suite(
        suite, execution_id=EXECUTION, prices={}, quotas={}, histories={}, tokens=(tokens,)
    )
    lab.bucket.write_json(suite_key(EXECUTION), stored_suite(suite))
    lab.bucket.write_json(plan_key(EXECUTION), stored_plan(planned))
    due = DataPreparation(
        execution_id=EXECUTION, key=KEY, packing=packing, instance=PRICE.instance_type
    )
    return lab, due


def submit(lab: MemoryLab, run: DataPreparation, token: str = TOKEN) -> str:
    submit_run(run, token, services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    return max(lab.jobs.jobs, default="")


def leave_tokens(lab: MemoryLab, job: str, *, key: str = KEY) -> None:
    manifest = tokens_manifest(key, {"train": {"sequences": 10, "tokens": 1280}})
    lab.bucket.write_json(f"{tokens_folder(KEY, job)}{TOKENS_MANIFEST}", manifest)


def end(lab: MemoryLab, job: str, status: str = "Completed", reason: str = "") -> None:
    lab.jobs.end(job, status, reason=reason)
    finish_run(job, services=lab.services, now=NOW + 500)


def test_a_completed_preparation_lets_every_run_read_its_tokens() -> None:
    lab, run = lab_with_preparation()
    job = submit(lab, run)
    leave_tokens(lab, job)
    end(lab, job)
    assert [(token, name) for token, name, _ in lab.answers.given] == [(TOKEN, "success")]
    marker = lab.bucket.read_json(ready_tokens_key(KEY))
    uri = f"s3://results/{tokens_folder(KEY, job)}"
    assert (marker["s3_uri"], marker["version"]) == (uri, 1)
    runs = [run for item in items_of_round(lab) for run in runs_of_item(item)]
    assert [prepared.tokens.s3_uri for prepared in runs if prepared.tokens] == [uri] * 4


def test_cost_of_a_preparation_is_settled_apart_from_the_runs() -> None:
    lab, run = lab_with_preparation(preparation={"max_seconds": 2640})
    job = submit(lab, run)
    assert (
        lab.money.exposed_usd == PRICE.usd_per_hour
    )  # an hour at most, with 960 s for the image, to stop and to upload
    leave_tokens(lab, job)
    end(lab, job)
    assert (lab.money.exposed_usd, lab.money.spent_usd) == (
        PRICE.usd_per_hour / 12,
        PRICE.usd_per_hour / 12,
    )
    assert load_results(lab.bucket, EXECUTION) == []
    (recorded,) = load_preparations(lab.bucket, EXECUTION)
    assert (recorded.preparation, recorded.billable_seconds) == (run, 300)
    assert write_receipt([recorded]).total_usd == PRICE.usd_per_hour / 12


def test_receipt_of_the_report_has_a_line_for_the_preparation() -> None:
    lab, run = lab_with_preparation()
    job = submit(lab, run)
    leave_tokens(lab, job)
    end(lab, job)
    judge_execution(lab)
    report = parse_report(lab.bucket.read_json(report_data_key(EXECUTION)))
    assert [preparation.preparation for preparation in report.preparations] == [run]
    assert report.results == ()
    page = lab.objects.contents[report_html_key(EXECUTION)].decode()
    assert f"{job} (data preparation)" in page
    assert "$0.1" in page  # 300 s at 1.20 an hour


@pytest.mark.parametrize(
    ("job", "begin"),
    [
        ({}, "the data could not be prepared"),
        (
            {"packing": None, "workload": workload(**NAMED)},
            "the model could not be copied from the Hub",
        ),
    ],
    ids=["data", "copy"],
)
def test_a_failed_preparation_says_why_in_the_containers_words(
    job: dict[str, Any], begin: str
) -> None:
    lab, run = lab_with_preparation(**job)
    text = failure_text("user_code_error", "rank 0: WorkloadError: a.csv has no column 'text'")
    end(lab, submit(lab, run), "Failed", f"AlgorithmError: {text}")
    ((_, name, cause),) = lab.answers.given
    assert name == "PreparationFailed"
    assert (
        cause
        == f"{begin}, so no run was started: rank 0: WorkloadError: a.csv has no column 'text'"
    )
    assert ready_tokens_key(KEY) not in lab.objects.contents


def test_an_overlong_preparation_says_its_remedies() -> None:
    lab, run = lab_with_preparation()
    job = submit(lab, run)
    lab.jobs.end(job, "Stopped")
    lab.jobs.jobs[job]["SecondaryStatus"] = "MaxRuntimeExceeded"
    finish_run(job, services=lab.services, now=NOW + 500)
    ((_, name, cause),) = lab.answers.given
    assert name == "PreparationFailed"
    assert cause.endswith("; set a higher preparation.max_seconds")


@pytest.mark.parametrize("left", [None, "another key"])
def test_missing_tokens_or_those_of_another_key_are_never_marked_as_ready(
    left: str | None,
) -> None:
    lab, run = lab_with_preparation()
    job = submit(lab, run)
    if left:
        leave_tokens(lab, job, key=left)
    end(lab, job)
    ((_, name, cause),) = lab.answers.given
    assert name == "PreparationFailed"
    assert TOKENS_MANIFEST in cause
    assert ready_tokens_key(KEY) not in lab.objects.contents


def test_a_shortage_leads_to_the_next_attempt_as_with_a_run() -> None:
    lab, run = lab_with_preparation()
    end(
        lab,
        submit(lab, run),
        "Failed",
        "CapacityError: Unable to provision requested ML compute capacity",
    )
    assert [name for _, name, _ in lab.answers.given] == ["CapacityUnavailable"]
    job = submit(lab, run, "second")
    assert job.endswith("-a2")
    leave_tokens(lab, job)
    end(lab, job)
    assert lab.answers.given[-1][:2] == ("second", "success")


def test_a_repeated_submission_or_event_starts_no_second_job_and_answers_alike() -> None:
    lab, run = lab_with_preparation()
    job = submit(lab, run)
    assert submit(lab, run, "again") == job
    leave_tokens(lab, job)
    end(lab, job)
    finish_run(job, services=lab.services, now=NOW + 501)
    submit(lab, run, "after the end")
    assert [(token, name) for token, name, _ in lab.answers.given] == [
        ("again", "success"),
        ("after the end", "success"),
    ]
    assert list(lab.jobs.jobs) == [job]


def test_a_task_restarted_after_a_failure_hears_of_it_at_its_conclusion() -> None:
    lab, run = lab_with_preparation()
    job = submit(lab, run)
    lab.jobs.end(job, "Failed", reason="AlgorithmError: no")
    end = Attempt(number=1, job_name=job, outcome=Outcome.USER_CODE_ERROR, message="no")
    assert lab.spending.end(lab.attempt(job), end, None)
    submit(lab, run, "too early")
    finish_run(job, services=lab.services, now=NOW + 500)
    submit(lab, run, "in time")
    assert [(token, name) for token, name, _ in lab.answers.given] == [
        ("too early", "ServiceFault"),
        (TOKEN, "PreparationFailed"),
        ("in time", "PreparationFailed"),
    ]


def test_an_unstartable_preparation_ends_the_suite_or_waits() -> None:
    lab, run = lab_with_preparation(
        limits={"max_usd": "0.59", "max_hours": 4, "max_job_seconds": 1800}
    )
    submit(lab, run)
    ((_, name, cause),) = lab.answers.given
    assert name == "PreparationFailed"
    assert "of limits.max_usd $0.59" in cause
    lab, run = lab_with_preparation()
    lab.jobs.refusals = [SlotUnavailable("full")]
    submit(lab, run)
    assert [name for _, name, _ in lab.answers.given] == ["SlotUnavailable"]


def test_a_preparation_is_watched_by_its_own_limit() -> None:
    lab, run = lab_with_preparation(preparation={"max_seconds": 2640})
    job = submit(lab, run)
    lab.jobs.jobs[job]["TrainingStartTime"] = NOW
    held = lab.money.exposed_usd
    rows = list(lab.attempts.list_open(EXECUTION))
    # SageMaker stops it at 2640 s; its end is within the hour that is held back
    ages = {job: 2640.0}
    assert (
        stop_overruns(rows, ages=ages, services=lab.services, now=NOW + 2640, pace=UNHURRIED) == 0
    )
    assert lab.money.exposed_usd == held == PRICE.usd_per_hour


def test_stopping_the_execution_stops_its_preparation_and_still_records_it() -> None:
    lab, run = lab_with_preparation()
    job = submit(lab, run)
    lab.answers.gone.add(TOKEN)
    stop_runs(EXECUTION, services=lab.services, pace=UNHURRIED)
    assert lab.jobs.stopped == [job]
    end(lab, job, "Stopped")
    assert [
        preparation.outcome.value for preparation in load_preparations(lab.bucket, EXECUTION)
    ] == ["stopped_by_user"]
    assert not lab.attempt(job).is_open
