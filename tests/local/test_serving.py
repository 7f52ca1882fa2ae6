"""A classifier goes from training to an endpoint in a local cloud, as the page of the Trainium post
and README say.
"""

import os
import re
import shlex
import subprocess
import sys

import pytest
import yaml

from localcloud.cloud import environment_of
from tests.local.forked_programs import REPO_ROOT, Answer
from tests.local.local_lab import LocalLab
from tests.local.recorded_calls import as_if_in
from tests.local.test_reference_suites import BRIEF_COMPILATION, XLA_FOLDER, reference_suite
from tests.xla.xla_environment import make_environment
from traindyno.lab.end_endpoints import open_serving, sweep_endpoints
from traindyno.lab.environment import BucketEnvironment

pytestmark = pytest.mark.local

README = (
    (REPO_ROOT / "README.md")
    .read_text()
    .partition("## In your AWS account")[2]
    .partition("\n## ")[0]
)
PAGE = (REPO_ROOT / "docs" / "experiments" / "bert-trainium.md").read_text()
LINE = re.compile(r"^    traindyno +(.*?) *(?:#.*)?$", re.MULTILINE)
# What README does with one suite
SEQUENCE = [line for line in LINE.findall(README) if re.search("mine|NAME", line)]
COMMANDS = LINE.findall(
    PAGE.partition("<!-- commands: run by tests/local/test_serving.py -->\n")[2].partition(
        "<!-- end -->"
    )[0]
)
REQUEST = PAGE.partition("```python\n")[2].partition("```")[0]
PACK = "bert-trainium/local"


def test_the_trainium_pack_goes_on_to_an_endpoint_as_its_page_says(lab: LocalLab) -> None:
    """The suite has fewer steps, and each cell once.

    The cells differ in their compiler, and hardly in their losses.
    """
    make_environment(XLA_FOLDER)
    suite = reference_suite(PACK)
    suite["measurement"]["max_steps"] = 15
    suite["workload"]["environment"] |= BRIEF_COMPILATION
    path = lab.folder / "suites" / f"{PACK}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({"name": "bert-trainium-local", **suite}, sort_keys=False))
    ran, served, listed = (as_written(lab, line) for line in COMMANDS)
    assert (ran.status, served.status, listed.status) == (0, 0, 0), (
        ran.errors + served.errors + listed.errors
    )
    assert "no model to deploy" not in ran.errors
    results = lab.traindyno("report", "trainium", "--local", "--format", "json").json()["results"]
    assert [result["outcome"] for result in results] == ["completed"] * 2
    eager, compiled = (
        [point["loss"] for point in result["measured"]["loss"]["points"]] for result in results
    )
    assert compiled == pytest.approx(eager, rel=1e-4)
    (name,) = set(re.findall(r"traindyno undeploy (\S+)", served.errors))
    assert "8 answers agree with the training job's own" in served.errors
    assert re.search(r"p50 [\d.]+ ms.*per million requests", served.errors, re.DOTALL)
    assert "bert-trainium-l" in listed.output
    variables = {**os.environ, **lab.traindyno("local", "env", "--format", "json").json()}
    asks = [sys.executable, "-c", REQUEST.replace("NAME", name)]
    asked = subprocess.run(asks, env=variables, capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr
    answers = [line.split() for line in asked.stdout.splitlines()]
    assert len(answers) == 2
    assert {label for label, _ in answers} <= {"LABEL_0", "LABEL_1"}
    assert all(0.5 <= float(score) <= 1 for _, score in answers)

    as_in_readme = {line.split()[0]: line.replace("NAME", name) for line in SEQUENCE}
    assert [*as_in_readme] == ["plan", "run", "deploy", "undeploy", "stop"]
    for command in ("plan", "undeploy"):
        answer = as_written(lab, as_in_readme[command].replace("mine", PACK))
        assert answer.status == 0, answer.errors
    stopped = as_written(lab, as_in_readme["stop"].replace("mine", "trainium"))
    assert "has ended already (succeeded)" in stopped.errors
    answer = as_written(
        lab, as_in_readme["deploy"].replace("mine", "trainium --cell eager --max-usd 0.10")
    )
    assert answer.status == 0, answer.errors
    assert "$0.10 per hour" in answer.errors
    assert "it costs $0.10 at most (--max-usd $0.10)" in answer.errors
    (row,) = lab.traindyno("endpoints", "--local", "--format", "json").json()
    assert row["status"] == "InService"
    # $0.10 pays for an hour; ten minutes of it are kept until the end is noticed and has come
    assert row["ends_at"] == pytest.approx(row["deployment"]["created_at"] + 3000)
    with as_if_in(environment_of(lab.home)):
        stack = lab.deployment()
        serving = open_serving(
            BucketEnvironment(lab=stack.lab, table=stack.table, bucket=stack.bucket)
        )
        assert sweep_endpoints(serving, now=row["ends_at"] - 1) == (0, [])
        assert sweep_endpoints(serving, now=row["ends_at"] + 1) == (1, [])
    assert lab.client("sagemaker").list_endpoints()["Endpoints"] == []


def as_written(lab: LocalLab, line: str) -> Answer:
    """The words of a command line after ``traindyno``, for the local cloud."""
    words = shlex.split(line)
    return lab.traindyno(*words, *(["--local"] if "--local" not in words else []))
