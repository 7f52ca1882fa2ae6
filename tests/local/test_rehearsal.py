"""A suite of AWS instance types rehearsed on this machine: granted quotas, traces, simulated jobs, a verdict."""

import json
from collections.abc import Iterator

import pytest

from tests.local.local_lab import REPO_ROOT, LocalLab

pytestmark = pytest.mark.local

TRACES = {
    "p4d": {"match": {"instance_type": "ml.p4d.24xlarge"}, "step_seconds": 0.5},
    "trn1": {"match": {"instance_type": "ml.trn1.32xlarge"}, "step_seconds": 0.25},
}
GRANTED = ("--grant-quotas", "16")


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalLab]:
    rehearsal = LocalLab(tmp_path_factory.mktemp("rehearsal"))
    traces = rehearsal.folder / "traces"
    traces.mkdir()
    for name, trace in TRACES.items():
        (traces / f"{name}.json").write_text(json.dumps(trace))
    try:
        up = rehearsal.traindyno("local", "up", *GRANTED, "--traces", str(traces))
        assert up.status == 0, up.errors
        yield rehearsal
    finally:
        rehearsal.traindyno("local", "down", "--erase")


def test_a_shipped_suite_of_accelerators_is_rehearsed_to_a_simulated_verdict(rehearsal: LocalLab) -> None:
    suite = REPO_ROOT / "suites" / "modern" / "trainium.yaml"
    ran = rehearsal.traindyno("run", str(suite), "--local", "--format", "json")
    assert ran.status == 0, ran.errors
    verdict = ran.json()["verdict"]
    assert verdict["is_simulated"] is True
    best = next(row for row in verdict["rows"] if row["cell_id"] == verdict["recommended"])
    assert best["instance"] == "ml.trn1.32xlarge"
    assert [row["outcomes"] for row in verdict["rows"]] == [{"completed": 3}] * 3


def test_a_local_cloud_that_is_up_takes_no_other_settings(rehearsal: LocalLab) -> None:
    refused = rehearsal.traindyno("local", "up", *GRANTED)
    assert refused.status != 0
    assert "--grant-quotas 16" in refused.errors
    assert "traindyno local down" in refused.errors
