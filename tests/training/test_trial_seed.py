"""The trials of a cell train with seeds of their own, and evaluate on the same sequences."""

import json
from pathlib import Path

import torch

from tests.training.run_documents import run_document
from training.data.dataset import load_dataset
from training.models.model import build_model
from training.process.job import JobPaths
from training.process.process_group import Topology
from training.process.run_settings import RunSettings, read_run_settings, run_facts

SYNTHETIC = {"dataset": {"format": "synthetic"}, "tokenizer": None}


def run_of(trial_seed: int | None, *, seed: int = 5) -> RunSettings:
    document = run_document(
        workload=SYNTHETIC, settings={"seed": seed}, measurement={"evaluate": True}
    )
    told = {} if trial_seed is None else {"trial_seed": trial_seed}
    return read_run_settings({"SM_HPS": json.dumps({**document, **told})})


def held_out(run: RunSettings) -> list[int]:
    job = JobPaths(data_root=None, model_path=None, tokenizer_path=None, save_folder=Path())
    evaluation = load_dataset(run, job, Topology()).evaluation
    assert evaluation is not None
    return [int(begin) for begin in evaluation.begins]


def first_weights(run: RunSettings) -> torch.Tensor:
    blueprint = build_model(run.workload, run.settings, None, model_path=None)
    return torch.cat([value[:].flatten() for _, value in blueprint.values(lambda _: True)])


def test_trials_hold_out_the_same_sequences_whatever_their_seed() -> None:
    assert held_out(run_of(5)) == held_out(run_of(6)) == held_out(run_of(None))
    assert held_out(run_of(5)) != held_out(run_of(5, seed=6))


def test_a_trial_trains_with_its_own_seed_and_says_so() -> None:
    runs = [run_of(trial_seed) for trial_seed in (None, 5, 6)]
    assert [run.settings.seed for run in runs] == [5, 5, 6]
    assert [run_facts(run)["run"]["settings"]["seed"] for run in runs] == [5, 5, 6]


def test_another_seed_gives_another_start() -> None:
    assert torch.equal(first_weights(run_of(None)), first_weights(run_of(5)))
    assert not torch.equal(first_weights(run_of(5)), first_weights(run_of(6)))
