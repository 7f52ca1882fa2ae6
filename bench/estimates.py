"""How far estimates of time are off on published steps that they were not fitted to."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from bench.figures import Figure, Section, at_least
from bench.groups import TITLES, command
from localcloud.home import REPO_ROOT
from traindyno.core.planning.model_shape import ModelShape
from traindyno.slices.estimates.step_time import (
    NORMAL_90,
    TERMS,
    DeviceSpeed,
    Division,
    device_of,
    exchange_seconds,
    fitted,
    step_terms,
)

Floats = NDArray[np.float64]
FOLDER = REPO_ROOT / "tests" / "data" / "published"
ULTRASCALE = "ultrascale_h100_1758.csv"
#: Fewer of one family say little of how far a new one is off.
FEW_ROWS = 20
# Rows of one search that are more than the five best.
LEAST_CHOICE = 8
NOTES = (
    "Steps of others (tests/data/published): an error is of a step's seconds, for rows whose "
    "family, or whose model or width, was left out of the fit. Rows of an MFU below 5 % are left "
    "out: they wait for a network. The deviation of a 90 % interval comes from the other "
    "families too, by the way in which steps are divided: the mean of their errors that 90 % are "
    f"below, each fitted without it, of families with at least {FEW_ROWS} such rows; where no "
    "other family has the way, the widest. `init` has those of all families, which know the "
    "family left out. The rule was chosen with the figures in sight. Instances of all tables are "
    "said to have 25 GB/s a device between them; with 50 for nanotron's, five best hold one in 9 "
    "of 12 searches with the family left out and in 11 with the model left out.",
)

#: name → hidden size, layers
MPT = {
    "125m": (768, 12),
    "350m": (1024, 24),
    "760m": (1536, 24),
    "1b": (2048, 24),
    "3b": (2560, 32),
    "7b": (4096, 32),
    "13b": (5120, 40),
    "30b": (7168, 48),
    "70b": (8192, 80),
}
#: A table says nothing of a step that waits for the network nearly all the time.
LEAST_MFU = 5
#: hidden size, layers, parameters of nanotron's two models; their vocabulary and sequence length
SMALL = (2048, 16, 1.34e9)
LARGE = (3072, 28, 3.57e9)
VOCABULARY = 131_072
SEQUENCE = 4096
ROUNDS = 8
SMALL_ERROR = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One published step."""

    #: The author and the trainer, which the rows of a family share.
    family: str
    #: The model, or its width.
    model: str
    shape: ModelShape
    division: Division
    device: DeviceSpeed
    seconds: float


def _device(accelerator: str) -> DeviceSpeed:
    device = device_of(accelerator)
    assert device is not None
    return device


def dense(
    hidden: int, layers: int, sequence: int, *, vocabulary: int, parameters: float | None = None
) -> ModelShape:
    """A decoder of equal layers; its FLOPs are 6 per parameter and token, and attention in full."""
    count = parameters or 12 * layers * hidden**2 + vocabulary * hidden
    return ModelShape(
        parameters=int(count),
        flops_per_token=6 * count + 12 * layers * hidden * sequence,
        layers=layers,
        hidden_size=hidden,
        sequence_length=sequence,
    )


def published(folder: Path) -> Iterator[Row]:
    yield from _vtrain(folder / "vtrain_single_node_a100_1440.csv", "vTrain, one node")
    yield from _vtrain(folder / "vtrain_multi_node_a100_109.csv", "vTrain, several nodes")
    yield from _ultrascale(folder / ULTRASCALE)
    yield from _foundry(folder / "llm_foundry_mpt.csv")


def _vtrain(path: Path, family: str) -> Iterator[Row]:
    for line in csv.reader(path.open(encoding="utf-8")):
        if not line[0].replace(".", "").isdigit():
            continue
        *_, batch, micro, hidden, _heads, layers, sequence, tensor, data, pipeline = map(
            int, line[-11:-1]
        )
        yield Row(
            family=family,
            model=f"hidden {hidden}" if len(line) == 11 else f"{line[0]}B",
            shape=dense(hidden, layers, sequence, vocabulary=51_200),
            division=Division(
                batch=micro,
                passes=batch // (micro * data),
                replicas=data,
                tensor=tensor,
                pipeline=pipeline,
            ),
            device=_device("NVIDIA A100 80GB"),
            seconds=float(line[-1]) / 1000,
        )


def _ultrascale(path: Path) -> Iterator[Row]:
    """Two models of 131,072 tokens' vocabulary, which the FLOPs of a token tell apart."""
    for line in csv.DictReader(path.open(encoding="utf-8")):
        if float(line["mfu_pct"]) < LEAST_MFU:
            continue
        hidden, layers, parameters = _nanotron(line)
        tensor, pipeline, data, micro, passes = (
            int(float(line[name])) for name in ("tp", "pp", "dp", "mbs", "grad_acc")
        )
        yield Row(
            family="ultra-scale",
            model=f"{parameters / 1e9:.1f}B",
            shape=dense(hidden, layers, SEQUENCE, vocabulary=VOCABULARY, parameters=parameters),
            division=Division(
                batch=micro,
                passes=passes,
                replicas=data,
                tensor=tensor,
                pipeline=pipeline,
                shards_optimizer=float(line["zero"]) > 0,
            ),
            device=_device("NVIDIA H100"),
            seconds=float(line["gbs"]) * SEQUENCE / float(line["tok_s"]),
        )


def _nanotron(line: Mapping[str, str]) -> tuple[int, int, float]:
    return SMALL if float(line["flops_per_token_implied"]) < 1.5e10 else LARGE


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
                hidden,
                layers,
                int(line["SeqLen (T)"]),
                vocabulary=50_368,
                parameters=float(line["NumParams"]),
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
    """Weights that are not negative, for the least relative error: of its size, not of its
    square.
    """
    terms = np.array(
        [np.array(step_terms(row.shape, row.division, row.device)) / row.seconds for row in rows]
    )
    families = [row.family for row in rows]
    counts = {family: families.count(family) for family in families}
    equal = np.array([1 / counts[family] for family in families])  # each family counts as much
    scale = np.sqrt(equal)
    for _ in range(ROUNDS):
        weights, _ = nnls(terms * scale[:, None], scale)
        scale = np.sqrt(equal / (np.abs(terms @ weights - 1) + SMALL_ERROR))
    return np.asarray(weights)


def estimates(rows: Sequence[Row], weights: Floats) -> Floats:
    """Seconds, as ``estimate_step`` has them."""
    terms = np.array([step_terms(row.shape, row.division, row.device) for row in rows])
    return np.maximum(
        terms @ weights, [exchange_seconds(row.shape, row.division, row.device) for row in rows]
    )


def errors(rows: Sequence[Row], weights: Floats) -> Floats:
    """Logarithms of estimate ÷ measured."""
    return np.asarray(np.log(estimates(rows, weights) / np.array([row.seconds for row in rows])))


def deviations_of(rows: Sequence[Row]) -> dict[str, float]:
    """The deviation for a new family, by the way in which its steps are divided.

    Its 90 % interval is the mean over the families, each of which is left out of a fit to the
    others, of the error that 90 % of their rows are below.
    """
    sizes: dict[str, list[tuple[int, float]]] = {}
    for family in dict.fromkeys(row.family for row in rows):
        family_rows = [row for row in rows if row.family == family]
        size = np.abs(errors(family_rows, fit([row for row in rows if row.family != family])))
        ways = np.array([row.division.way for row in family_rows])
        for way in dict.fromkeys(ways):
            of_way = size[ways == way]
            sizes.setdefault(str(way), []).append((len(of_way), np.percentile(of_way, 90)))
    most = {way: max(count for count, _ in of_way) for way, of_way in sizes.items()}
    return {
        way: float(np.mean([size for count, size in of_way if count >= min(most[way], FEW_ROWS)]))
        / NORMAL_90
        for way, of_way in sizes.items()
    }


def widths(rows: Sequence[Row], deviations: Mapping[str, float]) -> Floats:
    """Logarithms of the factor of each row's 90 % interval; where no row is divided so, the widest
    of all.
    """
    widest = max(deviations.values())
    return NORMAL_90 * np.array([deviations.get(row.division.way, widest) for row in rows])


def measure(*, is_quick: bool) -> Section:
    rows = list(published(FOLDER))
    figures = list[Figure]()
    for family in dict.fromkeys(row.family for row in rows):
        figures.extend(_family_figures(family, rows, is_quick=is_quick))
    weights = ", ".join(
        f"{name} {weight:.3g}" for name, weight in zip(TERMS, fit(rows), strict=True)
    )
    return Section(
        title=TITLES["estimates"],
        command=command("estimates"),
        figures=tuple(figures),
        notes=(*NOTES, f"Weights of all rows: {weights}."),
    )


def init_deviations() -> dict[str, float]:
    """What `init` says of a device with published rows."""
    return {
        way: fitted_way["deviation"] for way, fitted_way in fitted()["step_time"]["ways"].items()
    }


def _family_figures(family: str, rows: Sequence[Row], *, is_quick: bool) -> Iterator[Figure]:
    family_rows = [row for row in rows if row.family == family]
    others = [row for row in rows if row.family != family]
    weights = fit(others)
    deviations = deviations_of(others)
    yield from _error_figures(
        f"{family}, all of it left out", family_rows, errors(family_rows, weights), deviations
    )
    yield from _choice_figure(
        f"{family}, all of it left out",
        [_is_near(search, weights) for search in _searches(family_rows)],
    )
    models = dict.fromkeys(row.model for row in family_rows)
    if len(models) > 1 and not is_quick:
        left_out = list[Floats]()
        of_models = list[Row]()
        near = list[bool]()
        for model in models:
            of_model = [row for row in family_rows if row.model == model]
            weights = fit([row for row in rows if (row.family, row.model) != (family, model)])
            left_out.append(errors(of_model, weights))
            of_models += of_model
            near += [_is_near(search, weights) for search in _searches(of_model)]
        yield from _error_figures(
            f"{family}, each model left out", of_models, np.concatenate(left_out), deviations
        )
        yield from _choice_figure(f"{family}, each model left out", near)


def _choice_figure(what: str, near: Sequence[bool]) -> Iterator[Figure]:
    if near:
        name = f"{what}: the five best hold one within 2 %, of {len(near)} searches"
        yield Figure(name=name, value=100 * sum(near) / len(near), unit="%", budget=at_least(90))


def _searches(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of one model, device count and global batch, of which one has to be chosen."""
    searches: dict[object, list[Row]] = {}
    for row in rows:
        division = row.division
        devices = division.replicas * division.tensor * division.pipeline
        searches.setdefault((row.model, row.shape, devices, division.samples), []).append(row)
    return [search for search in searches.values() if len(search) >= LEAST_CHOICE]


def _is_near(rows: Sequence[Row], weights: Floats) -> bool:
    order = np.argsort(estimates(rows, weights))
    return bool(
        min(rows[index].seconds for index in order[:5]) <= 1.02 * min(row.seconds for row in rows)
    )


def _error_figures(
    what: str, rows: Sequence[Row], log_errors: Floats, deviations: Mapping[str, float]
) -> Iterator[Figure]:
    """The figures of errors, which are logarithms of estimate ÷ measured."""
    size = np.abs(np.exp(log_errors) - 1) * 100
    yield Figure(name=f"{what}: median error", value=float(np.median(size)), unit="%")
    yield Figure(
        name=f"{what}: error that 90 % are below", value=float(np.percentile(size, 90)), unit="%"
    )
    for name, width in {
        "90 % intervals": widths(rows, deviations),
        "intervals of `init`": widths(rows, init_deviations()),
    }.items():
        holds = float(np.mean(np.abs(log_errors) < width)) * 100
        yield Figure(name=f"{what}: {name} hold", value=holds, unit="%")
