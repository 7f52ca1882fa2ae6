"""A classifier goes from its training to an endpoint in a local cloud, by the commands of README and of the page about
the Trainium post.

Other tests are about the ways in which this fails.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from localcloud.cloud import environment_of
from tests.local.forked_programs import REPO_ROOT, Answer
from tests.local.local_lab import LocalLab
from tests.local.recorded_calls import as_if_in
from tests.local.test_reference_suites import BRIEF_COMPILATION, ONE_THREAD, XLA_FOLDER, reference_suite
from tests.training.run_documents import MODELS, SEQUENCE_LENGTH, write_reviews
from tests.xla.xla_environment import make_environment
from traindyno.lab.environment import BucketEnvironment
from traindyno.lab.serving.end_endpoints import open_serving, sweep_endpoints

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


def test_a_trained_classifier_is_deployed_checked_invoked_listed_and_ended(lab: LocalLab) -> None:
    """It ends before it costs more than its amount."""
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
    answer = as_written(lab, line_of("deploy"), "--max-usd", "0.10")
    assert answer.status == 0, answer.errors
    assert "$0.10 per hour" in answer.errors
    assert "it costs $0.10 at most (--max-usd $0.10)" in answer.errors
    assert "8 answers agree with the training job's own" in answer.errors
    assert re.search(r"p50 [\d.]+ ms.*per million requests", answer.errors, re.DOTALL)
    (row,) = lab.traindyno("endpoints", "--local", "--format", "json").json()
    name = row["deployment"]["name"]
    assert row["status"] == "InService"
    (first, second) = ask(lab, name, "a good film, very good")["predictions"]
    assert first["score"] + second["score"] == pytest.approx(1, abs=1e-3)
    arn = lab.client("sagemaker").describe_endpoint(EndpointName=name)["EndpointArn"]
    tags = {tag["Key"]: tag["Value"] for tag in lab.client("sagemaker").list_tags(ResourceArn=arn)["Tags"]}
    assert tags["traindyno:execution"] == EXECUTION
    assert tags["traindyno:ends_at"] == f"{datetime.fromtimestamp(row['ends_at'], UTC):%Y-%m-%dT%H:%M:%SZ}"
    # $0.10 pays for an hour; ten minutes of it are kept until the end is noticed and has come
    assert row["ends_at"] == pytest.approx(row["deployment"]["created_at"] + 3000)
    assert "has ended already (succeeded)" in as_written(lab, line_of("stop")).errors
    with as_if_in(environment_of(lab.home)):
        stack = lab.deployment()
        serving = open_serving(BucketEnvironment(lab=stack.lab, table=stack.table, bucket=stack.bucket))
        assert sweep_endpoints(serving, now=row["ends_at"] - 1) == (0, [])
        assert ask(lab, name, "a good film")["predictions"]
        assert sweep_endpoints(serving, now=row["ends_at"] + 1) == (1, [])
    assert lab.client("sagemaker").list_endpoints()["Endpoints"] == []


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
