"""Runs that end before their last step: at the target of their goal."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.training.forked import run_group
from tests.training.jobs import JobEnd, job_environment
from tests.training.run_documents import run_document, write_texts
from training import main

# An untrained model has a loss of ln 400 = 6.0. It reaches the one at once, the other never.
EASY, IMPOSSIBLE = 100.0, 1e-6


def do_run(folder: Path, data: Path, target: float, strategy: str) -> None:
    """Do a whole job in this process, which goes on afterwards."""
    document = {
        **run_document(
            settings={"strategy": strategy, "batch_size_per_device": 2},
            measurement={"max_steps": 7, "evaluate_every_steps": 3, "save_model": True},
        ),
        "target": {"quality": "loss", "value": target},
    }
    environment: dict[str, Any] = {"SM_HPS": json.dumps(document), "SM_CHANNEL_TRAIN": str(data)}
    os.environ |= job_environment(folder) | environment
    tempfile.tempdir = str(folder)  # the data is shared by the ranks of one job
    vars(main)["exit_now"] = lambda _: None
    main.main()


def run_to(folder: Path, target: float, *, strategy: str, processes: int) -> JobEnd:
    run_group(do_run, folder, write_texts(folder / "texts"), target, strategy, processes=processes)
    return JobEnd(exit_code=0, output="", folder=folder)


def test_a_run_ends_after_the_evaluation_that_reaches_its_target_on_all_ranks(tmp_path: Path) -> None:
    end = run_to(tmp_path, EASY, strategy="ddp", processes=2)
    assert len(end.log_files) == 2
    for rank in (0, 1):
        assert [line["step"] for line in end.of_kind("evaluation", rank)] == [3]
        assert len(end.of_kind("step", rank)) == 3
        (last,) = end.of_kind("end", rank)
        assert (last["steps"], last["reason"]) == (3, "target_reached")
    assert (tmp_path / "model" / "model.safetensors").exists()


def test_a_run_that_does_not_reach_its_target_does_all_its_steps(tmp_path: Path) -> None:
    end = run_to(tmp_path, IMPOSSIBLE, strategy="single", processes=1)
    assert [line["step"] for line in end.of_kind("evaluation")] == [3, 6, 7]
    (last,) = end.of_kind("end")
    assert (last["steps"], "reason" in last) == (7, False)
