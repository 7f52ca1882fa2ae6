"""The AwsSolutions rules: nothing is left over, and whatever is excused has a reason."""

import json
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3

from infra.permissions import check_rules
from tests.infra.synthesis import REPO_ROOT, synthesise


@pytest.mark.parametrize("target", ["aws", "local"])
def test_no_finding_is_left(target: str) -> None:
    assert synthesise(target=target, rules="on").rule_findings() == []


def test_every_exception_is_for_one_finding_and_says_why() -> None:
    tree = json.loads(
        (synthesise(target="aws", rules="on").folder / "Lab.metadata.json").read_text()
    )
    excused = [
        rule
        for entries in tree.values()
        for entry in entries
        if "acknowledged" in entry["type"].lower()
        for rule in entry["data"].items()
    ]
    assert excused
    for finding, reason in excused:
        assert "IAM5" not in finding or "[" in finding
        assert len(str(reason).split()) >= 5, finding


def test_the_rules_fail_the_synthesis_of_a_bucket_without_tls_and_logs(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    s3.Bucket(cdk.Stack(app, "Careless"), "Bucket")
    check_rules(app)
    with pytest.raises(RuntimeError, match="AwsSolutions-S1"):
        app.synth()
    report = json.loads((tmp_path / "validation-report.json").read_text())
    names = {
        finding["ruleName"]
        for plugin in report["pluginReports"]
        for finding in plugin["violations"]
    }
    assert {"AwsSolutions-S1", "AwsSolutions-S10"} <= {
        name.partition("::")[2] or name for name in names
    }


def test_an_ordinary_synthesis_leaves_the_rules_to_make_check() -> None:
    assert not (synthesise(target="aws").folder / "validation-report.json").exists()
    assert "rules=on" in (REPO_ROOT / "Makefile").read_text()
