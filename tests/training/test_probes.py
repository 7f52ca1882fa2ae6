"""Probes after real runs: an injected slow loader and a slow exchange of gradients get their share
of a step.
"""

import json
from pathlib import Path
from statistics import fmean

import pytest

from tests.training.forked_jobs import run_forked
from tests.training.jobs import SCRIPTS, JobEnd
from tests.training.run_documents import run_document, run_training
from traindyno.core.measurement.measured_run import measure_run
from traindyno.core.measurement.step_parts import StepParts
from traindyno.core.run.probe_steps import (
    LEAST_STEPS,
    ROUNDS,
    WARM_UP_STEPS,
    most_probe_steps,
)
from traindyno.core.step_log.line import (
    HELD_BATCHES,
    NO_EXCHANGE,
    NO_OPTIMIZER,
    PROBE,
    PROBED,
    STEP_SECONDS,
    WHOLE_STEP,
)
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.step_table import tabulate_steps

LOADER_SECONDS, EXCHANGE_SECONDS = 0.3, 0.2
TOLERANCE = 0.05
MOST_ATTEMPTS = 3
STEPS_OF_A_PROBE = WARM_UP_STEPS + LEAST_STEPS


def parts_of(end: JobEnd) -> StepParts:
    log = read_step_log(
        {f"job/{path.name}": path.read_text().splitlines() for path in end.log_files}
    )
    session = log.measured
    assert session is not None, end.output
    measured = measure_run(
        log, session, tabulate_steps(session), warmup_steps=3, peak_flops_per_device=None
    )
    assert measured.step_parts is not None
    return measured.step_parts


def probed(end: JobEnd, rank: int = 0) -> list[str]:
    facts = [phase["facts"] for phase in end.of_kind("phase", rank) if phase["name"] == PROBE]
    return [each[PROBED] for each in facts if PROBED in each]


def mean_seconds(end: JobEnd, name: str) -> list[float]:
    """Mean seconds of a step in each round."""
    facts = [phase["facts"] for phase in end.of_kind("phase") if phase["name"] == PROBE]
    return [fmean(each[STEP_SECONDS]) for each in facts if each.get(PROBED) == name]


@pytest.mark.parametrize("slow_ranks", ["0 1", "1"])
def test_a_slow_loader_and_a_slow_exchange_get_their_shares(
    tmp_path: Path, texts: Path, slow_ranks: str
) -> None:
    """Also where one process has the slow loader and the other waits for it in the exchange of
    gradients.
    """
    settings = {"strategy": "ddp", "batch_size_per_device": 2}
    document = {**run_document(settings=settings, measurement={"max_steps": 12}), "probes": True}
    environment = {
        "SM_HPS": json.dumps(document),
        "SM_CHANNEL_TRAIN": str(texts),
        "TEST_LOADER_SECONDS": str(LOADER_SECONDS),
        "TEST_EXCHANGE_SECONDS": str(EXCHANGE_SECONDS),
        "TEST_SLOW_RANKS": slow_ranks,
    }
    for attempt in range(MOST_ATTEMPTS):
        (folder := tmp_path / f"{attempt}").mkdir()
        end = run_forked(folder, SCRIPTS / "slow_run.py", processes=2, environment=environment)
        assert end.exit_code == 0, end.failure
        parts = parts_of(end)
        assert parts.communication is not None
        # A run that something else held up for a second says so itself: its intervals are wider.
        if (
            max(parts.data.half_width, parts.communication.half_width)
            <= TOLERANCE * parts.step.mean
        ):
            break
    whole = fmean(mean_seconds(end, WHOLE_STEP))
    for part, seconds in ((parts.data, LOADER_SECONDS), (parts.communication, EXCHANGE_SECONDS)):
        assert part is not None
        assert parts.share(part) == pytest.approx(seconds / whole, abs=TOLERANCE)
    waiting_ranks = len(slow_ranks.split()) / 2
    waited = waiting_ranks * LOADER_SECONDS / parts.step.mean
    assert parts.share(parts.waiting) == pytest.approx(waited, abs=TOLERANCE)


@pytest.mark.parametrize(
    ("strategy", "compiler", "expected"),
    [
        ("fsdp", "none", [WHOLE_STEP, HELD_BATCHES, NO_OPTIMIZER]),
        ("single", "none", [WHOLE_STEP, HELD_BATCHES, NO_OPTIMIZER]),
        ("zero1", "none", [WHOLE_STEP, HELD_BATCHES, NO_EXCHANGE, NO_OPTIMIZER]),
        ("ddp", "inductor", [WHOLE_STEP, HELD_BATCHES, NO_OPTIMIZER]),
    ],
)
def test_only_what_can_be_left_out_is_probed(
    tmp_path: Path, texts: Path, strategy: str, compiler: str, expected: list[str]
) -> None:
    document = {
        **run_document(settings={"strategy": strategy, "compiler": compiler}),
        "probes": True,
    }
    processes = 1 if strategy == "single" else 2
    # The setting decides; compiling would take a minute. PyTorch reads this variable when it is
    # imported.
    environment, is_forked = {"TORCH_COMPILE_DISABLE": "1"}, compiler == "none"
    end = run_training(
        tmp_path, document, texts, processes=processes, environment=environment, is_forked=is_forked
    )
    assert end.exit_code == 0, end.output
    assert probed(end) == [*expected, *reversed(expected)]
    assert ROUNDS * len(expected) * STEPS_OF_A_PROBE <= most_probe_steps(10)
    parts = parts_of(end)
    assert (parts.communication is None) == (parts.compute is None) == (strategy in ("fsdp", "ddp"))
    assert parts.optimizer is not None


@pytest.mark.parametrize(
    ("strategy", "rank_and_place", "expected"),
    [
        ("ddp", "1 holding", []),
        ("ddp", "0 3", []),
        ("ddp", f"1 {3 * STEPS_OF_A_PROBE - 1}", [WHOLE_STEP, HELD_BATCHES]),
        ("fsdp", f"1 {2 * STEPS_OF_A_PROBE - 1}", [WHOLE_STEP]),
    ],
)
def test_a_rank_without_memory_ends_the_probes_of_all_and_not_the_run(
    tmp_path: Path, texts: Path, strategy: str, rank_and_place: str, expected: list[str]
) -> None:
    """Whether the others wait for it within a step, or at the end of the probe."""
    environment = {
        "SM_HPS": json.dumps({**run_document(settings={"strategy": strategy}), "probes": True}),
        "SM_CHANNEL_TRAIN": str(texts),
        "TEST_FAILS_AT": rank_and_place,
    }
    script = SCRIPTS / "probe_without_memory.py"
    end = run_forked(tmp_path, script, processes=2, environment=environment, timeout_seconds=60)
    assert (end.exit_code, end.failure) == (0, ""), end.output
    for rank in range(2):
        assert probed(end, rank) == expected
        assert len(end.of_kind("step", rank)) == 10
        assert not end.of_kind("error", rank)
        assert end.lines(rank)[-1]["kind"] == "end"
        seconds = [
            phase["end"] - phase["begin"]
            for phase in end.of_kind("phase", rank)
            if phase["name"] == "teardown"
        ]
        assert sum(seconds) < 1, "time of probes, which no other run has, is not the run's own"
    assert parts_of(end).is_probed == (HELD_BATCHES in expected)


def test_probes_change_neither_losses_nor_the_saved_model(tmp_path: Path, texts: Path) -> None:
    document = run_document(measurement={"evaluate": True, "save_model": True})
    found = []
    for name, probes in (("without", False), ("with", True)):
        (tmp_path / name).mkdir()
        end = run_training(tmp_path / name, {**document, "probes": probes}, texts)
        assert end.exit_code == 0, end.output
        assert bool(probed(end)) == probes
        losses = [line["loss"] for line in end.of_kind("step")]
        model = (tmp_path / name / "model" / "model.safetensors").read_bytes()
        found.append((losses, end.of_kind("evaluation")[0]["metrics"], model))
    assert found[0] == found[1]
