"""What the claims come out as in a rehearsal: figures that its traces were given are played, none
is reproduced.
"""

from collections.abc import Iterator, Mapping

NODES = (2, 4, 8, 16)
INCONSISTENT = "internally_inconsistent"
PLAYED = "played"
NOT_TESTABLE = "not_testable"

ALBERT_PLAYED = (
    *(
        f"{name}-{nodes}-nodes"
        for nodes in NODES
        for name in ("train-time", "throughput", "smddp-over-ddp")
    ),
    *(f"loader-workers-{nodes}-nodes-batch-{batch}" for nodes in NODES for batch in (16, 32)),
    "efficiency-4-nodes",
    "efficiency-8-nodes",
    "efficiency-16-nodes",
    "twice-as-fast",
    "smddp-almost-35-percent",
    "saturation-batch-16",
    "saturation-batch-32",
)
ALBERT_SETTINGS = (
    *(f"{name}-{nodes}-nodes" for nodes in NODES for name in ("steps", "global-batch")),
    *(f"gpus-{nodes}-nodes" for nodes in (2, 4, 16)),
    "examples",
    "workers-per-process",
    "workers-gain-summary",
    "workers-gain-text",
    "batch-16",
    "batch-32",
    "parameters",
    "parameter-reduction",
    "dataset-size",
    "books",
    "network",
    "vcpus",
)
TRN1_TYPES = ("trn1-2xlarge", "trn1-32xlarge", "trn1n-32xlarge")
TRN1_FIGURES = ("chips", "memory", "vcpus", "host-memory", "network")
EXPECTED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "albert-scaling": {
        PLAYED: ALBERT_PLAYED,
        NOT_TESTABLE: ALBERT_SETTINGS,
        INCONSISTENT: ("faster-training-time", "faster-training-time-title"),
    },
    "bert-trainium": {
        PLAYED: (
            *(
                f"{kind}-{figure}"
                for kind in ("trn1", "p4d")
                for figure in ("throughput", "accuracy", "billed-time")
            ),
            "trn1-cost",
            "p4d-cost",
            "throughput-gain",
            "no-drop-in-accuracy",
        ),
        NOT_TESTABLE: (
            "p4d-price",
            "accelerator-memory",
            "network-bandwidth",
            "peak-compute",
            "reviews",
            "review-years",
            "memory-per-chip",
            "cores-per-chip",
            "chips-in-text",
            *(f"{name}-{figure}" for name in TRN1_TYPES for figure in TRN1_FIGURES),
        ),
        INCONSISTENT: (
            "trn1-price",
            "faster-time-to-train",
            "half-the-cost",
            "half-the-cost-introduction",
            "half-the-cost-conclusion",
        ),
    },
    "gpt2-compiler": {
        PLAYED: ("throughput-rises", "training-time-falls", "billed-time-falls"),
        NOT_TESTABLE: (
            "batch-native",
            "batch-compiled",
            "learning-rate-native",
            "learning-rate-compiled",
            "gpus",
            "instances-in-code",
            "block",
            "epochs",
            "eval-batch",
            "base-learning-rate",
            "reference-batch",
            "volume",
        ),
        INCONSISTENT: ("instances",),
    },
    "gptj-parallel": {
        PLAYED: ("epoch-before", "epoch-after", "six-times-faster", "epoch-alone"),
        NOT_TESTABLE: (
            "start",
            "trace-and-partition",
            "data-parallel-degree",
            "parameters",
            "example-tensor-degree",
            "example-pipeline-degree",
        ),
        INCONSISTENT: ("six-times-by-the-epoch-alone",),
    },
}


def expected_findings(pack: str) -> dict[str, str]:
    """The finding of each claim, by its id."""
    return {
        claim_id: finding for finding, claim_ids in EXPECTED[pack].items() for claim_id in claim_ids
    }


def differences(pack: str, findings: Mapping[str, str]) -> Iterator[str]:
    """One line for each claim with another result than the post's."""
    expected = expected_findings(pack)
    for claim_id in sorted(expected.keys() | findings.keys()):
        wanted = expected.get(claim_id, "no claim")
        finding = findings.get(claim_id, "no claim")
        if wanted != finding:
            yield f"{pack}: {claim_id}: expected {wanted}, got {finding}"
