"""A classifier goes from its training to an endpoint in a local cloud, by the commands of README and of the page about
the Trainium post.

Other tests are about the ways in which this fails.
"""

import io
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import time
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError

from tests.local.forked_programs import REPO_ROOT, Answer
from tests.local.jobs import eventually
from tests.local.local_lab import LocalLab
from tests.local.test_reference_suites import BRIEF_COMPILATION, ONE_THREAD, XLA_FOLDER, reference_suite
from tests.training.run_documents import MODELS, SEQUENCE_LENGTH, write_reviews
from tests.xla.xla_environment import make_environment

pytestmark = pytest.mark.local

EXECUTION = "mine"
README = (REPO_ROOT / "README.md").read_text().partition("## In your AWS account")[2].partition("\n## ")[0]
# What README does with one suite, without the comments: plan, run, deploy, undeploy, stop
SEQUENCE: list[str] = re.findall(r"^    traindyno +(.*?(?:mine|NAME).*?) *(?:#.*)?$", README, re.MULTILINE)
PAGE = (REPO_ROOT / "docs" / "experiments" / "bert-trainium.md").read_text()
COMMANDS: list[str] = re.findall(
    r"^    traindyno (.*)$",
    PAGE.partition("<!-- commands: run by tests/local/test_serving.py -->\n")[2].partition("<!-- end -->")[0],
    re.MULTILINE,
)
REQUEST = PAGE.partition("```python\n")[2].partition("```")[0]
PACK = "bert-trainium/local"


@pytest.fixture(scope="module")
def trained(lab: LocalLab) -> str:
    """The S3 key of the model that the suite's only run saved."""
    suite = {
        "name": "mine",
        "goal": "fastest",
        "search": "grid",
        "workload": {
            "task": "sequence-classification",
            "model": {"config": MODELS["bert"]},
            "tokenizer": {"train_vocabulary_size": 400},
            "dataset": {"path": str(write_reviews(lab.folder / "reviews")), "format": "csv"},
            "sequence_length": SEQUENCE_LENGTH,
            "label_count": 2,
            "examples": 1000,
            "environment": ONE_THREAD,
        },
        "training": {"instance": "local.cpu", "strategy": "single", "batch_size_per_device": 4},
        "matrix": {"precision": ["fp32"]},
        "measurement": {"trials": 1, "max_steps": 20, "evaluate": True, "save_model": True},
        "limits": {"max_usd": 1, "max_hours": 1, "max_job_seconds": 120},
    }
    put_suite(lab, "mine", suite)
    planned, ran = (
        as_written(lab, next(line for line in SEQUENCE if line.startswith(word))) for word in ("plan", "run")
    )
    assert (planned.status, ran.status) == (0, 0), planned.errors + ran.errors
    assert "no model to deploy" not in ran.errors
    listed = lab.client("s3").list_objects_v2(Bucket=lab.deployment().bucket, Prefix=f"runs/{EXECUTION}/")["Contents"]
    (key,) = [row["Key"] for row in listed if row["Key"].endswith("/model.tar.gz")]
    return str(key)


def put_suite(lab: LocalLab, name: str, suite: dict[str, Any]) -> None:
    path = lab.folder / "suites" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(suite, sort_keys=False))


def line_of(command: str) -> str:
    (line,) = [line for line in SEQUENCE if line.split()[0] == command]
    return line


def as_written(lab: LocalLab, line: str, *options: str) -> Answer:
    """The words of a command line after ``traindyno``, for the local cloud."""
    words = shlex.split(line)
    return lab.traindyno(*words, *(["--local"] if "--local" not in words else []), *options)


def deployed(lab: LocalLab, *options: str) -> dict[str, Any]:
    answer = as_written(lab, line_of("deploy"), "--owner", "ada", *options, "--format", "json")
    assert answer.status == 0, answer.errors
    row: dict[str, Any] = answer.json()
    return row


def ask(lab: LocalLab, name: str, text: str) -> dict[str, Any]:
    body = json.dumps({"inputs": text}).encode()
    runtime = lab.client("sagemaker-runtime")
    answer = runtime.invoke_endpoint(EndpointName=name, Body=body, ContentType="application/json")
    document: dict[str, Any] = json.loads(answer["Body"].read())
    return document


def test_readme_names_the_commands_in_the_order_in_which_they_work() -> None:
    """The tests below run each of these lines."""
    assert [line.split()[0] for line in SEQUENCE] == ["plan", "run", "deploy", "undeploy", "stop"]
    assert "make install" in README.partition("traindyno doctor --aws")[0]


def test_a_trained_classifier_is_deployed_checked_invoked_listed_and_ended(lab: LocalLab, trained: str) -> None:
    """It ends before it costs more than its amount."""
    answer = as_written(lab, line_of("deploy"), "--owner", "ada", "--max-usd", "0.10", "--format", "json")
    assert answer.status == 0, answer.errors
    assert "$0.10 per hour, $2.40 per day" in answer.errors
    assert "it costs $0.10 at most (--max-usd $0.10)" in answer.errors
    row = answer.json()
    name = row["deployment"]["name"]
    assert (row["status"], row["checked_samples"]) == ("ready", 8)
    assert 0 < row["latency"]["p50_seconds"] <= row["latency"]["p99_seconds"]
    assert float(row["cost"]["usd_per_million_requests"]) == pytest.approx(
        0.10 * row["latency"]["mean_seconds"] * 1e6 / 3600, rel=1e-3
    )
    (first, second) = ask(lab, name, "a good film, very good")["predictions"]
    assert first["score"] + second["score"] == pytest.approx(1, abs=1e-3)
    arn = lab.client("sagemaker").describe_endpoint(EndpointName=name)["EndpointArn"]
    tags = {tag["Key"]: tag["Value"] for tag in lab.client("sagemaker").list_tags(ResourceArn=arn)["Tags"]}
    assert (tags["traindyno:owner"], tags["traindyno:execution"]) == ("ada", EXECUTION)
    listed = lab.traindyno("endpoints", "--local", "--format", "json").json()
    assert [each["deployment"]["name"] for each in listed] == [name]

    receipt = lab.traindyno("report", "--receipt", EXECUTION, "--local")
    assert f"in addition, endpoint {name} cost $" in receipt.output
    (billed,) = lab.traindyno("report", "--receipt", EXECUTION, "--local", "--format", "json").json()["deployments"]
    assert (billed["name"], float(billed["usd_per_hour"]), billed["until"]) == (name, 0.10, None)
    assert 0 < float(billed["spent_usd"]) < 0.01
    stopped = as_written(lab, line_of("stop"))
    assert "has ended already (succeeded)" in stopped.errors
    check_end_at_amount(lab, name)


def check_end_at_amount(lab: LocalLab, name: str) -> None:
    """The sweep of the lab deletes it; no command runs then. Its creation is dated back, so that nobody waits."""
    sweep(lab)
    assert ask(lab, name, "a good film")["predictions"]
    # $0.10 pays for an hour; ten minutes of it are kept until the end is noticed and has come
    change(lab, name, "created_at = created_at - :seconds", 3000)
    sweep(lab)
    eventually(lambda: not lab.client("sagemaker").list_endpoints(NameContains=name)["Endpoints"])
    deployments = lab.traindyno("report", "--receipt", EXECUTION, "--local", "--format", "json").json()["deployments"]
    (ended,) = [each for each in deployments if each["name"] == name]
    assert ended["status"] == "removed"
    assert ended["message"] == "the lab ended it before it could cost more than its max_usd of $0.10"
    # 3,000 s at $0.10 an hour
    assert 0.083 < float(ended["spent_usd"]) <= 0.10


def test_the_trainium_pack_goes_on_to_an_endpoint_as_its_page_says(lab: LocalLab) -> None:
    """The suite has fewer steps, and each cell once. The cells differ in their compiler, and hardly in their losses."""
    make_environment(XLA_FOLDER)
    suite = reference_suite(PACK)
    suite["measurement"]["max_steps"] = 15
    suite["workload"]["environment"] |= BRIEF_COMPILATION
    put_suite(lab, PACK, {"name": "bert-trainium-local", **suite})
    ran, served, listed = (as_written(lab, line) for line in COMMANDS)
    assert (ran.status, served.status, listed.status) == (0, 0, 0), ran.errors + served.errors + listed.errors
    results = lab.traindyno("report", "trainium", "--local", "--format", "json").json()["results"]
    assert [result["outcome"] for result in results] == ["completed"] * 2
    eager, compiled = ([point["loss"] for point in result["measured"]["loss"]["points"]] for result in results)
    assert compiled == pytest.approx(eager, rel=1e-4)
    (name,) = set(re.findall(r"traindyno undeploy (\S+)", served.errors))
    assert "8 answers agree with the training job's own" in served.output + served.errors
    assert "bert-trainium-l" in listed.output
    variables = {**os.environ, **lab.traindyno("local", "env", "--format", "json").json()}
    asks = [sys.executable, "-c", REQUEST.replace("NAME", name)]
    asked = subprocess.run(asks, env=variables, capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr
    answers = [line.split() for line in asked.stdout.splitlines()]
    assert len(answers) == 2
    assert {label for label, _ in answers} <= {"LABEL_0", "LABEL_1"}
    assert all(0.5 <= float(score) <= 1 for _, score in answers)
    assert as_written(lab, f"undeploy {name} --local").status == 0


def test_a_transform_job_is_stopped_at_its_limit(lab: LocalLab, trained: str) -> None:
    """The limit is moved to now as soon as the job works, on requests that keep it busy."""
    requests = lab.folder / "many.jsonl"
    requests.write_text('{"inputs": "a good film"}\n' * 30_000)
    answer = as_written(
        lab, line_of("deploy"), "--transform", str(requests), "--hours", "2", "--no-wait", "--format", "json"
    )
    assert answer.status == 0, answer.errors
    # two hours and ten minutes of $0.10
    assert "the lab stops it, if it has not ended, within 10 min after" in answer.errors
    assert "it costs $0.22 at most" in answer.errors
    name = answer.json()["name"]
    eventually(lambda: "TransformStartTime" in transform_job(lab, name), seconds=120)
    change(lab, name, "deployment.expires_at = :seconds", int(time.time()))
    sweep(lab)
    eventually(lambda: transform_job(lab, name)["TransformJobStatus"] == "Stopped", seconds=30)
    eventually(lambda: row_of(lab, name)["status"] == "removed", seconds=60)
    row = row_of(lab, name)
    assert "the lab stopped it, because it had not ended within its time limit" in row["message"]
    assert 0 < row["billed_seconds"] < 120
    answers = lab.client("s3").list_objects_v2(Bucket=lab.deployment().bucket, Prefix=f"transforms/{name}/")
    assert "Contents" not in answers


def transform_job(lab: LocalLab, name: str) -> dict[str, Any]:
    """Empty until it exists."""
    try:
        return dict(lab.client("sagemaker").describe_transform_job(TransformJobName=name))
    except ClientError:
        return {}


def row_of(lab: LocalLab, name: str) -> dict[str, Any]:
    rows = lab.traindyno("endpoints", "--local", "--all", "--format", "json").json()
    (row,) = [each for each in rows if each["deployment"]["name"] == name]
    return dict(row)


def change(lab: LocalLab, name: str, assignment: str, seconds: int) -> None:
    key = {"pk": "model-deployments", "sk": f"deployment#{name}"}
    lab.table().update_item(
        Key=key, UpdateExpression=f"SET {assignment}", ExpressionAttributeValues={":seconds": seconds}
    )


def sweep(lab: LocalLab) -> None:
    """Runs the function that the lab's schedule starts every minute."""
    pages = lab.client("lambda").get_paginator("list_functions").paginate()
    names = [each["FunctionName"] for page in pages for each in page["Functions"]]
    (name,) = [each for each in names if "ReconcileEndpoints" in each]
    answer = lab.client("lambda").invoke(FunctionName=name, Payload=b"{}")
    assert "FunctionError" not in answer, answer["Payload"].read()


def test_a_transform_job_answers_the_lines_of_a_local_file(lab: LocalLab, trained: str) -> None:
    requests = lab.folder / "requests.jsonl"
    requests.write_text("".join(json.dumps({"inputs": f"a {word} film"}) + "\n" for word in ("good", "bad", "good")))
    row = deployed(lab, "--transform", str(requests))
    assert (row["status"], row["checked_samples"]) == ("removed", 8)  # the model is deleted when the job ends
    jobs = [lab.client("sagemaker").describe_transform_job(TransformJobName=name) for name in job_names(row)]
    worked = [(job["TransformEndTime"] - job["TransformStartTime"]).total_seconds() for job in jobs]
    assert row["billed_seconds"] == pytest.approx(sum(worked), abs=0.01)
    key = f"transforms/{row['deployment']['name']}/requests.jsonl.out"
    written = lab.client("s3").get_object(Bucket=lab.deployment().bucket, Key=key)["Body"].read().decode()
    answers = [json.loads(line) for line in written.splitlines()]
    assert len(answers) == 3
    assert answers[0] == answers[2] != answers[1]


def job_names(row: dict[str, Any]) -> tuple[str, str]:
    name = row["deployment"]["name"]
    return f"{name}-check", name


def test_a_transform_job_whose_answers_differ_does_not_start(lab: LocalLab, trained: str) -> None:
    """The training job's samples have other answers than the model, as if another model had replaced it."""
    s3, bucket = lab.client("s3"), lab.deployment().bucket
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=f"runs/{EXECUTION}/")["Contents"]
    (key,) = [row["Key"] for row in listed if row["Key"].endswith("/evaluation_samples.json")]
    whole = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    samples = json.loads(whole)
    samples["samples"][0]["predictions"][0]["score"] += 0.2
    s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(samples).encode())
    requests = lab.folder / "unanswered.jsonl"
    requests.write_text('{"inputs": "a film"}\n')
    try:
        answer = lab.traindyno("deploy", EXECUTION, "--local", "--transform", str(requests))
    finally:
        s3.put_object(Bucket=bucket, Key=key, Body=whole)
    assert answer.status == 1
    assert "was not deployed (AnswersDiffer)" in answer.errors
    assert "1 answers differ from the training job's: sample 1" in answer.errors
    row = lab.traindyno("endpoints", "--local", "--all", "--format", "json").json()[0]
    assert (row["status"], row["checked_samples"]) == ("removed", None)
    with pytest.raises(ClientError):
        lab.client("sagemaker").describe_transform_job(TransformJobName=row["deployment"]["name"])
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket, Prefix=f"models/{row['deployment']['name']}")


def test_a_serverless_endpoint_has_an_unknown_price_and_is_deleted(lab: LocalLab, trained: str) -> None:
    row = deployed(lab, "--serverless", "2048")
    assert (row["status"], row["checked_samples"]) == ("ready", 8)
    assert row["latency"]["p50_seconds"] > 0
    assert (row["cost"]["usd_per_hour"], row["cost"]["spent_usd"]) == (None, None)
    name = row["deployment"]["name"]
    (variant,) = lab.client("sagemaker").describe_endpoint(EndpointName=name)["ProductionVariants"]
    assert variant["CurrentServerlessConfig"] == {"MemorySizeInMB": 2048, "MaxConcurrency": 5}
    deployments = lab.traindyno("report", "--receipt", EXECUTION, "--local", "--format", "json").json()["deployments"]
    (billed,) = [each for each in deployments if each["name"] == name]
    assert billed["expires_at"] == pytest.approx(billed["since"] + 24 * 3600, abs=60)
    removed = as_written(lab, line_of("undeploy").replace("NAME", name))
    assert removed.status == 0, removed.errors
    assert f"{name} is deleted" in removed.errors
    assert lab.traindyno("endpoints", "--local", "--format", "json").json() == []
    assert lab.client("sagemaker").list_endpoints(StatusEquals="InService")["Endpoints"] == []
    prefix = lab.client("s3").list_objects_v2(Bucket=lab.deployment().bucket, Prefix=f"models/{name}")
    assert "Contents" not in prefix


def test_a_model_that_does_not_load_fails_with_the_containers_last_lines(lab: LocalLab, trained: str) -> None:
    s3, bucket = lab.client("s3"), lab.deployment().bucket
    whole = s3.get_object(Bucket=bucket, Key=trained)["Body"].read()
    s3.put_object(Bucket=bucket, Key=trained, Body=without_weights(whole))
    try:
        answer = lab.traindyno("deploy", EXECUTION, "--local")
    finally:
        s3.put_object(Bucket=bucket, Key=trained, Body=whole)
    assert answer.status == 1
    assert "did not pass the ping health check" in answer.errors
    assert "model.safetensors" in answer.errors
    rows = lab.traindyno("endpoints", "--local", "--all", "--format", "json").json()
    assert rows[0]["status"] == "removed"
    assert "model.safetensors" in rows[0]["message"]
    assert lab.client("sagemaker").list_endpoints()["Endpoints"] == []


def without_weights(archive: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as source, tarfile.open(fileobj=packed, mode="w:gz") as target:
        for member in source:
            if not member.name.endswith(".safetensors"):
                target.addfile(member, source.extractfile(member) if member.isreg() else None)
    return packed.getvalue()
