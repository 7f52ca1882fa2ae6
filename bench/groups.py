"""The groups of figures, in the order of the document.

Adding one: a module with ``measure``, and a line here.
"""

from collections.abc import Callable
from importlib import import_module

from bench.figures import Section
from bench.kept import Kept

MODULES = {
    "demo": "bench.demo",
    "aa": "bench.aa",
    "pairs": "bench.pairs",
    "loop": "bench.training_loop",
    "gpu": "bench.gpu",
    "gpu_pairs": "bench.gpu_pairs",
    "replay": "bench.replay",
    "search": "bench.search",
    "estimates": "bench.estimates",
    "trainings": "bench.trainings",
}
TITLES = {
    "demo": "The demo, from nothing to the report",
    "aa": "Suites of equal cells on this machine",
    "aa_beside": "Suites of equal cells beside other work",
    "pairs": "Runs of shared jobs against runs of their own jobs",
    "loop": "The training loop against Hugging Face's Trainer, on a CPU",
    "gpu": "Full-size models on a GPU",
    "gpu_pairs": "Runs of a shared job on a GPU",
    "replay": "Thousands of runs in the replay engine",
    "search": "Search for the best cell",
    "estimates": "Estimates before the first run",
    "trainings": "Trainings against their projections",
}


# Their ``measure`` takes ``kept``: what was measured of them before they were cut off can be used.
CUT_AT_CASES = frozenset({"gpu", "gpu_pairs", "loop", "pairs", "replay"})


def command(group: str) -> str:
    return f"python -m bench {'aa --beside' if group == 'aa_beside' else group}"


def measure(
    group: str, *, is_quick: bool, kept: Kept, beside: int = 0, times: int | None = None
) -> Section:
    """Measures a group.

    Args:
        group: The group's name.
        is_quick: Whether few repetitions are enough, to test that it works; such figures are not
            meaningful.
        kept: The results that are kept between calls.
        beside: For the group ``aa``, the number of busy processes of another program.
        times: For the group ``aa``, the number of suites.
    """
    module: Callable[..., Section] = import_module(MODULES[group]).measure
    if group in CUT_AT_CASES:
        return module(is_quick=is_quick, kept=kept)
    if group == "aa":
        options = {} if times is None else {"times": times}
        return module(is_quick=is_quick, beside=beside, **options)
    return kept.case(group, Section, lambda: module(is_quick=is_quick))
