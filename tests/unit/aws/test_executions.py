"""Executions, task answers, deployments, notifications, logs and objects: what is asked of AWS and
what it answers.
"""

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.response import StreamingBody

from tests.unit.lab_in_memory import NOW
from tests.unit.stubbed import sent_requests, stubbed
from traindyno.aws.deployment import Deployment, LabNotDeployed, find_deployment
from traindyno.aws.embedded_metrics import metrics_line
from traindyno.aws.executions import ExecutionNameRefused, Executions
from traindyno.aws.log_tail import LogTail
from traindyno.aws.notifications import notify, put_verdict_event
from traindyno.aws.task_answers import TaskAnswers
from traindyno.core.errors import ServiceFault
from traindyno.core.lab_names import LabOutput
from traindyno.sagemaker.job_settings import LabJobs
from traindyno.sagemaker.serving import ServingSettings
from traindyno.store.results_bucket import PART_BYTES, ResultsBucket

MACHINE = "arn:aws:states:us-east-1:111111111111:stateMachine:traindyno-suites"
EXECUTION = "arn:aws:states:us-east-1:111111111111:execution:traindyno-suites:e1"
STARTED = datetime.fromtimestamp(NOW, UTC)


def test_an_execution_is_started_under_its_name_with_the_suite_as_input() -> None:
    with stubbed("stepfunctions") as (client, stubber):
        sent = sent_requests(client, "StartExecution")
        stubber.add_response("start_execution", {"executionArn": EXECUTION, "startDate": STARTED})
        Executions(client, MACHINE).start("e1", {"name": "quick"})
    assert sent == [{"stateMachineArn": MACHINE, "name": "e1", "input": '{"name": "quick"}'}]


def test_a_used_name_is_refused_in_words() -> None:
    with stubbed("stepfunctions") as (client, stubber):
        stubber.add_client_error("start_execution", "ExecutionAlreadyExists")
        with pytest.raises(
            ExecutionNameRefused, match=r"an execution e1 exists already, .* expected another name"
        ):
            Executions(client, MACHINE).start("e1", {"name": "quick"})


@pytest.mark.parametrize("name", ["", "bad name!", "../../x", "-x", "a/b", "x" * 81, "ü", "a\n"])
def test_a_name_unfit_for_tags_or_keys_is_refused_before_anything_starts(name: str) -> None:
    with (
        stubbed("stepfunctions") as (client, _),
        pytest.raises(ExecutionNameRefused, match="expected 1 to 80 letters"),
    ):
        Executions(client, MACHINE).start(name, {"name": "quick"})


def test_an_answer_says_whether_somebody_waited_for_it() -> None:
    with stubbed("stepfunctions") as (client, stubber):
        stubber.add_response(
            "send_task_success", {}, {"taskToken": "t", "output": '{"job_name": "j"}'}
        )
        stubber.add_client_error("send_task_success", "TaskTimedOut")
        stubber.add_client_error("send_task_failure", "TaskDoesNotExist")
        stubber.add_response(
            "send_task_failure", {}, {"taskToken": "t", "error": "Throttled", "cause": "x" * 2000}
        )
        answers = TaskAnswers(client)
        assert answers.succeed("t", {"job_name": "j"})
        assert not answers.succeed("t", {"job_name": "j"})
        assert not answers.fail("t", error_name="Throttled", cause="x")
        assert answers.fail("t", error_name="Throttled", cause="x" * 5000)


def test_an_answer_failing_otherwise_is_not_taken_for_given() -> None:
    with stubbed("stepfunctions") as (client, stubber):
        stubber.add_client_error("send_task_success", "AccessDeniedException")
        with pytest.raises(ClientError):
            TaskAnswers(client).succeed("t", {})


def stack(**outputs: str) -> dict[str, Any]:
    return {
        "Stacks": [
            {
                "StackName": "traindyno-lab",
                "CreationTime": STARTED,
                "StackStatus": "CREATE_IN_PROGRESS",
                "Outputs": [
                    {"OutputKey": key, "OutputValue": value} for key, value in outputs.items()
                ],
            }
        ]
    }


def test_a_lab_is_found_by_its_stack() -> None:
    with stubbed("cloudformation") as (client, stubber):
        of_serving = {
            LabOutput.SERVING_ROLE_ARN: "role",
            LabOutput.LAB_JOBS: '{"isolates_network": true}',
        }
        outputs = {
            output.value: of_serving.get(output, output.name.lower()) for output in LabOutput
        }
        stubber.add_response("describe_stacks", stack(**outputs), {"StackName": "traindyno-lab"})
        jobs = LabJobs(isolates_network=True)
        assert find_deployment(client, "traindyno") == Deployment(
            lab="traindyno",
            serving=ServingSettings(
                region="us-east-1", role_arn="role", bucket="bucket", lab="traindyno", jobs=jobs
            ),
            **{
                output.name.lower(): output.name.lower()
                for output in LabOutput
                if output not in of_serving
            },
        )


def test_a_missing_or_unfinished_lab_says_how_to_deploy_it() -> None:
    with stubbed("cloudformation") as (client, stubber):
        stubber.add_client_error(
            "describe_stacks", "ValidationError", "Stack with id traindyno-lab does not exist"
        )
        stubber.add_response("describe_stacks", stack(Table="t"))
        with pytest.raises(
            LabNotDeployed,
            match=r"no stack traindyno-lab in us-east-1.*cdk deploy.* --region us-east-1",
        ):
            find_deployment(client, "traindyno")
        with pytest.raises(
            LabNotDeployed, match=r"CREATE_IN_PROGRESS and lacks LabJobs, ResultsBucket.*; wait"
        ):
            find_deployment(client, "traindyno")


def test_people_and_programs_hear_of_a_verdict() -> None:
    with stubbed("sns") as (sns, topic), stubbed("events") as (events, bus):
        topic.add_response(
            "publish",
            {"MessageId": "1"},
            {"TopicArn": "t", "Subject": "s" * 100, "Message": "text"},
        )
        entry = {
            "Source": "traindyno",
            "DetailType": "Traindyno Suite Judged",
            "Detail": '{"a": 1}',
        }
        bus.add_response(
            "put_events",
            {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]},
            {"Entries": [entry]},
        )
        bus.add_response(
            "put_events", {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "InternalFailure"}]}
        )
        notify(sns, "t", subject="s" * 200, text="text")
        put_verdict_event(events, {"a": 1})
        with pytest.raises(ServiceFault, match="InternalFailure"):
            put_verdict_event(events, {"a": 1})


@pytest.mark.parametrize(
    "code", ["ThrottlingException", "AccessDeniedException", "InternalFailure"]
)
def test_an_unreadable_log_costs_no_result_and_says_why(code: str) -> None:
    with stubbed("logs") as (client, stubber):
        stubber.add_response(
            "describe_log_streams", {"logStreams": [{"logStreamName": "job/algo-1"}]}
        )
        stubber.add_client_error("get_log_events", code, "Rate exceeded")
        (line,) = LogTail(client).read("job")
    assert "the log /aws/sagemaker/TrainingJobs job/ could not be read" in line
    assert code in line


def test_step_logs_are_read_by_name_and_other_checkpoints_are_left_alone() -> None:
    """One file is in memory at a time; a line ends at a newline only."""
    prefix = "runs/e/r/checkpoints/step_log/"
    keys = [f"{prefix}job-a1/rank-00000.1.jsonl", f"{prefix}job-a1/notes.txt"]
    content = '{"kind": "a\u2028b"}\n{"kind": "cut off'.encode()
    with stubbed("s3") as (client, stubber):
        stubber.add_response(
            "list_objects_v2",
            {"Contents": [{"Key": key, "Size": 1} for key in keys]},
            {"Bucket": "results", "Prefix": prefix},
        )
        body = StreamingBody(io.BytesIO(content), len(content))
        files = ResultsBucket(client, "results").step_log_files(prefix)
        stubber.assert_no_pending_responses()
        first_part = {"Bucket": "results", "Key": keys[0], "Range": f"bytes=0-{PART_BYTES - 1}"}
        stubber.add_response("get_object", {"Body": body}, first_part)
        lines = {name: list(texts) for name, texts in files.items()}
    assert lines == {"job-a1/rank-00000.1.jsonl": ['{"kind": "a\u2028b"}\n', '{"kind": "cut off']}


def test_a_missing_document_is_none_and_one_with_nan_is_refused() -> None:
    with stubbed("s3") as (client, stubber):
        stubber.add_client_error("get_object", "NoSuchKey")
        bucket = ResultsBucket(client, "results")
        assert bucket.find_json("a") is None
        with pytest.raises(ValueError, match="JSON compliant"):
            bucket.write_json("a", {"x": float("nan")})


def test_counts_are_a_log_line_for_cloudwatch() -> None:
    line = json.loads(metrics_line({"FailedSuites": 3}, lab="traindyno", now=1.5))
    (definition,) = line["_aws"]["CloudWatchMetrics"]
    assert definition["Namespace"] == "Traindyno"
    assert (line["_aws"]["Timestamp"], line["Lab"], line["FailedSuites"]) == (1500, "traindyno", 3)
