"""The independent linters of `make check`: they pass the templates, and find what is broken on
purpose.
"""

import copy
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.state_machine_text import state_machine_definitions
from tests.infra.synthesis import OTHER_LAB, REPO_ROOT, lab

LINTERS = REPO_ROOT / ".envs/lint/bin"
VALIDATOR = REPO_ROOT / "node_modules/asl-validator/dist/bin/asl-validator.js"
needs_linters = pytest.mark.skipif(
    not (LINTERS / "checkov").exists(), reason="`make templates` makes this environment"
)


@pytest.fixture(scope="module")
def definition() -> dict[str, Any]:
    return state_machine_definitions(dict(lab(**OTHER_LAB).to_json()))["other-lab-suites"]


def validate(definition: dict[str, Any], folder: Path) -> "subprocess.CompletedProcess[str]":
    (folder / "machine.asl.json").write_text(json.dumps(definition))
    arguments = [
        os.environ["JSII_NODE"],
        str(VALIDATOR),
        "--json-path",
        str(folder / "machine.asl.json"),
    ]
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


def run_linter(name: str, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [LINTERS / name, *arguments], cwd=REPO_ROOT, capture_output=True, text=True, check=False
    )


def write_template(document: Mapping[str, Any], folder: Path) -> Path:
    folder.mkdir()
    path = folder / "Lab.template.json"
    path.write_text(json.dumps(document))
    return path


def test_the_state_machine_is_valid(definition: dict[str, Any], tmp_path: Path) -> None:
    answer = validate(definition, tmp_path)
    assert answer.returncode == 0, answer.stdout


def test_a_transition_to_nowhere_is_found(definition: dict[str, Any], tmp_path: Path) -> None:
    broken = copy.deepcopy(definition)
    broken["States"][broken["StartAt"]]["Next"] = "Nowhere"
    answer = validate(broken, tmp_path)
    assert answer.returncode != 0
    assert "MISSING_TRANSITION_TARGET" in answer.stdout + answer.stderr


@pytest.fixture(scope="module")
def broken() -> dict[str, Any]:
    """A wrong property, and buckets that may be public."""
    document = dict(lab(**OTHER_LAB).to_json())
    (queue,) = [
        resource_of_kind
        for resource_of_kind in document["Resources"].values()
        if resource_of_kind["Type"] == "AWS::SQS::Queue"
    ]
    queue["Properties"]["MessageRetention"] = 5
    for resource in document["Resources"].values():
        if resource["Type"] == "AWS::S3::Bucket":
            resource["Properties"].pop("PublicAccessBlockConfiguration")
    return document


@needs_linters
def test_cfn_lint_finds_nothing_in_a_lab_with_every_setting_and_a_wrong_property(
    broken: dict[str, Any], tmp_path: Path
) -> None:
    """One start of the linter reads both templates: it takes seconds."""
    clean = write_template(lab(**OTHER_LAB).to_json(), tmp_path / "clean")
    wrong = write_template(broken, tmp_path / "broken")
    answer = run_linter("cfn-lint", "--format", "json", clean, wrong)
    findings = json.loads(answer.stdout)
    assert {finding["Filename"] for finding in findings} == {str(wrong)}, answer.stdout
    assert any("MessageRetention" in finding["Message"] for finding in findings)
    assert answer.returncode != 0


@needs_linters
def test_checkov_finds_nothing_and_a_public_bucket(broken: dict[str, Any], tmp_path: Path) -> None:
    clean = write_template(lab(**OTHER_LAB).to_json(), tmp_path / "clean")
    wrong = write_template(broken, tmp_path / "broken")
    files = ("--file", clean, wrong)
    answer = run_linter(
        "checkov", "--config-file", REPO_ROOT / ".checkov.yaml", *files, "--output", "json"
    )
    report = json.loads(answer.stdout)
    failed = {
        (Path(check["file_path"]).parent.name, check["check_id"])
        for check in report["results"]["failed_checks"]
    }
    assert ("broken", "CKV_AWS_53") in failed, answer.stdout
    assert {folder for folder, _ in failed} == {"broken"}
    assert report["summary"]["resource_count"] == 2 * len(broken["Resources"])


@pytest.mark.parametrize(
    ("file", "key"), [(".checkov.yaml", "skip-check"), (".cfnlintrc.yaml", "ignore_checks")]
)
def test_every_skipped_check_has_a_written_reason(file: str, key: str) -> None:
    text = (REPO_ROOT / file).read_text()
    lines = text.splitlines()
    for name in yaml.safe_load(text)[key]:
        (index,) = [number for number, line in enumerate(lines) if line.strip() == f"- {name}"]
        while lines[index].strip().startswith("- "):
            index -= 1
        assert lines[index].strip().startswith("# "), name
        assert len(lines[index].split()) > 6, name
