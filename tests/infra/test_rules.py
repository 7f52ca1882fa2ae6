"""The AwsSolutions rules: nothing is left over, and whatever is excused has a reason."""

import json

import pytest

from tests.infra.synthesis import synthesise


@pytest.mark.parametrize("target", ["aws", "local"])
def test_no_finding_is_left(target: str) -> None:
    assert synthesise(target=target).rule_findings() == []


def test_every_exception_is_for_one_finding_and_says_why() -> None:
    tree = json.loads((synthesise(target="aws").folder / "Lab.metadata.json").read_text())
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
