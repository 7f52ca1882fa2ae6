"""What sets functions going beside the state machine, and what is told to people."""

from typing import Any

from tests.infra.synthesis import OTHER_LAB, as_list, flat, lab


def rules(**context: str) -> dict[str, dict[str, Any]]:
    """Rule by the function that it sets going."""
    found = {}
    for rule in lab(**context).of_type("AWS::Events::Rule").values():
        (target,) = rule["Targets"]
        found[flat(target["Arn"]).removeprefix("Functions").partition("Function")[0]] = rule
    return found


def test_an_ended_job_of_this_lab_wakes_finish_run() -> None:
    pattern = rules(**OTHER_LAB)["FinishRun"]["EventPattern"]
    assert pattern["source"] == ["aws.sagemaker"]
    assert pattern["detail-type"] == ["SageMaker Training Job State Change"]
    assert pattern["detail"]["TrainingJobName"] == [{"prefix": "other-lab-"}]
    assert pattern["detail"]["TrainingJobStatus"] == ["Completed", "Failed", "Stopped"]


def test_an_execution_that_ends_early_wakes_stop_runs() -> None:
    pattern = rules(target="aws")["StopRuns"]["EventPattern"]
    assert pattern["detail"]["status"] == ["ABORTED", "FAILED", "TIMED_OUT"]
    (machine,) = pattern["detail"]["stateMachineArn"]
    assert flat(machine).startswith("OrchestrationStateMachine")


def test_the_sweep_goes_by_the_clock() -> None:
    assert rules(target="aws")["ReconcileRuns"]["ScheduleExpression"] == "rate(5 minutes)"
    assert rules(target="local")["ReconcileRuns"]["ScheduleExpression"] == "rate(1 minute)"


def test_failed_suites_and_growing_arrears_raise_alarms() -> None:
    template = lab(target="aws")
    topic = next(iter(template.of_type("AWS::SNS::Topic")))
    alarms = template.of_type("AWS::CloudWatch::Alarm")
    assert len(alarms) == 2
    for alarm in alarms.values():
        assert [flat(action) for action in alarm["AlarmActions"]] == [topic]
        assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
    (growth,) = [alarm for alarm in alarms.values() if "Metrics" in alarm]
    assert "DIFF(overdue)" in [metric.get("Expression") for metric in growth["Metrics"]]


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
