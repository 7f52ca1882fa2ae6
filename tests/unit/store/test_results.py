"""What the preparation job wrote beside its tokens is read with the plan's cells."""

from typing import Any

from tests.unit.lab_in_memory import EXECUTION, NOW, MemoryLab
from tests.unit.suites import small_suite
from traindyno.core.planning.memory import MemoryEstimate, MemoryFinding, findings_document
from traindyno.core.planning.plan import Plan, plan_suite
from traindyno.core.s3_keys import tokens_folder
from traindyno.core.suite.memory_settings import distinct_settings
from traindyno.core.suite.preparation import MEMORY_FILE, TOKENS_MANIFEST, TokenSet, tokens_manifest
from traindyno.store.results import load_memory
from traindyno.store.token_cache import TokenCache

KEY = "c0ffee" + "0" * 58
FINDING = MemoryFinding(
    estimate=MemoryEstimate(peak_bytes=80, parameter_bytes=10, gradient_bytes=10, optimizer_bytes=20)
)


def plan() -> Plan:
    tokens = (TokenSet(packing=True, key=KEY, memory_digest="d"),)
    return plan_suite(small_suite(), execution_id=EXECUTION, prices={}, quotas={}, histories={}, tokens=tokens)


def prepared(findings: Any = None) -> MemoryLab:
    """A lab whose preparation has ended; a simulated one leaves no findings."""
    lab = MemoryLab()
    folder = tokens_folder(KEY, "job")
    lab.bucket.write_json(f"{folder}{TOKENS_MANIFEST}", tokens_manifest(KEY, {}))
    if findings is not None:
        lab.bucket.write_json(f"{folder}{MEMORY_FILE}", findings)
    assert TokenCache(lab.bucket).keep(KEY, "job", made_at=NOW) is None
    return lab


def test_the_cells_have_the_estimates_that_were_made_beside_their_tokens() -> None:
    planned = plan()
    document = findings_document(dict.fromkeys(distinct_settings(planned.cells), FINDING))
    memory = load_memory(prepared(document).bucket, planned)
    assert [(each.cell_id, each.finding) for each in memory] == [(cell.cell_id, FINDING) for cell in planned.cells]


def test_without_findings_the_cells_have_no_estimates() -> None:
    assert load_memory(prepared().bucket, plan()) == ()
