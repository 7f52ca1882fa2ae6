"""Our training loop against Hugging Face's Trainer on one CPU thread: at the same work, and with
our best cell.
"""

import tempfile
from pathlib import Path
from statistics import median

from bench.equal_work import equal_work_figures
from bench.figures import Figure, Section, at_least, spread
from bench.groups import TITLES, command
from bench.kept import Kept
from bench.loop_cases import SIZES, TEXT_MODELS, best_cell_case, same_work_case
from bench.race_case import RaceCase, RaceResult
from bench.race_files import run_race
from bench.sample_rows import write_rows

LEAST_SHARE_PERCENT = 80
LEAST_CEILING = 1.05

NOTES = (
    "Same work: both train the same model from the same weights on the same batches in the same "
    "order, with fused AdamW, weight decay, gradients clipped and a constant learning rate, in "
    "one process and on one thread, in turn. Trainer reads a `datasets.Dataset` of tensors that "
    "are padded already; ours collates, and writes its step log. Ratios are Trainer's median "
    "step over ours, round by round. The C library keeps freed memory on all sides, because page "
    "faults make turns differ by more than the sides do. The losses of the first ten steps are "
    "compared; the benchmark fails if they differ.",
    "Bare step: transformers' model with forward, backward, clipping of gradients, and the fused "
    "optimizer's step, on batches that are ready. Trainer's step over the bare step is the "
    f"ceiling of a ratio. The share is unknown where the ceiling is below {LEAST_CEILING:g}: the "
    "time that could be saved is then less than the noise.",
    "Best cell: paragraphs of Python's own documentation and source. Trainer's defaults (fp32, "
    "no compiler, random order, each batch padded to its longest sequence) against the fastest "
    "of our cells of precision and compiler, with packing for language models and buckets of "
    "like length for classification: tokens per second, padding left out.",
)


def measure(*, is_quick: bool, kept: Kept) -> Section:
    figures = []
    for size in SIZES:
        case = same_work_case(size, is_quick=is_quick)
        figures += same_work_figures(case, run_race(case, kept), size.least_ratio)
    with tempfile.TemporaryDirectory() as folder:
        data_folder = str(write_rows(Path(folder)))
        for model in TEXT_MODELS:
            case = best_cell_case(model, data_folder, is_quick=is_quick)
            figures += best_cell_figures(case, run_race(case, kept))
    return Section(
        title=TITLES["loop"], command=command("loop"), figures=tuple(figures), notes=NOTES
    )


def same_work_figures(case: RaceCase, result: RaceResult, least_ratio: float) -> list[Figure]:
    ratios = [
        their / our
        for our, their in zip(result.our_step_seconds, result.their_step_seconds, strict=True)
    ]
    return [
        Figure(
            name=f"{case.name}: ratio", value=spread(ratios), unit="×", budget=at_least(least_ratio)
        ),
        Figure(
            name=f"{case.name}: ours",
            value=spread(_milliseconds(result.our_step_seconds)),
            unit="ms",
        ),
        Figure(
            name=f"{case.name}: Trainer",
            value=spread(_milliseconds(result.their_step_seconds)),
            unit="ms",
        ),
        *ceiling_figures(case, result),
        *equal_work_figures(case, result),
    ]


def ceiling_figures(case: RaceCase, result: RaceResult) -> list[Figure]:
    """The ceiling: Trainer's step ÷ the least that a step needs.

    Its share: of the time that could be saved.
    """
    bare, ours = (
        median(
            step_seconds / their
            for step_seconds, their in zip(seconds, result.their_step_seconds, strict=True)
        )
        for seconds in (result.bare_step_seconds, result.our_step_seconds)
    )
    share = (1 - ours) / (1 - bare) * 100 if 1 / bare >= LEAST_CEILING else None
    budget = None if share is None else at_least(LEAST_SHARE_PERCENT)
    ceilings = [
        their / bare_seconds
        for bare_seconds, their in zip(
            result.bare_step_seconds, result.their_step_seconds, strict=True
        )
    ]
    return [
        Figure(
            name=f"{case.name}: bare step",
            value=spread(_milliseconds(result.bare_step_seconds)),
            unit="ms",
        ),
        Figure(name=f"{case.name}: ceiling of the ratio", value=spread(ceilings), unit="×"),
        Figure(
            name=f"{case.name}: share of the time that could be saved",
            value=share,
            unit="%",
            budget=budget,
        ),
    ]


def best_cell_figures(case: RaceCase, result: RaceResult) -> list[Figure]:
    pairs = zip(result.our_tokens_per_second, result.their_tokens_per_second, strict=True)
    cell = " ".join(str(result.chosen[name]) for name in ("precision", "compiler"))
    return [
        Figure(
            name=f"{case.name}: ratio of our {cell}",
            value=spread([our / their for our, their in pairs]),
            unit="×",
        ),
        Figure(
            name=f"{case.name}: ours",
            value=spread(list(result.our_tokens_per_second)),
            unit="tokens/s",
        ),
        Figure(
            name=f"{case.name}: Trainer",
            value=spread(list(result.their_tokens_per_second)),
            unit="tokens/s",
        ),
        *equal_work_figures(case, result),
    ]


def _milliseconds(seconds: tuple[float, ...]) -> list[float]:
    return [duration * 1e3 for duration in seconds]
