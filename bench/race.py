"""``python -m bench.race CASE RESULT``: one process in which two trainers take turns; both files are JSON."""

import gc
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from bench.our_trainer import load_sequences, read_run, train_with_ours
from bench.race_case import Against, RaceCase, RaceResult
from bench.race_files import read_case, write_result
from bench.their_trainer import SameWork, TrainerDefaults
from bench.trained import Trained
from training.flops import measure_size
from training.model_config import model_config

# Later, rounding in another order has changed the weights enough to part the losses.
COMPARED_LOSSES = 10


def main(case_path: str, result_path: str) -> None:
    case = read_case(Path(case_path))
    if case.threads is not None:
        torch.set_num_threads(case.threads)
    with tempfile.TemporaryDirectory() as scratch:
        result = race(case, Path(scratch))
    write_result(result, Path(result_path))


def race(case: RaceCase, scratch: Path) -> RaceResult:
    candidates = case.candidates or ({},)
    rates = tuple(_rate(case, changes, scratch) for changes in candidates) if len(candidates) > 1 else ()
    chosen = candidates[rates.index(max(rates))] if rates else candidates[0]
    run = read_run(case, chosen)
    dataset = load_sequences(run, case.data_folder, scratch)
    other = _other_side(case, scratch) if case.with_theirs else None
    ours, theirs = [], []
    for _ in range(case.rounds):
        ours.append(_alone(lambda: train_with_ours(run, dataset)))
        theirs += [_alone(other.train)] if other else []
    config = model_config(run.workload, run.settings, dataset.tokenizer, model_path=None)
    assert run.workload.sequence_length is not None
    size = measure_size(run.workload.task, config, run.workload.sequence_length)
    return RaceResult(
        chosen=chosen,
        our_step_seconds=tuple(each.median_step_seconds(case.warmup_steps) for each in ours),
        their_step_seconds=tuple(each.median_step_seconds(case.warmup_steps) for each in theirs),
        our_tokens_per_second=tuple(each.tokens_per_second(case.warmup_steps) for each in ours),
        their_tokens_per_second=tuple(each.tokens_per_second(case.warmup_steps) for each in theirs),
        our_peak_memory_bytes=ours[0].peak_memory_bytes,
        their_peak_memory_bytes=theirs[0].peak_memory_bytes if theirs else None,
        flops_per_token=size.flops_per_token,
        parameters=size.parameters,
        largest_loss_difference=_loss_difference(ours[0], other) if isinstance(other, SameWork) else None,
        candidate_tokens_per_second=rates,
    )


def _other_side(case: RaceCase, scratch: Path) -> SameWork | TrainerDefaults:
    same = case.against is Against.SAME_WORK
    run = read_run(case, {} if same else {"packing": False})
    dataset = load_sequences(run, case.data_folder, scratch)
    return SameWork(run, dataset) if same else TrainerDefaults(run, dataset)


def _rate(case: RaceCase, changes: Mapping[str, Any], scratch: Path) -> float:
    run = read_run(case, changes)
    dataset = load_sequences(run, case.data_folder, scratch)
    return _alone(lambda: train_with_ours(run, dataset)).tokens_per_second(case.warmup_steps)


def _alone(train: Callable[[], Trained]) -> Trained:
    """After the memory of the training before is released."""
    gc.collect()
    torch._dynamo.reset()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    return train()


def _loss_difference(ours: Trained, other: SameWork) -> float:
    theirs = other.losses(min(COMPARED_LOSSES, len(ours.losses)))
    return max(abs(our - their) for our, their in zip(ours.losses, theirs, strict=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
