"""How far estimates of time are off on published steps that they were not fitted to, and those of memory on steps of
this trainer on fake tensors.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from bench.figures import Figure, Section, at_least, at_most
from bench.groups import TITLES, command
from localcloud.home import REPO_ROOT
from traindyno.core.suite.processes import world_size
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.suite_file import parse_part
from traindyno.core.suite.workload import Workload
from traindyno.slices.estimates.first_suite import read_shape
from traindyno.slices.estimates.memory import estimate_peak
from traindyno.slices.estimates.step_time import (
    NORMAL_90,
    TERMS,
    Device,
    Division,
    ModelShape,
    device_of,
    fitted,
    step_terms,
)
from training.memory.estimate import Findings

Floats = NDArray[np.float64]
FOLDER = REPO_ROOT / "tests" / "data" / "published"
QUICK_CASES, MEMORY_CASES, SEED = 2, 60, 5
# Rows of one search that are more than the five best.
LEAST_CHOICE = 8
NOTES = (
    "Steps of others (tests/data/published): an error is of a step's seconds, for rows whose family, or whose model or"
    " width, was left out of the fit. Rows of an MFU below 5 % are left out: they wait for a network. A 90 % interval"
    " has the deviation that a new model on a known device is given.",
    f"Memory: the closed form beside the estimate on fake tensors (`plan --memory`), for {MEMORY_CASES} models of the"
    " fit's three families, drawn anew. That estimate is what was compared with a GPU (docs/plan-and-costs.md).",
)

#: name → hidden size, layers
MPT = {
    "125m": (768, 12), "350m": (1024, 24), "760m": (1536, 24), "1b": (2048, 24), "3b": (2560, 32), "7b": (4096, 32),
    "13b": (5120, 40), "30b": (7168, 48), "70b": (8192, 80),
}  # fmt: skip
#: A table says nothing of a step that waits for the network nearly all the time.
LEAST_MFU = 5
ROUNDS, SMALL_ERROR = 8, 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One published step. ``family``: rows of one author and trainer. ``model``: those of one model or width."""

    family: str
    model: str
    shape: ModelShape
    division: Division
    device: Device
    seconds: float


def _device(accelerator: str) -> Device:
    found = device_of(accelerator)
    assert found is not None
    return found


def dense(hidden: int, layers: int, sequence: int, *, vocabulary: int, parameters: float | None = None) -> ModelShape:
    """A decoder of equal layers; its FLOPs are 6 per parameter and token, and attention in full."""
    count = parameters or 12 * layers * hidden**2 + vocabulary * hidden
    return ModelShape(
        parameters=int(count),
        flops_per_token=6 * count + 12 * layers * hidden * sequence,
        layers=layers,
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        vocabulary_size=vocabulary,
        sequence_length=sequence,
    )


def published(folder: Path) -> Iterator[Row]:
    yield from _vtrain(folder / "vtrain_single_node_a100_1440.csv", "vTrain, one node")
    yield from _vtrain(folder / "vtrain_multi_node_a100_109.csv", "vTrain, several nodes")
    yield from _ultrascale(folder / "ultrascale_h100_1758.csv")
    yield from _foundry(folder / "llm_foundry_mpt.csv")


def _vtrain(path: Path, family: str) -> Iterator[Row]:
    for line in csv.reader(path.open(encoding="utf-8")):
        if not line[0].replace(".", "").isdigit():
            continue
        *_, batch, micro, hidden, _heads, layers, sequence, tensor, data, pipeline = map(int, line[-11:-1])
        yield Row(
            family=family,
            model=f"hidden {hidden}" if len(line) == 11 else f"{line[0]}B",
            shape=dense(hidden, layers, sequence, vocabulary=51_200),
            division=Division(
                batch=micro, passes=batch // (micro * data), replicas=data, tensor=tensor, pipeline=pipeline
            ),
            device=_device("NVIDIA A100 80GB"),
            seconds=float(line[-1]) / 1000,
        )


def _ultrascale(path: Path) -> Iterator[Row]:
    """Two models of 131,072 tokens' vocabulary, which the FLOPs of a token tell apart."""
    for line in csv.DictReader(path.open(encoding="utf-8")):
        if float(line["mfu_pct"]) < LEAST_MFU:
            continue
        is_small = float(line["flops_per_token_implied"]) < 1.5e10
        hidden, layers, parameters = (2048, 16, 1.34e9) if is_small else (3072, 28, 3.57e9)
        tensor, pipeline, data, micro, passes = (
            int(float(line[name])) for name in ("tp", "pp", "dp", "mbs", "grad_acc")
        )
        yield Row(
            family="ultra-scale",
            model="1.3B" if is_small else "3.6B",
            shape=dense(hidden, layers, 4096, vocabulary=131_072, parameters=parameters),
            division=Division(
                batch=micro,
                passes=passes,
                replicas=data,
                tensor=tensor,
                pipeline=pipeline,
                shards_optimizer=float(line["zero"]) > 0,
            ),
            device=_device("NVIDIA H100"),
            seconds=float(line["gbs"]) * 4096 / float(line["tok_s"]),
        )


def _foundry(path: Path) -> Iterator[Row]:
    for line in csv.DictReader(path.open(encoding="utf-8")):
        name = line["Model"].lower()
        if "fp8" in line["Precision"] or name not in MPT:
            continue
        hidden, layers = MPT[name]
        is_full = line["Sharding Strategy"] == "FULL_SHARD"
        yield Row(
            family="LLM Foundry",
            model=name,
            shape=dense(
                hidden, layers, int(line["SeqLen (T)"]), vocabulary=50_368, parameters=float(line["NumParams"])
            ),
            division=Division(
                batch=int(line["MicroBatchSize"]),
                passes=int(line["GradAccum"]),
                replicas=int(line["# GPUs"]),
                shards_parameters=is_full,
                shards_optimizer=True,
                recomputes=line["Activation Checkpointing"] == "True",
            ),
            device=_device("NVIDIA H100" if "h100" in line["GPU"] else "NVIDIA A100 80GB"),
            seconds=float(line["GlobalBatchSize (T)"]) / float(line["Throughput (T/s)"]),
        )


def fit(rows: Sequence[Row]) -> Floats:
    """Weights that are not negative, for the least relative error: of its size, not of its square."""
    terms = np.array([np.array(step_terms(row.shape, row.division, row.device)) / row.seconds for row in rows])
    families = [row.family for row in rows]
    counts = {family: families.count(family) for family in families}
    equal = np.array([1 / counts[family] for family in families])  # each family counts as much
    scale = np.sqrt(equal)
    for _ in range(ROUNDS):
        weights, _ = nnls(terms * scale[:, None], scale)
        scale = np.sqrt(equal / (np.abs(terms @ weights - 1) + SMALL_ERROR))
    return np.asarray(weights)


def errors(rows: Sequence[Row], weights: Floats) -> Floats:
    """Logarithms of estimate ÷ measured."""
    terms = np.array([step_terms(row.shape, row.division, row.device) for row in rows])
    return np.asarray(np.log(terms @ weights / np.array([row.seconds for row in rows])))


def measure(*, is_quick: bool) -> Section:
    rows = list(published(FOLDER))
    figures = [
        figure
        for family in dict.fromkeys(row.family for row in rows)
        for figure in _family_figures(family, rows, is_quick=is_quick)
    ]
    figures += _memory_figures(QUICK_CASES if is_quick else MEMORY_CASES)
    weights = ", ".join(f"{name} {weight:.3g}" for name, weight in zip(TERMS, fit(rows), strict=True))
    return Section(
        title=TITLES["estimates"],
        command=command("estimates"),
        figures=tuple(figures),
        notes=(*NOTES, f"Weights of all rows: {weights}."),
    )


def _family_figures(family: str, rows: Sequence[Row], *, is_quick: bool) -> Iterator[Figure]:
    own = [row for row in rows if row.family == family]
    others = [row for row in rows if row.family != family]
    weights = fit(others)
    yield from _error_figures(f"{family}, all of it left out", errors(own, weights))
    found = [_is_near(each, weights) for each in _searches(own)]
    if found:
        share = 100 * sum(found) / len(found)
        name = f"{family}, all of it left out: the five best hold one within 2 %, of {len(found)} searches"
        yield Figure(name=name, value=share, unit="%", budget=at_least(90))
    models = dict.fromkeys(row.model for row in own)
    if len(models) > 1 and not is_quick:
        left_out = [
            errors(
                [row for row in own if row.model == model],
                fit([row for row in rows if (row.family, row.model) != (family, model)]),
            )
            for model in models
        ]
        yield from _error_figures(f"{family}, each model left out", np.concatenate(left_out))


def _searches(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of one model, device count and global batch, of which one has to be chosen."""
    found: dict[object, list[Row]] = {}
    for row in rows:
        division = row.division
        devices = division.replicas * division.tensor * division.pipeline
        found.setdefault((row.model, row.shape, devices, division.samples), []).append(row)
    return [each for each in found.values() if len(each) >= LEAST_CHOICE]


def _is_near(rows: Sequence[Row], weights: Floats) -> bool:
    order = np.argsort([np.dot(step_terms(row.shape, row.division, row.device), weights) for row in rows])
    return bool(min(rows[index].seconds for index in order[:5]) <= 1.02 * min(row.seconds for row in rows))


def _error_figures(what: str, found: Floats) -> Iterator[Figure]:
    """``found``: logarithms of estimate ÷ measured."""
    size, deviation = np.abs(np.exp(found) - 1) * 100, fitted()["step_time"]["deviation_of_known_device"]
    yield Figure(name=f"{what}: median error", value=float(np.median(size)), unit="%")
    yield Figure(name=f"{what}: error that 90 % are below", value=float(np.percentile(size, 90)), unit="%")
    holds = float(np.mean(np.abs(found) < NORMAL_90 * deviation)) * 100
    yield Figure(name=f"{what}: 90 % intervals hold", value=holds, unit="%")


def memory_errors(cases: int, seed: int) -> Iterator[tuple[float, bool]]:
    """Of each case the closed form ÷ the estimate on fake tensors, and whether that is below the upper end."""
    dice = Random(seed)
    while cases:
        workload, settings = _case(dice)
        finding = Findings(workload, model_path=None).find(settings)
        shape = read_shape(workload, model_path=None)
        processes = world_size(settings)
        if finding.estimate is None or shape is None or processes is None:
            continue
        found = estimate_peak(shape, settings, processes)
        if found is not None:
            cases -= 1
            yield found.mean / finding.estimate.peak_bytes, finding.estimate.peak_bytes <= found.high


def _case(dice: Random) -> tuple[Workload, Settings]:
    """A GPT-2, Llama or BERT of a drawn size."""
    hidden, layers = dice.choice([256, 512, 768, 1024, 2048]), dice.choice([2, 4, 8])
    heads, vocabulary = hidden // 64, dice.choice([4096, 32_000, 50_257])
    named = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads, "vocab_size": vocabulary}
    task, config = dice.choice(
        [
            ("causal-lm", {"model_type": "gpt2", "n_positions": 2048, **named}),
            ("causal-lm", {"model_type": "llama", "intermediate_size": dice.choice([3, 4]) * hidden, **named}),
            (
                "masked-lm",
                {"model_type": "bert", "intermediate_size": 4 * hidden, "max_position_embeddings": 2048, **named},
            ),
        ]
    )
    workload = {
        "task": task,
        "model": {"config": config},
        "dataset": {"path": "none", "format": "synthetic"},
        "sequence_length": dice.choice([128, 512, 1024, 2048]),
        "examples": 1000,
    }
    settings = {
        "instance": "ml.p4d.24xlarge",
        "strategy": dice.choice(["ddp", "zero1", "fsdp"]),
        "precision": dice.choice(["fp32", "bf16"]),
        "batch_size_per_device": dice.choice([1, 2, 4, 8, 16]),
        "activation_checkpointing": dice.random() < 0.3,
    }
    return parse_part(workload, Workload), parse_part(settings, Settings)


def _memory_figures(cases: int) -> Iterator[Figure]:
    found = list(memory_errors(cases, SEED))
    size = [abs(ratio - 1) * 100 for ratio, _ in found]
    below = sum(is_below for _, is_below in found) / len(found) * 100
    yield Figure(name="memory, own trainer: median error", value=float(np.median(size)), unit="%", budget=at_most(10))
    yield Figure(
        name="memory, own trainer: error that 90 % are below",
        value=float(np.percentile(size, 90)),
        unit="%",
        budget=at_most(25),
    )
    yield Figure(name="memory, own trainer: peaks below the upper end", value=below, unit="%", budget=at_least(98))
