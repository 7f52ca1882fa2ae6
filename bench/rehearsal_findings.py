"""What the claims come out as in a rehearsal: as the posts' own tables say."""

from collections.abc import Iterator, Mapping

NODES = (2, 4, 8, 16)
INCONSISTENT, REPRODUCED, NOT_TESTABLE = "internally_inconsistent", "reproduced", "not_testable"

ALBERT_REPRODUCED = (
    *(f"{name}-{nodes}-nodes" for nodes in NODES for name in ("train-time", "throughput", "smddp-over-ddp")),
    *(f"loader-workers-{nodes}-nodes-batch-{batch}" for nodes in NODES for batch in (16, 32)),
    *("efficiency-4-nodes", "efficiency-8-nodes", "twice-as-fast", "smddp-almost-35-percent"),
    *("saturation-batch-16", "saturation-batch-32"),
)
ALBERT_SETTINGS = (
    *(f"{name}-{nodes}-nodes" for nodes in NODES for name in ("steps", "global-batch")),
    *("examples", "workers-per-process"),
)
EXPECTED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "albert-scaling": {
        REPRODUCED: ALBERT_REPRODUCED,
        NOT_TESTABLE: ALBERT_SETTINGS,
        INCONSISTENT: ("efficiency-16-nodes", "faster-training-time", "faster-training-time-title"),
    },
    "bert-trainium": {
        REPRODUCED: (
            *(f"{kind}-{figure}" for kind in ("trn1", "p4d") for figure in ("throughput", "accuracy", "billed-time")),
            *("p4d-cost", "throughput-gain", "no-drop-in-accuracy"),
        ),
        NOT_TESTABLE: ("trn1-price", "p4d-price", "accelerator-memory", "network-bandwidth", "peak-compute"),
        INCONSISTENT: (
            "trn1-cost",
            "faster-time-to-train",
            "half-the-cost",
            "half-the-cost-introduction",
            "half-the-cost-conclusion",
        ),
    },
    "gpt2-compiler": {
        REPRODUCED: ("throughput-rises", "training-time-falls", "billed-time-falls"),
        NOT_TESTABLE: (
            *("batch-native", "batch-compiled", "learning-rate-native", "learning-rate-compiled", "gpus"),
            *("instances-in-code", "block", "epochs"),
        ),
        INCONSISTENT: ("instances",),
    },
    "gptj-parallel": {
        REPRODUCED: ("epoch-before", "epoch-after", "six-times-faster", "epoch-alone"),
        NOT_TESTABLE: ("start", "trace-and-partition", "data-parallel-degree", "parameters"),
        INCONSISTENT: ("six-times-by-the-epoch-alone",),
    },
}


def expected_findings(pack: str) -> dict[str, str]:
    """Claim id → finding."""
    return {claim_id: finding for finding, claim_ids in EXPECTED[pack].items() for claim_id in claim_ids}


def differences(pack: str, findings: Mapping[str, str]) -> Iterator[str]:
    """One line for each claim that came out otherwise."""
    expected = expected_findings(pack)
    for claim_id in sorted(expected.keys() | findings.keys()):
        wanted, found = expected.get(claim_id, "no claim"), findings.get(claim_id, "no claim")
        if wanted != found:
            yield f"{pack}: {claim_id}: expected {wanted}, got {found}"
