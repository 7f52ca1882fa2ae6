"""The independent linters of `make check`: they pass the templates, and find what is broken on purpose."""

import copy
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.state_machine_text import state_machine_definitions
from tests.infra.synthesis import OTHER_LAB, REPO_ROOT, lab

LINTERS = REPO_ROOT / ".envs/lint/bin"
VALIDATOR = REPO_ROOT / "node_modules/asl-validator/dist/bin/asl-validator.js"
needs_linters = pytest.mark.skipif(not (LINTERS / "checkov").exists(), reason="`make templates` makes this environment")


@pytest.fixture(scope="module", params=["suites", "deployments"])
def definition(request: pytest.FixtureRequest) -> dict[str, Any]:
    return state_machine_definitions(lab(**OTHER_LAB).document)[f"other-lab-{request.param}"]


def validate(definition: dict[str, Any], folder: Path) -> "subprocess.CompletedProcess[str]":
    (folder / "machine.asl.json").write_text(json.dumps(definition))
    arguments = [os.environ["JSII_NODE"], str(VALIDATOR), "--json-path", str(folder / "machine.asl.json")]
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


def run_linter(name: str, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([LINTERS / name, *arguments], cwd=REPO_ROOT, capture_output=True, text=True, check=False)


def write_template(document: dict[str, Any], folder: Path) -> Path:
    path = folder / "Lab.template.json"
    path.write_text(json.dumps(document))
    return path


def test_the_state_machine_is_valid(definition: dict[str, Any], tmp_path: Path) -> None:
    answer = validate(definition, tmp_path)
    assert answer.returncode == 0, answer.stdout


def test_a_transition_that_leads_nowhere_is_found(definition: dict[str, Any], tmp_path: Path) -> None:
    broken = copy.deepcopy(definition)
    broken["States"][broken["StartAt"]]["Next"] = "Nowhere"
    answer = validate(broken, tmp_path)
    assert answer.returncode != 0
    assert "MISSING_TRANSITION_TARGET" in answer.stdout + answer.stderr


@needs_linters
def test_cfn_lint_finds_nothing_in_the_template_of_a_lab_with_every_setting(tmp_path: Path) -> None:
    template = write_template(lab(**OTHER_LAB).document, tmp_path)
    answer = run_linter("cfn-lint", template)
    assert (answer.returncode, answer.stdout) == (0, "")


@needs_linters
def test_cfn_lint_finds_a_wrong_property(tmp_path: Path) -> None:
    document = copy.deepcopy(lab(target="aws").document)
    (queue,) = [each for each in document["Resources"].values() if each["Type"] == "AWS::SQS::Queue"]
    queue["Properties"]["MessageRetention"] = 5
    answer = run_linter("cfn-lint", write_template(document, tmp_path))
    assert answer.returncode != 0
    assert "MessageRetention" in answer.stdout


@needs_linters
def test_checkov_finds_nothing_and_a_public_bucket(tmp_path: Path) -> None:
    document = copy.deepcopy(lab(**OTHER_LAB).document)
    arguments = ("--config-file", REPO_ROOT / ".checkov.yaml", "--file")
    clean = run_linter("checkov", *arguments, write_template(document, tmp_path))
    assert clean.returncode == 0, clean.stdout
    for resource in document["Resources"].values():
        if resource["Type"] == "AWS::S3::Bucket":
            resource["Properties"].pop("PublicAccessBlockConfiguration")
    assert "CKV_AWS_53" in run_linter("checkov", *arguments, write_template(document, tmp_path)).stdout


@pytest.mark.parametrize(("file", "key"), [(".checkov.yaml", "skip-check"), (".cfnlintrc.yaml", "ignore_checks")])
def test_every_check_that_is_skipped_has_a_written_reason(file: str, key: str) -> None:
    text = (REPO_ROOT / file).read_text()
    lines = text.splitlines()
    for name in yaml.safe_load(text)[key]:
        (index,) = [number for number, line in enumerate(lines) if line.strip() == f"- {name}"]
        while lines[index].strip().startswith("- "):
            index -= 1
        assert lines[index].strip().startswith("# "), name
        assert len(lines[index].split()) > 6, name
