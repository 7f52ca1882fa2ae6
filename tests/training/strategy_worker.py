"""Trains the cases of a file one after the other, under torchrun, and writes what rank 0 holds.

usage: strategy_worker.py CASES RESULTS
"""

import sys
from pathlib import Path

import torch

from tests.training.strategy_cases import Case
from tests.training.strategy_trial import Trained, train
from training.errors import RunError
from training.process.process_group import end_process_group, read_topology


def main(cases_path: Path, results_path: Path) -> None:
    torch.set_num_threads(1)
    cases: dict[str, Case] = torch.load(cases_path, weights_only=False)
    topology = read_topology()
    results: dict[str, Trained | str] = {}
    for name, case in cases.items():
        try:
            results[name] = train(case, topology)
        except RunError as error:
            results[name] = f"refused: {error}"
    if topology.is_first:
        torch.save(results, results_path)
    end_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
