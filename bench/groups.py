"""The groups of figures, in the order of the document. Adding one: a module with ``measure``, and a line here."""

from collections.abc import Callable
from importlib import import_module

from bench.figures import Section
from bench.kept import Kept

MODULES = {
    "demo": "bench.demo",
    "pairs": "bench.pairs",
    "lambda": "bench.lambda_functions",
    "synth": "bench.synthesis",
    "service": "bench.sagemaker_service",
    "step_log": "bench.step_log",
    "loop": "bench.training_loop",
    "gpu": "bench.gpu",
    "memory": "bench.memory",
    "sharded_model": "bench.sharded_model",
    "replay": "bench.replay",
    "projection": "bench.projection",
    "search": "bench.search",
    "report": "bench.report",
}
TITLES = {
    "demo": "The demo, from nothing to the report",
    "pairs": "Runs of shared jobs against runs of their own jobs",
    "lambda": "Lambda functions",
    "synth": "Synthesis of the CDK app",
    "service": "The local SageMaker service",
    "step_log": "Writing the step log",
    "loop": "The training loop against Hugging Face's Trainer, on a CPU",
    "gpu": "Full-size models on a GPU",
    "memory": "Memory estimates against real tensors",
    "sharded_model": "Building, saving and loading a part of a model",
    "replay": "Thousands of runs in the replay engine",
    "projection": "Short trials against long runs in the local cloud",
    "search": "Search for the best cell",
    "report": "Reports of hundreds of runs",
}


# Their ``measure`` takes ``kept``: what was measured of them before they were cut off can be used.
CUT_AT_CASES = frozenset({"gpu", "loop", "pairs", "replay", "report"})


def command(group: str) -> str:
    return f"python -m bench {group}"


def measure(group: str, *, is_quick: bool, kept: Kept) -> Section:
    """``is_quick``: few repetitions, to test that it works; its figures are not meaningful."""
    module: Callable[..., Section] = import_module(MODULES[group]).measure
    if group in CUT_AT_CASES:
        return module(is_quick=is_quick, kept=kept)
    return kept.case(group, Section, lambda: module(is_quick=is_quick))
