"""A pack is rehearsed on this machine: granted quotas, traces, prices, simulated jobs, a verdict, claims."""

from collections.abc import Iterator

import pytest

from bench.rehearsal import findings, write_traces
from bench.rehearsal_findings import differences
from tests.local.forked_programs import REPO_ROOT
from tests.local.local_lab import LocalLab
from tests.local.repeats import repeat_of

pytestmark = [
    pytest.mark.local,
    repeat_of(
        "tests/unit/bench/test_rehearsal.py"
        "::test_the_claims_come_out_as_the_posts_own_tables_say_and_the_page_counts_them",
        "tests/local/test_large_models.py::test_the_rehearsal_ends_in_a_simulated_verdict_with_interrupted_jobs",
    ),
]

PACK = "bert-trainium"
GRANTED = ("--grant-quotas", "16")


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalLab]:
    rehearsal = LocalLab(tmp_path_factory.mktemp("rehearsal"))
    try:
        up = rehearsal.traindyno("local", "up", *GRANTED, *write_traces(rehearsal.folder, [PACK]))
        assert up.status == 0, up.errors
        yield rehearsal
    finally:
        rehearsal.traindyno("local", "down", "--erase", "--yes")


def test_rehearsal_ends_in_a_simulated_verdict_with_the_findings_of_the_post(
    rehearsal: LocalLab,
) -> None:
    suite = REPO_ROOT / "suites" / PACK / "rehearsal.yaml"
    ran = rehearsal.traindyno("run", str(suite), "--local", "--format", "json")
    assert ran.status == 0, ran.errors
    report = ran.json()
    verdict = report["verdict"]
    assert verdict["is_simulated"] is True
    best = next(row for row in verdict["rows"] if row["cell_id"] == verdict["recommended"])
    assert best["instance"] == "ml.trn1.32xlarge"
    assert [row["outcomes"] for row in verdict["rows"]] == [{"completed": 3}] * 2
    assert [*differences(PACK, findings(report))] == []
