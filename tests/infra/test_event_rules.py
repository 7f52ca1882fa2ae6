"""What invokes functions beside the state machine, and what raises an alarm."""

import re
from typing import Any

import pytest
from aws_cdk.assertions import Match, Template

from tests.infra.synthesis import (
    OTHER_LAB,
    REPO_ROOT,
    as_list,
    flat,
    lab,
    needed,
    only,
    properties,
    statements,
)

RULE = "AWS::Events::Rule"
FUNCTION = "AWS::Lambda::Function"
ALARM = "AWS::CloudWatch::Alarm"


def function_of(template: Template, state: str) -> str:
    """The logical id of the state's function."""
    folder = re.sub(r"(?<!^)(?=[A-Z])", "_", state).lower()
    return only(template, FUNCTION, {"Handler": f"lambdas.{folder}.handler.handle"})


def has_rule(template: Template, state: str, **expected: Any) -> None:
    """The rule that invokes the state's function."""
    targets = [Match.object_like({"Arn": {"Fn::GetAtt": [function_of(template, state), "Arn"]}})]
    template.has_resource_properties(RULE, {**expected, "Targets": targets})


def test_an_ended_job_of_this_lab_wakes_finish_run() -> None:
    ended = {
        "TrainingJobName": [{"prefix": "other-lab--"}],
        "TrainingJobStatus": ["Completed", "Failed", "Stopped"],
    }
    kind = {"source": ["aws.sagemaker"], "detail-type": ["SageMaker Training Job State Change"]}
    has_rule(lab(**OTHER_LAB), "FinishRun", EventPattern={**kind, "detail": ended})


def test_an_early_end_of_an_execution_wakes_stop_runs(template: Template) -> None:
    machine = {"Ref": only(template, "AWS::StepFunctions::StateMachine")}
    early = {"status": ["ABORTED", "FAILED", "TIMED_OUT"], "stateMachineArn": [machine]}
    has_rule(template, "StopRuns", EventPattern={"detail": early})


@pytest.mark.parametrize(("target", "rate"), [("aws", "5 minutes"), ("local", "1 minute")])
def test_the_sweep_goes_by_the_clock(target: str, rate: str) -> None:
    has_rule(lab(target=target), "ReconcileRuns", ScheduleExpression=f"rate({rate})")


def test_two_sweeps_of_the_schedule_do_not_overlap(template: Template) -> None:
    """None is repeated, and each ends before the next one begins."""
    sweep = function_of(template, "ReconcileRuns")
    assert properties(template, FUNCTION)[sweep]["Timeout"] < 300
    (config,) = [
        invocation
        for invocation in properties(template, "AWS::Lambda::EventInvokeConfig").values()
        if invocation["FunctionName"] == {"Ref": sweep}
    ]
    assert config["MaximumRetryAttempts"] == 0


def alarms() -> dict[str, dict[str, Any]]:
    """Alarm by the name of its construct."""
    by_id = properties(lab(target="aws"), ALARM)
    return {
        re.sub(r"^(Monitoring|Serving)|[0-9A-F]{8}$", "", name): alarm
        for name, alarm in by_id.items()
    }


def test_every_alarm_goes_to_the_labs_topic(template: Template) -> None:
    template.all_resources_properties(
        ALARM, {"AlarmActions": [{"Ref": only(template, "AWS::SNS::Topic")}]}
    )


def test_a_failed_suite_raises_an_alarm_and_a_refused_one_does_not(template: Template) -> None:
    """StopRuns counts the first kind only; Step Functions' own metric of failed executions counts
    both.
    """
    counted = {"Namespace": "Traindyno", "MetricName": "FailedSuites", "Statistic": "Sum"}
    template.has_resource_properties(ALARM, counted)
    template.resource_properties_count_is(ALARM, {"MetricName": "ExecutionsFailed"}, 0)


@pytest.mark.parametrize("state", ["ReconcileRuns", "StopRuns", "FinishRun"])
def test_an_error_of_an_unawaited_function_raises_an_alarm(template: Template, state: str) -> None:
    dimensions = [{"Name": "FunctionName", "Value": {"Ref": function_of(template, state)}}]
    errors = {"MetricName": "Errors", "Statistic": "Sum", "Threshold": 0, "Dimensions": dimensions}
    template.has_resource_properties(ALARM, errors)


def test_a_missing_sweep_breaches(template: Template) -> None:
    missing = {
        "MetricName": "Invocations",
        "ComparisonOperator": "LessThanThreshold",
        "Threshold": 1,
    }
    late = {"TreatMissingData": "breaching", "Period": 300, "EvaluationPeriods": 3}
    template.has_resource_properties(ALARM, {**missing, **late})


def test_a_new_lab_does_not_begin_with_the_alarm_of_a_missing_sweep(template: Template) -> None:
    """The alarm waits for the images, whose builds take longer than the schedule's interval; the
    schedule does not.
    """
    build = only(template, "Custom::TraindynoImage")
    assert build in needed(template, only(template, ALARM, {"MetricName": "Invocations"}))
    first = needed(template, only(template, RULE, {"ScheduleExpression": Match.any_value()}))
    assert function_of(template, "ReconcileRuns") in first
    assert build not in first


def test_no_function_reserves_concurrency_against_low_account_limits() -> None:
    for target in ("aws", "local"):
        lab(target=target).all_resources_properties(
            FUNCTION, {"ReservedConcurrentExecutions": Match.absent()}
        )


def test_a_sweep_is_not_repeated(template: Template) -> None:
    asynchronous = {
        "FunctionName": {"Ref": function_of(template, "ReconcileRuns")},
        "MaximumRetryAttempts": 0,
        "MaximumEventAgeInSeconds": 300,
    }
    template.has_resource_properties("AWS::Lambda::EventInvokeConfig", asynchronous)


def test_the_alarm_of_unhandled_events_is_on_their_arrival_and_ends() -> None:
    """The number of kept messages would hold it for 14 days."""
    alarm = alarms()["EventsUnhandled"]
    assert (alarm["MetricName"], alarm["Statistic"], alarm["Threshold"]) == (
        "NumberOfMessagesSent",
        "Sum",
        0,
    )
    assert alarm["DatapointsToAlarm"] == 1
    # SQS may be 15 minutes late
    assert 15 * 60 < alarm["EvaluationPeriods"] * alarm["Period"] <= 3600
    assert alarm["TreatMissingData"] == "notBreaching"


def test_the_page_lists_each_alarm_once() -> None:
    page = (
        (REPO_ROOT / "docs/lab-in-aws.md")
        .read_text()
        .partition("## Alarms")[2]
        .partition("\n## ")[0]
    )
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(alarms())
    costs = (REPO_ROOT / "docs/plan-and-costs.md").read_text()
    assert f"| CloudWatch alarms | {len(listed)} |" in costs


def test_unhandled_events_go_to_a_queue_with_an_alarm(template: Template) -> None:
    queue = {"Fn::GetAtt": [only(template, "AWS::SQS::Queue"), "Arn"]}
    for state in ("FinishRun", "StopRuns", "ReconcileRuns", "BuildImage"):
        function = function_of(template, state)
        target = {"Arn": {"Fn::GetAtt": [function, "Arn"]}, "DeadLetterConfig": {"Arn": queue}}
        template.has_resource_properties(RULE, {"Targets": [Match.object_like(target)]})
        assert properties(template, FUNCTION)[function]["DeadLetterConfig"] == {"TargetArn": queue}
        sending = [
            statement
            for statement in statements(template, f"{state}Role")
            if statement["Action"] == "sqs:SendMessage"
        ]
        assert [statement["Resource"] for statement in sending] == [queue]
    template.resource_count_is(RULE, 4)
    (policy,) = properties(template, "AWS::SQS::QueuePolicy").values()
    allowed = [
        statement
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    ]
    assert {statement["Principal"]["Service"] for statement in allowed} == {"events.amazonaws.com"}
    sources = {flat(statement["Condition"]["ArnEquals"]["aws:SourceArn"]) for statement in allowed}
    assert sources == {f"{name}.Arn" for name in properties(template, RULE)}


def test_notifications_are_encrypted_need_tls_and_alarms_may_use_their_key(
    template: Template,
) -> None:
    key = {"Fn::GetAtt": [only(template, "AWS::KMS::Key", {"EnableKeyRotation": True}), "Arn"]}
    template.has_resource_properties("AWS::SNS::Topic", {"KmsMasterKeyId": key})
    denied = {"Effect": "Deny", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    document = {"Statement": Match.array_with([Match.object_like(denied)])}
    template.has_resource_properties("AWS::SNS::TopicPolicy", {"PolicyDocument": document})
    (policy,) = [
        kms_key["KeyPolicy"]["Statement"]
        for kms_key in properties(template, "AWS::KMS::Key").values()
    ]
    services = {
        service
        for statement in policy
        for service in as_list(statement["Principal"].get("Service", []))
    }
    assert services == {"cloudwatch.amazonaws.com"}


def test_an_address_in_the_file_is_subscribed(template: Template) -> None:
    template.resource_count_is("AWS::SNS::Subscription", 0)
    subscribed = {"Protocol": "email", "Endpoint": "me@example.com"}
    lab(**OTHER_LAB).has_resource_properties("AWS::SNS::Subscription", subscribed)
