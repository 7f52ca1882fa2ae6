"""What invokes functions beside the state machine, and what raises an alarm."""

import json
import re
from typing import Any

import pytest

from tests.infra.synthesis import OTHER_LAB, REPO_ROOT, as_list, flat, lab


def rules(**context: str) -> dict[str, dict[str, Any]]:
    """Rule by the function that it sets going."""
    found = {}
    for rule in lab(**context).of_type("AWS::Events::Rule").values():
        (target,) = rule["Targets"]
        found[re.sub(r"^Functions|Function[0-9A-F]{8}\.Arn$", "", flat(target["Arn"]))] = rule
    return found


def test_an_ended_job_of_this_lab_wakes_finish_run() -> None:
    pattern = rules(**OTHER_LAB)["FinishRun"]["EventPattern"]
    assert pattern["source"] == ["aws.sagemaker"]
    assert pattern["detail-type"] == ["SageMaker Training Job State Change"]
    assert pattern["detail"]["TrainingJobName"] == [{"prefix": "other-lab--"}]
    assert pattern["detail"]["TrainingJobStatus"] == ["Completed", "Failed", "Stopped"]


def test_an_execution_that_ends_early_wakes_stop_runs() -> None:
    pattern = rules(target="aws")["StopRuns"]["EventPattern"]
    assert pattern["detail"]["status"] == ["ABORTED", "FAILED", "TIMED_OUT"]
    (machine,) = pattern["detail"]["stateMachineArn"]
    assert flat(machine).startswith("OrchestrationStateMachine")


def test_the_sweep_goes_by_the_clock() -> None:
    assert rules(target="aws")["ReconcileRuns"]["ScheduleExpression"] == "rate(5 minutes)"
    assert rules(target="local")["ReconcileRuns"]["ScheduleExpression"] == "rate(1 minute)"


@pytest.mark.parametrize(("target", "interval_seconds"), [("aws", 300), ("local", 60)])
def test_the_lease_of_a_killed_sweep_ends_before_the_schedules_interval(target: str, interval_seconds: int) -> None:
    functions = lab(target=target).of_type("AWS::Lambda::Function")
    (sweep,) = [each for name, each in functions.items() if "ReconcileRuns" in name]
    assert 0 < float(sweep["Environment"]["Variables"]["SWEEP_LEASE_SECONDS"]) < interval_seconds


def alarms() -> dict[str, dict[str, Any]]:
    """Alarm by the name of its construct."""
    found = lab(target="aws").of_type("AWS::CloudWatch::Alarm")
    return {re.sub(r"^(Monitoring|Serving)|[0-9A-F]{8}$", "", name): alarm for name, alarm in found.items()}


def test_every_alarm_goes_to_the_labs_topic() -> None:
    (topic,) = lab(target="aws").of_type("AWS::SNS::Topic")
    assert {flat(action) for alarm in alarms().values() for action in alarm["AlarmActions"]} == {topic}


def test_growing_arrears_raise_an_alarm() -> None:
    growth = alarms()["OverdueRunsGrow"]
    assert growth["ComparisonOperator"] == "GreaterThanThreshold"
    assert "DIFF(overdue)" in [metric.get("Expression") for metric in growth["Metrics"]]


def test_a_failed_suite_raises_an_alarm_and_a_refused_one_does_not() -> None:
    """StopRuns counts the first kind only; Step Functions' own metric of failed executions counts both."""
    alarm = alarms()["SuiteFailed"]
    assert (alarm["Namespace"], alarm["MetricName"], alarm["Statistic"]) == ("Traindyno", "FailedSuites", "Sum")
    assert not [each for each in alarms().values() if each.get("MetricName") == "ExecutionsFailed"]


@pytest.mark.parametrize(
    "state",
    [
        *("ReconcileRuns", "StopRuns", "FinishRun"),
        # a run without a result, or an execution that ends, would be the only sign
        *("SubmitRun", "RecordRun", "PlanRound", "JudgeSuite"),
    ],
)
def test_an_error_of_a_function_raises_an_alarm(state: str) -> None:
    alarm = alarms()[f"{state}Fails"]
    ((dimension),) = alarm["Dimensions"]
    assert (alarm["MetricName"], alarm["Statistic"], alarm["Threshold"]) == ("Errors", "Sum", 0)
    assert flat(dimension["Value"]).startswith(f"Functions{state}Function")


def test_only_alarms_that_suitefailed_stands_beside_wait_for_a_second_error() -> None:
    """A retried error of PlanRound or JudgeSuite needs nobody; a final error of the others has no other alarm."""
    errors = {name: each for name, each in alarms().items() if each.get("MetricName") == "Errors"}
    needed = {name: each.get("DatapointsToAlarm", each["EvaluationPeriods"]) for name, each in errors.items()}
    waiting = {"PlanRoundFails", "JudgeSuiteFails"}
    assert waiting < set(needed)
    assert needed == {name: 2 if name in waiting else 1 for name in needed}
    assert {(errors[name]["EvaluationPeriods"], errors[name]["Period"]) for name in waiting} == {(3, 300)}


def test_a_sweep_that_is_missing_breaches() -> None:
    alarm = alarms()["SweepMissing"]
    assert (alarm["MetricName"], alarm["ComparisonOperator"], alarm["Threshold"]) == (
        "Invocations", "LessThanThreshold", 1,
    )  # fmt: skip
    assert alarm["TreatMissingData"] == "breaching"
    assert (alarm["Period"], alarm["EvaluationPeriods"]) == (300, 3)


def needed(name: str) -> set[str]:
    """The resource and all that CloudFormation creates before it."""
    resources = lab(target="aws").document["Resources"]
    found, left = set[str](), [name]
    while left:
        name = left.pop()
        if name in found or name not in resources:
            continue
        found.add(name)
        text = json.dumps(resources[name])
        left += re.findall(r'"Ref": "(\w+)"', text) + re.findall(r'"Fn::GetAtt": \["(\w+)"', text)
        left += as_list(resources[name].get("DependsOn", []))
    return found


def test_a_new_lab_does_not_begin_with_the_alarm_of_a_missing_sweep() -> None:
    """The alarm waits for the images, whose builds take longer than the schedule's interval; the schedule does not."""
    template = lab(target="aws")
    builds = set(template.of_type("Custom::TraindynoImage"))
    assert len(builds) == 1
    pattern = re.compile(r"MonitoringSweepMissing[0-9A-F]{8}")
    (name,) = [each for each in template.of_type("AWS::CloudWatch::Alarm") if pattern.fullmatch(each)]
    assert builds <= needed(name)
    (rule,) = [
        each
        for each, properties in template.of_type("AWS::Events::Rule").items()
        if "ScheduleExpression" in properties and "ReconcileRuns" in flat(properties["Targets"][0]["Arn"])
    ]
    assert any("ReconcileRuns" in each for each in needed(rule))
    assert not builds & needed(rule)


def test_no_function_reserves_concurrency_which_accounts_with_a_low_limit_refuse() -> None:
    for functions in (lab(target=target).of_type("AWS::Lambda::Function").values() for target in ("aws", "local")):
        assert not [each for each in functions if "ReservedConcurrentExecutions" in each]


def test_a_sweep_is_not_repeated() -> None:
    found = lab(target="aws").of_type("AWS::Lambda::EventInvokeConfig").values()
    (asynchronous,) = [each for each in found if "ReconcileRuns" in flat(each["FunctionName"])]
    assert (asynchronous["MaximumRetryAttempts"], asynchronous["MaximumEventAgeInSeconds"]) == (0, 300)


def test_the_alarm_of_unhandled_events_is_on_their_arrival_and_ends() -> None:
    """The number of kept messages would hold it for 14 days."""
    alarm = alarms()["EventsUnhandled"]
    assert (alarm["MetricName"], alarm["Statistic"], alarm["Threshold"]) == ("NumberOfMessagesSent", "Sum", 0)
    assert alarm["DatapointsToAlarm"] == 1
    # SQS may be 15 minutes late
    assert 15 * 60 < alarm["EvaluationPeriods"] * alarm["Period"] <= 3600
    assert alarm["TreatMissingData"] == "notBreaching"


def test_the_page_lists_each_alarm_once() -> None:
    page = (REPO_ROOT / "docs/lab-in-aws.md").read_text().partition("## Alarms")[2].partition("\n## ")[0]
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(alarms())
    costs = (REPO_ROOT / "docs/plan-and-costs.md").read_text()
    on_expressions = [alarm for alarm in alarms().values() if "Metrics" in alarm]
    count = f"{len(listed) - len(on_expressions)} on one metric, {len(on_expressions)} on an expression"
    assert f"| CloudWatch alarms | {count} |" in costs


def test_events_that_are_not_handled_go_to_a_queue_that_raises_an_alarm() -> None:
    template = lab(target="aws")
    (queue,) = template.of_type("AWS::SQS::Queue")
    for state, rule in rules(target="aws").items():
        (target,) = rule["Targets"]
        assert flat(target["DeadLetterConfig"]["Arn"]) == f"{queue}.Arn"
        (function,) = [each for name, each in template.of_type("AWS::Lambda::Function").items() if state in name]
        assert flat(function["DeadLetterConfig"]["TargetArn"]) == f"{queue}.Arn"
        sending = [each for each in template.statements(f"{state}Role") if each["Action"] == "sqs:SendMessage"]
        assert [flat(each["Resource"]) for each in sending] == [f"{queue}.Arn"]
    statements = template.only("AWS::SQS::QueuePolicy")["PolicyDocument"]["Statement"]
    allowed = [each for each in statements if each["Effect"] == "Allow"]
    assert {each["Principal"]["Service"] for each in allowed} == {"events.amazonaws.com"}
    sources = {flat(each["Condition"]["ArnEquals"]["aws:SourceArn"]) for each in allowed}
    assert sources == {f"{name}.Arn" for name in template.of_type("AWS::Events::Rule")}
    assert "EventsUnhandled" in alarms()


def test_notifications_are_encrypted_and_need_tls() -> None:
    template = lab(target="aws")
    assert "KmsMasterKeyId" in template.only("AWS::SNS::Topic")
    assert template.only("AWS::KMS::Key")["EnableKeyRotation"]
    statements = template.only("AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
    denied = [statement for statement in statements if statement["Effect"] == "Deny"]
    assert {"Bool": {"aws:SecureTransport": "false"}} in [statement["Condition"] for statement in denied]


def test_alarms_may_use_the_topics_key() -> None:
    statements = lab(target="aws").only("AWS::KMS::Key")["KeyPolicy"]["Statement"]
    services = {service for each in statements for service in as_list(each["Principal"].get("Service", []))}
    assert services == {"cloudwatch.amazonaws.com"}


def test_an_address_in_the_context_is_subscribed() -> None:
    assert not lab(target="aws").of_type("AWS::SNS::Subscription")
    subscription = lab(**OTHER_LAB).only("AWS::SNS::Subscription")
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "me@example.com")
