import json
import math
from typing import Any

import pytest
from aws_cdk.assertions import Match

from localcloud.ministack_answers import EXIT_ERROR
from tests.infra.synthesis import REPO_ROOT, definition, lab
from traindyno.core.errors import (
    CapacityUnavailable,
    JobTimeUsed,
    NextAttempt,
    PreparationFailed,
    RunsLeft,
    ServiceFault,
    SlotUnavailable,
    Throttled,
)
from traindyno.core.jobs.run_attempts import MOST_ATTEMPTS
from traindyno.core.suite.suite import MOST_HOURS


@pytest.fixture(scope="module")
def states() -> dict[str, Any]:
    return dict(definition(lab(target="aws"))["States"])


@pytest.fixture(scope="module")
def lane(states: dict[str, Any]) -> dict[str, Any]:
    waves = states["RunLanes"]["ItemProcessor"]["States"]["RunWaves"]
    return dict(waves["ItemProcessor"]["States"]["RunLane"])


@pytest.fixture(scope="module")
def run_states(lane: dict[str, Any]) -> dict[str, Any]:
    return dict(lane["ItemProcessor"]["States"])


def retries(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {error: rule for rule in state["Retry"] for error in rule["ErrorEquals"]}


def test_a_suite_goes_from_plan_through_rounds_to_its_verdict(states: dict[str, Any]) -> None:
    assert states["PlanSuite"]["Next"] == "Planned"
    assert states["Planned"]["Default"] == "CheckQuotas"
    assert states["CheckQuotas"]["Next"] == "Allowed"
    assert states["Allowed"]["Default"] == "PlanRound"
    assert states["PlanRound"]["Next"] == "RunsLeft"
    assert states["RunLanes"]["Next"] == "PlanRound"
    (more,) = states["RunsLeft"]["Choices"]
    assert (more["Next"], states["RunsLeft"]["Default"]) == ("RunLanes", "JudgeSuite")
    assert states["JudgeSuite"]["End"]


def test_a_refusal_ends_the_execution_with_its_name_and_full_text(states: dict[str, Any]) -> None:
    for name in ("Planned", "Allowed"):
        choice = states[name]["Choices"][0]
        assert (choice["Variable"], choice["Next"]) == ("$.refused", "SuiteRejected")
    fail = states["SuiteRejected"]
    assert (fail["ErrorPath"], fail["CausePath"]) == ("$.refused.error", "$.refused.cause")


def test_due_data_is_prepared_before_the_first_round(states: dict[str, Any]) -> None:
    _refused, due = states["Allowed"]["Choices"]
    assert (due["Variable"], due["IsPresent"], due["Next"]) == (
        "$.preparations",
        True,
        "PrepareData",
    )
    prepare = states["PrepareData"]
    assert (prepare["ItemsPath"], prepare["MaxConcurrency"], prepare["Next"]) == (
        "$.preparations",
        1,
        "PlanRound",
    )
    assert prepare["ResultPath"] is None


def test_a_failed_preparation_is_the_executions_own_failure(states: dict[str, Any]) -> None:
    submit = states["PrepareData"]["ItemProcessor"]["States"]["SubmitPreparation"]
    assert [catch["ErrorEquals"] for catch in submit["Catch"]] == [["StartLater"]]
    assert "Catch" not in states["PrepareData"]
    assert PreparationFailed.__name__ not in retries(submit)


def test_a_preparation_is_submitted_and_awaited_as_a_run_is(
    states: dict[str, Any], run_states: dict[str, Any]
) -> None:
    submits = (
        states["PrepareData"]["ItemProcessor"]["States"]["SubmitPreparation"],
        run_states["SubmitRun"],
    )
    own = {"Next", "End", "Catch"}
    prepare, run = (
        {name: value for name, value in submit.items() if name not in own} for submit in submits
    )
    assert prepare == run


def test_runs_are_read_from_s3_and_each_is_a_child_of_its_own(lane: dict[str, Any]) -> None:
    assert lane["ItemProcessor"]["ProcessorConfig"] == {
        "Mode": "DISTRIBUTED",
        "ExecutionType": "STANDARD",
    }
    assert lane["ItemReader"]["Parameters"]["Key.$"] == "$.items_key"
    assert lane["ToleratedFailurePercentage"] == 100


def test_concurrency_comes_from_the_plan_and_packs_of_a_lane_run_one_by_one(
    states: dict[str, Any], lane: dict[str, Any]
) -> None:
    assert lane["MaxConcurrencyPath"] == "$.concurrency"
    assert states["RunLanes"]["MaxConcurrencyPath"] == "$.lanes_at_once"
    waves = states["RunLanes"]["ItemProcessor"]["States"]["RunWaves"]
    assert (waves["ItemsPath"], waves["MaxConcurrency"], waves["ResultPath"]) == (
        "$.packs",
        1,
        None,
    )


def test_the_local_cloud_runs_one_job_at_a_time() -> None:
    states = definition(lab(target="local"))["States"]
    assert states["RunLanes"]["MaxConcurrency"] == 1
    waves = states["RunLanes"]["ItemProcessor"]["States"]["RunWaves"]
    assert waves["ItemProcessor"]["States"]["RunLane"]["MaxConcurrency"] == 1


def test_nothing_of_the_runs_is_carried_between_rounds(
    states: dict[str, Any], lane: dict[str, Any]
) -> None:
    assert states["RunLanes"]["ResultPath"] is None
    assert lane["ResultPath"] is None


def test_every_reason_for_a_next_attempt_is_retried_with_jitter_and_a_longest_wait(
    run_states: dict[str, Any],
) -> None:
    rules = retries(run_states["SubmitRun"])
    for error in NextAttempt.__subclasses__():
        rule = rules[error.__name__]
        assert rule["JitterStrategy"] == "FULL"
        assert rule["MaxDelaySeconds"] <= 1800
        assert rule["BackoffRate"] > 1


def test_waiting_for_a_slot_or_a_quieter_moment_outlasts_waiting_for_capacity(
    run_states: dict[str, Any],
) -> None:
    rules = retries(run_states["SubmitRun"])
    patient = min(rules[error.__name__]["MaxAttempts"] for error in (SlotUnavailable, Throttled))
    assert patient > rules[CapacityUnavailable.__name__]["MaxAttempts"]
    assert rules[JobTimeUsed.__name__]["MaxAttempts"] >= patient, (
        "a chain is as long as the cap allows"
    )


def least_wait_seconds(rule: dict[str, Any]) -> float:
    """Full jitter: each wait is uniform between 0 and its longest, with a variance of longest² /
    12. Five deviations below the mean of their sum.
    """
    longest: list[float] = [
        min(rule["IntervalSeconds"] * rule["BackoffRate"] ** number, rule["MaxDelaySeconds"])
        for number in range(rule["MaxAttempts"])
    ]
    deviation = math.sqrt(sum(seconds**2 for seconds in longest) / 12)
    return sum(longest) / 2 - 5 * deviation


def test_waiting_for_a_slot_ends_with_the_suites_hours_and_not_before(
    run_states: dict[str, Any],
) -> None:
    """A run that waits for quota or for room under the cap, in the longest suite.

    Step Functions ends an execution at 25,000 events; a try is scheduled, started, submitted and
    failed. The rest is for the run's other tries.
    """
    rule = retries(run_states["SubmitRun"])[SlotUnavailable.__name__]
    assert least_wait_seconds(rule) >= MOST_HOURS * 3600
    assert 4 * rule["MaxAttempts"] < 25_000 - 3_000


def every_task(states: dict[str, Any], run_states: dict[str, Any]) -> list[dict[str, Any]]:
    preparing = states["PrepareData"]["ItemProcessor"]["States"]
    every = (*states.values(), *preparing.values(), *run_states.values())
    tasks = [state for state in every if state["Type"] == "Task"]
    assert len(tasks) == 7
    return tasks


def test_a_fault_of_lambda_is_retried_everywhere(
    states: dict[str, Any], run_states: dict[str, Any]
) -> None:
    for task in every_task(states, run_states):
        assert {"Lambda.ServiceException", "Lambda.Unknown", ServiceFault.__name__} <= retries(
            task
        ).keys()


@pytest.mark.parametrize("error", ["Lambda.TooManyRequestsException", Throttled.__name__])
def test_throttling_is_retried_in_every_state_for_at_least_a_quarter_of_an_hour(
    states: dict[str, Any], run_states: dict[str, Any], error: str
) -> None:
    for task in every_task(states, run_states):
        rule = retries(task)[error]
        assert rule["JitterStrategy"] == "FULL"
        assert least_wait_seconds(rule) > 15 * 60


def test_whatever_happens_to_a_job_each_of_its_runs_is_recorded(run_states: dict[str, Any]) -> None:
    """One field holds the job's end or its failure.

    What can't be recorded fails the child execution.
    """
    submit = run_states["SubmitRun"]
    record = run_states["RecordRun"]
    _, catch = submit["Catch"]
    assert (catch["ErrorEquals"], catch["Next"], catch["ResultPath"]) == (
        ["States.ALL"],
        "RecordRun",
        "$.end",
    )
    assert (submit["Next"], submit["ResultPath"]) == ("RecordRun", "$.end")
    # The Distributed Map of a lane collects the outputs of its children, and a state holds 256 KiB.
    assert not record.keys() & {"Catch", "Parameters", "InputPath", "ResultPath", "OutputPath"}
    # A call that is cut off has recorded some runs of its job, so many calls record all.
    assert all(
        retries(record)[error]["MaxAttempts"] >= 60 for error in (RunsLeft.__name__, EXIT_ERROR)
    )


def test_remaining_runs_go_on_at_once_in_each_attempt_of_their_job(
    run_states: dict[str, Any],
) -> None:
    for error in (RunsLeft, JobTimeUsed):
        rule = retries(run_states["SubmitRun"])[error.__name__]
        assert rule["MaxDelaySeconds"] <= 2
        assert rule["MaxAttempts"] >= MOST_ATTEMPTS


def test_each_attempt_that_a_suite_may_allow_is_started(run_states: dict[str, Any]) -> None:
    schema = json.loads((REPO_ROOT / "docs/suite.schema.json").read_text())
    most = schema["properties"]["limits"]["properties"]["max_attempts"]["maximum"]
    rules = retries(run_states["SubmitRun"])
    for error in (CapacityUnavailable, ServiceFault):
        assert rules[error.__name__]["MaxAttempts"] >= most - 1


def test_submit_run_waits_for_its_token_no_longer_than_the_run_may_take(
    run_states: dict[str, Any],
) -> None:
    submit = run_states["SubmitRun"]
    assert submit["Resource"].endswith("lambda:invoke.waitForTaskToken")
    assert submit["TimeoutSecondsPath"] == "$.timeout_seconds"
    assert submit["Parameters"]["Payload"] == {"token.$": "$$.Task.Token", "item.$": "$"}


def test_a_run_or_a_shared_job_costs_two_states_however_long_it_takes(
    lane: dict[str, Any], run_states: dict[str, Any]
) -> None:
    assert lane["ItemProcessor"]["StartAt"] == "SubmitRun"
    assert run_states["RecordRun"]["End"]
    # SubmitRunLater is entered only where the turn to start a job is later.
    assert set(run_states) == {"SubmitRun", "SubmitRunLater", "RecordRun"}


def test_the_machine_is_standard_logged_traced_and_ends_some_day() -> None:
    machine = {
        "StateMachineType": Match.absent(),  # CloudFormation's default is STANDARD
        "LoggingConfiguration": {"Level": "ALL", "IncludeExecutionData": False},
        "TracingConfiguration": {"Enabled": True},
    }
    lab(target="aws").has_resource_properties("AWS::StepFunctions::StateMachine", machine)
    assert definition(lab(target="aws"))["TimeoutSeconds"] == 28 * 24 * 3600


def test_a_run_with_a_later_turn_waits_in_one_state(
    run_states: dict[str, Any],
) -> None:
    later, _ = run_states["SubmitRun"]["Catch"]
    assert (later["ErrorEquals"], later["ResultPath"], later["Next"]) == (
        ["StartLater"],
        "$.later",
        "SubmitRunLater",
    )
    waiting = run_states["SubmitRunLater"]
    assert (waiting["Type"], waiting["QueryLanguage"], waiting["Next"]) == (
        "Wait",
        "JSONata",
        "SubmitRun",
    )
    assert waiting["Timestamp"] == "{% $parse($states.input.later.Cause).at %}"


@pytest.mark.parametrize(("target", "seconds"), [("aws", "1.05"), ("local", "0")])
def test_jobs_are_started_below_the_accounts_limit_in_aws_only(target: str, seconds: str) -> None:
    paced = {"Environment": {"Variables": {"SECONDS_BETWEEN_STARTS": seconds}}}
    submit = {"Handler": "lambdas.submit_run.handler.handle", **paced}
    lab(target=target).has_resource_properties("AWS::Lambda::Function", submit)
