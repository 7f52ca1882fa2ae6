"""``python -m bench.race CASE RESULT``: one process in which trainers take turns; both files are
JSON.
"""

import gc
import math
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from bench.bare_loop import BareLoop
from bench.our_trainer import (
    batches_of_steps,
    count_tokens,
    load_sequences,
    read_run,
    train_with_ours,
)
from bench.plain_model import Weights, initial_weights
from bench.race_case import Against, RaceCase, RaceResult
from bench.race_files import read_case, write_result
from bench.their_trainer import SameWork, TrainerDefaults
from bench.trained import Trained
from traindyno.core.run.settings import LearningRate
from traindyno.core.suite.choices import Compiler, Precision
from training.data.dataset import TokenDataset
from training.models.flops import measure_size
from training.models.model_config import model_config
from training.process.run_settings import RunSettings

# Later, rounding in another order has changed the weights enough to part the losses.
COMPARED_LOSSES = 10
# Each is large enough that a side which leaves it out has other losses within these steps.
COMPARED_OPTIONS: Mapping[str, Any] = {
    "weight_decay": 1.0,
    "gradient_clip_norm": 0.01,
    "learning_rate": LearningRate(base=1e-3),
}
COMPARED_ROWS = 64

Train = Callable[[], Trained]


def main(case_path: str, result_path: str) -> None:
    case = read_case(Path(case_path))
    if case.threads is not None:
        torch.set_num_threads(case.threads)
    with tempfile.TemporaryDirectory() as scratch:
        result = race(case, Path(scratch))
    write_result(result, Path(result_path))


def race(case: RaceCase, scratch: Path) -> RaceResult:
    candidates = case.candidates or ({},)
    rates = (
        tuple(_rate(case, changes, scratch) for changes in candidates)
        if len(candidates) > 1
        else ()
    )
    chosen = candidates[rates.index(max(rates))] if rates else candidates[0]
    run = read_run(case, chosen)
    dataset = load_sequences(run, case.data_folder, scratch)
    theirs, bare, evidence = _other_sides(case, run, dataset, scratch)
    sides = [lambda: train_with_ours(run, dataset), *theirs, *bare]
    rounds = [_round(sides, first=number) for number in range(case.rounds)]
    ours = [results[0] for results in rounds]
    their_rounds = [results[1] for results in rounds if theirs]
    config = model_config(
        run.workload, dataset.tokenizer, model_path=None, dropout=run.settings.dropout
    )
    assert run.workload.sequence_length is not None
    size = measure_size(run.workload.task, config, run.workload.sequence_length)
    assert size.flops_per_token is not None
    return RaceResult(
        chosen=chosen,
        our_step_seconds=tuple(result.median_step_seconds(case.warmup_steps) for result in ours),
        their_step_seconds=tuple(
            result.median_step_seconds(case.warmup_steps) for result in their_rounds
        ),
        bare_step_seconds=tuple(
            results[-1].median_step_seconds(case.warmup_steps) for results in rounds if bare
        ),
        our_tokens_per_second=tuple(result.tokens_per_second(case.warmup_steps) for result in ours),
        their_tokens_per_second=tuple(
            result.tokens_per_second(case.warmup_steps) for result in their_rounds
        ),
        our_peak_memory_bytes=ours[0].peak_memory_bytes,
        their_peak_memory_bytes=their_rounds[0].peak_memory_bytes if theirs else None,
        flops_per_token=size.flops_per_token,
        parameters=size.parameters,
        candidate_tokens_per_second=rates,
        **evidence,
    )


def _other_sides(
    case: RaceCase, run: RunSettings, dataset: TokenDataset, scratch: Path
) -> tuple[list[Train], list[Train], dict[str, Any]]:
    """Trainer's side and the least that a step needs, none or one of each, and the evidence of
    equal work.
    """
    if not case.with_theirs:
        return [], [], {}
    if case.against is Against.ITS_DEFAULTS:
        unpacked = read_run(case, {"packing": False})
        rows = load_sequences(unpacked, case.data_folder, scratch)
        defaults = TrainerDefaults(unpacked, rows)
        difference = abs(
            count_tokens(unpacked, rows, COMPARED_ROWS) - defaults.count_tokens(COMPARED_ROWS)
        )
        return [defaults.train], [], {"token_count_difference": difference}
    weights = initial_weights(run, dataset.tokenizer)
    steps = batches_of_steps(run, dataset)
    bare = [BareLoop(run, dataset, steps, weights).train] if case.with_bare else []
    evidence = {
        "largest_loss_difference": largest_loss_difference(
            run, dataset, weights, with_bare=case.with_bare
        )
    }
    return [SameWork(run, dataset, steps, weights).train], bare, evidence


def largest_loss_difference(
    run: RunSettings, dataset: TokenDataset, weights: Weights, *, with_bare: bool
) -> float:
    """Largest difference in the first steps of ours and the others, which begin with ``weights``.

    It is infinite if a loss is not finite. The steps run in single precision and without a
    compiler, because rounding in 16 bits would hide different weights.
    """
    settings = replace(
        run.settings, precision=Precision.FP32, compiler=Compiler.NONE, **COMPARED_OPTIONS
    )
    short = replace(
        run, settings=settings, measurement=replace(run.measurement, max_steps=COMPARED_LOSSES)
    )
    steps = batches_of_steps(short, dataset)
    ours = train_with_ours(short, dataset).losses
    others = [SameWork(short, dataset, steps, weights).losses()]
    others += [BareLoop(short, dataset, steps, weights).train().losses] if with_bare else []
    return largest_difference(ours, others)


def largest_difference(ours: Sequence[float], others: Sequence[Sequence[float]]) -> float:
    differences = [
        abs(our - other) for losses in others for our, other in zip(ours, losses, strict=True)
    ]
    return max(differences) if all(map(math.isfinite, differences)) else math.inf


def _rate(case: RaceCase, changes: Mapping[str, Any], scratch: Path) -> float:
    run = read_run(case, changes)
    dataset = load_sequences(run, case.data_folder, scratch)
    return _alone(lambda: train_with_ours(run, dataset)).tokens_per_second(case.warmup_steps)


def _round(sides: Sequence[Train], *, first: int) -> list[Trained]:
    """Each side's turn.

    Each round begins with another side, since a side may leave the machine in another state.
    """
    turns = [(first + turn) % len(sides) for turn in range(len(sides))]
    trained = {side: _alone(sides[side]) for side in turns}
    return [trained[side] for side in range(len(sides))]


def _alone(train: Train) -> Trained:
    """Trains after the memory of the training before is released."""
    gc.collect()
    torch._dynamo.reset()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    return train()


if __name__ == "__main__":
    main(*sys.argv[1:])
