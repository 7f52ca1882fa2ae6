"""What invokes functions beside the state machine, and what raises an alarm."""

import re
from typing import Any

import pytest

from tests.infra.synthesis import OTHER_LAB, as_list, flat, lab


def rules(**context: str) -> dict[str, dict[str, Any]]:
    """Rule by the function that it sets going."""
    found = {}
    for rule in lab(**context).of_type("AWS::Events::Rule").values():
        (target,) = rule["Targets"]
        found[re.sub(r"^(Serving)?Functions|Function[0-9A-F]{8}\.Arn$", "", flat(target["Arn"]))] = rule
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


def alarms() -> dict[str, dict[str, Any]]:
    """Alarm by the name of its construct."""
    found = lab(target="aws").of_type("AWS::CloudWatch::Alarm")
    return {re.sub(r"^Monitoring|[0-9A-F]{8}$", "", name): alarm for name, alarm in found.items()}


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


@pytest.mark.parametrize("state", ["ReconcileRuns", "StopRuns", "FinishRun"])
def test_an_error_of_a_function_that_no_state_waits_for_raises_an_alarm(state: str) -> None:
    alarm = alarms()[f"{state}Fails"]
    ((dimension),) = alarm["Dimensions"]
    assert (alarm["MetricName"], alarm["Statistic"], alarm["Threshold"]) == ("Errors", "Sum", 0)
    assert flat(dimension["Value"]).startswith(f"Functions{state}Function")


def test_a_sweep_that_is_missing_breaches() -> None:
    alarm = alarms()["SweepMissing"]
    assert (alarm["MetricName"], alarm["ComparisonOperator"], alarm["Threshold"]) == (
        "Invocations", "LessThanThreshold", 1,
    )  # fmt: skip
    assert alarm["TreatMissingData"] == "breaching"
    assert (alarm["Period"], alarm["EvaluationPeriods"]) == (300, 3)


def test_sweeps_never_overlap_and_are_not_repeated() -> None:
    template = lab(target="aws")
    (name,) = [name for name in template.of_type("AWS::Lambda::Function") if "ReconcileRuns" in name]
    assert template.of_type("AWS::Lambda::Function")[name]["ReservedConcurrentExecutions"] == 1
    found = template.of_type("AWS::Lambda::EventInvokeConfig").values()
    (asynchronous,) = [each for each in found if "ReconcileRuns" in flat(each["FunctionName"])]
    assert flat(asynchronous["FunctionName"]) == name
    assert (asynchronous["MaximumRetryAttempts"], asynchronous["MaximumEventAgeInSeconds"]) == (0, 300)


def test_an_account_with_few_concurrent_executions_can_leave_them_unreserved() -> None:
    functions = lab(target="aws", reserve_sweep="off").of_type("AWS::Lambda::Function").values()
    assert not [function for function in functions if "ReservedConcurrentExecutions" in function]


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
    allowed = [
        statement
        for statement in template.only("AWS::SQS::QueuePolicy")["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    ]
    assert [each["Principal"] for each in allowed] == [{"Service": "events.amazonaws.com"}]
    ((operator, condition),) = allowed[0]["Condition"].items()  # as in EventBridge's own example of such a policy
    assert (operator, {key: flat(arn) for key, arn in condition.items()}) == (
        "ArnLike", {"aws:SourceArn": "arn:AWS::Partition:events:AWS::Region:AWS::AccountId:rule/*"},
    )  # fmt: skip
    assert alarms()["EventsUnhandled"]["MetricName"] == "ApproximateNumberOfMessagesVisible"


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


@pytest.mark.parametrize(
    ("detail_type", "key"),
    [
        ("SageMaker Endpoint State Change", "EndpointName"),
        ("SageMaker Transform Job State Change", "TransformJobName"),
    ],
)
def test_a_changed_endpoint_or_transform_job_of_this_lab_wakes_finish_deployment(detail_type: str, key: str) -> None:
    found = lab(**OTHER_LAB).of_type("AWS::Events::Rule").values()
    (rule,) = [each for each in found if each.get("EventPattern", {}).get("detail-type") == [detail_type]]
    assert rule["EventPattern"]["detail"] == {key: [{"prefix": "other-lab--"}]}
    ((target),) = rule["Targets"]
    assert "FinishDeployment" in flat(target["Arn"])


def test_expired_endpoints_are_swept_and_those_that_stay_raise_an_alarm() -> None:
    found = lab(target="aws").of_type("AWS::Events::Rule").values()
    (sweep,) = [each for each in found if "ReconcileEndpoints" in flat(each["Targets"][0]["Arn"])]
    assert sweep["ScheduleExpression"] == "rate(5 minutes)"
    overdue = alarms()["ServingEventsEndpointsOverdue"]
    assert (overdue["MetricName"], overdue["Statistic"], overdue["Threshold"]) == ("OverdueEndpoints", "Maximum", 0)
    assert alarms()["ServingEventsSweepMissing"]["TreatMissingData"] == "breaching"
    assert {"ServingEventsFinishDeploymentFails", "ServingEventsReconcileEndpointsFails"} <= set(alarms())
