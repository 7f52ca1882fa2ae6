"""A first suite for a model and its data: the cells that fit, in the order of their estimates,
beside the usual one.
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from traindyno.api.local_paths import find_local
from traindyno.api.memory_estimates import EstimatesUnavailable, MemoryEstimator, Say
from traindyno.api.model_check import fetch_configuration, find_configuration
from traindyno.api.plan_inputs import PlanInputs, read_plan_inputs
from traindyno.api.plans import data_lines, find_histories
from traindyno.api.suite_loading import Suite, check_startable
from traindyno.api.suite_text import write_yaml
from traindyno.api.training_code import missing_libraries
from traindyno.core.costs.prices import PriceList
from traindyno.core.costs.quantity_text import (
    UNKNOWN,
    bytes_text,
    counted,
    interval_text,
    seconds_text,
    usd_text,
)
from traindyno.core.errors import TraindynoError
from traindyno.core.instances.devices import AcceleratorKind
from traindyno.core.instances.instance_types import (
    instance_types,
)
from traindyno.core.planning.history import Histories
from traindyno.core.planning.job_terms import run_terms
from traindyno.core.planning.memory import usable_memory_bytes
from traindyno.core.planning.plan import Plan, plan_suite
from traindyno.core.planning.quotas import instance_quota
from traindyno.core.run.settings import Adapter, Settings
from traindyno.core.suite.choices import BaseWeights, Compiler, DatasetFormat, Purchase, Task
from traindyno.core.suite.suite import Suite as CoreSuite
from traindyno.slices.estimates.candidates import (
    NO_BASIS,
    Candidate,
    EstimatedWork,
    choose,
    estimate_candidate,
    find_candidates,
    usual_candidate,
)
from traindyno.slices.estimates.suite import CellEstimate

MOST_CELLS = 6
ESTIMATING_SECONDS = 60  # of a model that is new; what is left out is estimated by plan
#: The settings in which proposed cells differ, in the order of a suite file.
VARIED = (
    "instance",
    "instance_count",
    "strategy",
    "precision",
    "batch_size_per_device",
    "activation_checkpointing",
    "adapter",
    "base_weights",
    "compiler",
)
LOCAL_BATCHES = (8, 32)
#: With the usual learning rate of LoRA
USUAL_ADAPTER = Adapter(rank=16, learning_rate=2e-4)
SCRIPT_NOTE = (
    "# To compare arguments of the program, add a list of values: matrix: {hyperparameters.NAME: "
    "[1, 2]}."
)
KEPT_NOTE = (
    "# Reports and `list --projected` compare these with what was measured; delete them for "
    "another model."
)
ESTIMATES_NOTE = (
    "# Estimates order the cells, and the suite measures them: 90 % intervals, of training "
    "without a job's start."
)


NO_ADAPTER = "none"
START_SECONDS = 300.0  # of a job, as assumed in docs/performance.md
TOO_DEAR = "one job may cost more than --max-usd"
NO_PRICE = "no known price"
NO_STEP = "by the estimate, no step fits"
NOT_ESTIMATED = "not estimated: plan does it"
NOT_BEST = "another type is better by the estimate, or has the same devices for less"


class NothingFits(TraindynoError):
    """No instance that may be used has the memory for a step, by the estimate, or none has a known
    price.
    """


class NothingKnown(TraindynoError):
    """Nothing can be estimated of the model, and no types are named to compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """``sections``: of the suite, as a file would have them, without cells.

    ``instances``: only these types.

    ``max_instances``: of one cell; types whose instances have a fast network are tried with 1, 2, 4
    … of them. ``adapter``: what every cell trains; without one, conversations are trained on with
    all weights and with LoRA.
    """

    sections: Mapping[str, Any]
    folder: Path
    instances: tuple[str, ...] = ()
    max_instances: int = 1
    local: bool = False
    adapter: Adapter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """``cells``: the usual one first.

    ``why_unknown``: why nothing could be estimated, or None. ``left_out``: types that were asked
    for, or that one job of which may cost more than limits.max_usd, with the reason.
    """

    suite: Suite
    document: Mapping[str, Any]
    cells: tuple[Candidate, ...]
    why_unknown: str | None
    inputs: PlanInputs
    plan: Plan
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """Of the whole work; 0 where it is unknown."""
        return self.suite.suite.workload.examples * (self.suite.suite.workload.sequence_length or 0)

    @property
    def too_little(self) -> str | None:
        """Why nothing is to be saved, or None."""
        known = [each.seconds.mean for each in self.cells if each.seconds is not None]
        if not known or min(known) >= START_SECONDS:
            return None
        return (
            f"the whole work takes about {seconds_text(min(known))}, less than a job's start "
            f"(about {seconds_text(START_SECONDS)}): measuring costs more than it can save; give "
            "--examples the size of the work that you mean"
        )

    @property
    def work(self) -> str:
        workload = self.suite.suite.workload
        length = workload.sequence_length
        return f"{workload.examples:,} examples{f' of {length:,} tokens' if length else ''}"

    def quota(self, candidate: Candidate) -> tuple[int | None, int]:
        """What the account has, and what the cell needs; (None, …) where it is unknown or nothing
        limits it.
        """
        name = instance_quota(candidate.settings.instance, Purchase.ON_DEMAND).name
        reading = self.inputs.quotas.get(name)
        return (None if reading is None else reading.limit), candidate.settings.instance_count


def propose(
    asked: Asked, *, prices: Path | None, quotas: Path | None, lab: str | None, say: Say
) -> Proposal:
    """``lab``: whose earlier runs of the cells are counted. ``say`` gets a line for each estimate
    that takes time.

    Raises SuiteInvalid or DatasetFilesInvalid for what is wrong with the model or its data, and
    AccountUnreachable.
    """
    types = asked.instances or tuple(filter(is_proposed, instance_types()))
    asked_for = _load(asked, {} if asked.local else {"matrix": {"instance": list(types)}})
    check_startable(asked_for)
    suite = asked_for.suite
    data_lines(suite, beside=asked_for.folder)
    inputs = read_plan_inputs(
        asked_for.staged, price_path=prices, quota_path=quotas, now=time.time()
    )
    with ExitStack() as stack:
        work, why_unknown = _know(asked_for, asked, inputs, say, stack)
        found, paid, kept = _choose_cells(asked, suite, types, work, inputs, why_unknown)
    if not kept:
        raise NothingFits(_why_nothing(work, types, inputs))
    if asked.adapter is None and all(each.settings.adapter for each in kept):
        say(f"training all weights fits into none of the types: each cell trains {USUAL_ADAPTER}")
    document = _document([each.settings for each in kept])
    loaded = _load(asked, document)
    histories: Histories = {}
    if lab is not None and inputs.why_assumed is None:
        histories = find_histories(loaded, lab=lab, say=lambda _: None).by_cell
    plan = plan_suite(
        loaded.staged,
        execution_id=loaded.suite.name,
        prices=inputs.prices,
        quotas=inputs.quotas,
        histories=histories,
    )
    for place, cell in enumerate(plan.cells):
        if own := histories.get(cell.cell_id):
            known = [] if kept[place].evidence == NO_BASIS else [kept[place].evidence]
            evidence = ", ".join([*known, f"{counted(own.run_count, 'run')} of yours"])
            kept[place] = replace(kept[place], evidence=evidence)
    return Proposal(
        suite=loaded,
        document={**asked.sections, **document},
        cells=tuple(kept),
        why_unknown=why_unknown,
        inputs=inputs,
        plan=plan,
        left_out=_left_out(asked.instances, found, paid, kept, inputs),
    )


def _know(
    suite: Suite, asked: Asked, inputs: PlanInputs, say: Say, stack: ExitStack
) -> tuple[EstimatedWork, str | None]:
    """What estimates are made of, or why nothing can be estimated."""
    workload = suite.suite.workload
    work = EstimatedWork(examples=workload.examples, prices=inputs.prices, adapter=asked.adapter)
    if asked.local:
        return work, "this machine's speed is measured, not estimated"
    model = workload.model
    can_build = workload.task is not Task.SCRIPT and not missing_libraries()
    if can_build and model is not None and model.path is not None:
        folder = find_local(model.path, suite.folder)
        if find_configuration(model.path, model.revision, folder) is None:
            fetch_configuration(model.path, model.revision)
    try:
        estimator = MemoryEstimator(workload, beside=suite.folder, say=say)
    except EstimatesUnavailable as error:
        return work, str(error)
    stack.enter_context(estimator)
    shape = estimator.shape()
    if shape is None:
        return work, "the FLOPs of this model can't be counted"
    estimator.until = time.monotonic() + ESTIMATING_SECONDS
    return replace(work, shape=shape, memory=estimator.find), None


def _choose_cells(
    asked: Asked,
    suite: CoreSuite,
    types: Sequence[str],
    work: EstimatedWork,
    inputs: PlanInputs,
    why_unknown: str | None,
) -> tuple[list[Candidate], list[Candidate], list[Candidate]]:
    """The cells that were found, those that one may pay for, and those to propose."""
    is_script = suite.workload.task is Task.SCRIPT
    if asked.local:
        first = suite.cells[0].settings
        batches = LOCAL_BATCHES[:1] if is_script else LOCAL_BATCHES
        adapters = (None, USUAL_ADAPTER) if _offers_both(asked, suite) else (asked.adapter,)
        settings = [
            replace(first, batch_size_per_device=batch, adapter=adapter)
            for adapter in adapters
            for batch in batches
        ]
        return [], [], [estimate_candidate(work, each) for each in settings]
    priced = [name for name in types if name in inputs.prices]
    if work.shape is None:
        if not is_script and not asked.instances:
            raise NothingKnown(
                f"{why_unknown}: no cell can be estimated; name the types to compare with "
                "--instance"
            )
        priced.sort(key=lambda name: inputs.prices[name].usd_per_hour)
        found = _one_of_each_device(priced, work)
        paid = _within_cap(found, suite, inputs)
        return found, paid, [*paid]
    counts = [2**power for power in range(asked.max_instances.bit_length())]
    works = [work]
    found = find_candidates(work, priced, counts)
    has_weights = suite.workload.model is not None and suite.workload.model.path is not None
    is_last_resort = asked.adapter is None and has_weights and not found
    if is_last_resort or _offers_both(asked, suite):
        works.append(replace(work, adapter=USUAL_ADAPTER))
        found += find_candidates(works[-1], priced, counts)
    paid = _within_cap(found, suite, inputs)
    best = choose(paid, is_time=suite.goal.is_time, most=MOST_CELLS - 2)
    # No estimate tells a compiled cell from the eager one.
    compiled = [
        replace(each.settings, compiler=Compiler.INDUCTOR)
        for each in best[:1]
        if each.settings.base_weights is not BaseWeights.NF4
    ]
    return (
        found,
        paid,
        [
            *_with_usual(works, paid, best, is_time=suite.goal.is_time),
            *(estimate_candidate(work, each) for each in compiled),
        ],
    )


def _left_out(
    asked: Sequence[str],
    found: Sequence[Candidate],
    paid: Sequence[Candidate],
    kept: Sequence[Candidate],
    inputs: PlanInputs,
) -> dict[str, str]:
    fitting, affordable, shown = (
        {each.settings.instance for each in some} for some in (found, paid, kept)
    )
    reasons = dict.fromkeys(sorted(fitting - affordable), TOO_DEAR)
    for name in asked:
        if name not in inputs.prices:
            reasons[name] = NO_PRICE
        elif name not in fitting:
            reasons[name] = NO_STEP
        elif name not in shown:
            reasons.setdefault(name, NOT_BEST)
    return reasons


def _within_cap(
    found: Sequence[Candidate], suite: CoreSuite, inputs: PlanInputs
) -> list[Candidate]:
    """Those of which one job may not cost more than limits.max_usd, which plan refuses; all where
    none is left.
    """
    prices = [inputs.prices[each.settings.instance].usd_per_hour for each in found]
    worst = [
        run_terms(each.settings, suite).worst_case_usd(usd)
        for each, usd in zip(found, prices, strict=True)
    ]
    return [
        each for each, usd in zip(found, worst, strict=True) if usd <= suite.limits.max_usd
    ] or [*found]


def _load(asked: Asked, cells: Mapping[str, Any]) -> Suite:
    return Suite.of(folder=asked.folder, local=asked.local, **{**asked.sections, **cells})


def is_proposed(name: str) -> bool:
    """A type with GPUs that a training job may use; NeuronCores need a compiler that is chosen by
    hand.
    """
    found = instance_types()[name]
    return (
        found.accelerator_kind is AcceleratorKind.GPU
        and found.has_training_quota
        and not found.is_local
    )


def _offers_both(asked: Asked, suite: CoreSuite) -> bool:
    """Whether cells with all weights and with LoRA are to be compared."""
    dataset = suite.workload.dataset
    is_chat = dataset is not None and dataset.format is DatasetFormat.CHAT
    return asked.adapter is None and is_chat


def _with_usual(
    works: Sequence[EstimatedWork],
    paid: Sequence[Candidate],
    best: Sequence[Candidate],
    *,
    is_time: bool,
) -> list[Candidate]:
    """What people would train with comes first: of the first of ``works`` that fits on one
    instance, on the instance that is best for it. Weights of 4 bits come first where only they fit.
    """
    first = list[Candidate]()
    for work in works:
        own = [
            each
            for each in paid
            if each.settings.adapter == work.adapter
            and each.settings.base_weights is not BaseWeights.NF4
            and (work is works[-1] or each.settings.instance_count == 1)
        ]
        of_best = choose(own, is_time=is_time, most=1)
        if of_best:
            first = [usual_candidate(work, of_best[0].settings) or of_best[0]]
            break
    usual_settings = [each.settings for each in first]
    return [*first, *(each for each in best if each.settings not in usual_settings)]


def _one_of_each_device(names: Sequence[str], work: EstimatedWork) -> list[Candidate]:
    """The cheapest type of each device; nothing is known of the model."""
    cheapest = {instance_types()[name].accelerator: name for name in reversed(names)}
    chosen = sorted(cheapest.values(), key=lambda name: work.prices[name].usd_per_hour)
    return [estimate_candidate(work, Settings(instance=name)) for name in chosen[:MOST_CELLS]]


def _why_nothing(work: EstimatedWork, types: Sequence[str], inputs: PlanInputs) -> str:
    shape = work.shape
    priced = [name for name in types if name in inputs.prices]
    if not priced:
        return (
            f"none of {len(types)} instance types has a known price: give --prices FILE, or "
            "--region"
        )
    size = (
        "" if shape is None else f" of a model with {shape.parameters / 1e9:.3g} billion parameters"
    )
    devices = {name: instance_types()[name].devices_per_instance for name in priced}
    largest = sorted(priced, key=lambda name: -devices[name] * (usable_memory_bytes(name) or 0))
    return (
        f"by the estimate, no step{size} fits into "
        f"{', '.join(largest[:4])}{' …' if len(priced) > 4 else ''}: give --max-instances with a "
        "larger number, larger --instance types, or a shorter --sequence-length"
    )


def _document(cells: Sequence[Settings]) -> dict[str, Any]:
    """The first cell is the baseline, which the matrix has; the others are included."""
    values = [{name: _plain(getattr(each, name)) for name in VARIED} for each in cells]
    usual = {
        field.name: _plain(field.default) for field in fields(Settings) if field.name in VARIED
    }
    varying = [name for name in VARIED if len({json.dumps(each[name]) for each in values}) > 1]
    fixed = {
        name: values[0][name]
        for name in VARIED
        if name not in varying and values[0][name] != usual.get(name)
    }
    if "instance" not in varying:
        fixed = {"instance": values[0]["instance"], **fixed}
    found: dict[str, Any] = {"training": fixed} if fixed else {}
    if varying:
        baseline = {name: values[0][name] for name in varying}
        found["baseline"] = baseline
        found["matrix"] = {name: [value] for name, value in baseline.items()}
        found["include"] = [{name: each[name] for name in varying} for each in values[1:]]
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Adapter):
        return {"rank": value.rank, "learning_rate": value.learning_rate}
    if value is None:
        return NO_ADAPTER
    return str(value) if isinstance(value, str) else value


def token_figures(candidate: Candidate, tokens: int) -> dict[str, float | None]:
    """``tokens``: of the whole work."""
    seconds = candidate.seconds
    usd = candidate.usd
    return {
        "tokens_per_second": tokens / seconds.mean if seconds is not None and tokens else None,
        "usd_per_billion_tokens": usd.mean / tokens * 1e9 if usd is not None and tokens else None,
    }


def estimate_texts(candidate: Candidate, prices: PriceList) -> dict[str, str]:
    """Memory, time and cost with their intervals, as a person reads them; of what is unknown the
    memory of a device, and the price.
    """
    memory = candidate.memory_bytes
    device = candidate.device_bytes
    texts = {"memory": NOT_ESTIMATED, "time": UNKNOWN, "cost": UNKNOWN}
    if candidate.evidence == NO_BASIS and device is not None:
        texts["memory"] = f"{UNKNOWN} of {bytes_text(device)}"
    if price := prices.get(candidate.settings.instance):
        texts["cost"] += f", {usd_text(price.usd_per_hour * candidate.settings.instance_count)}/h"
    if memory is not None:
        room = "" if device is None else f" of {bytes_text(device)}"
        texts["memory"] = (
            f"{bytes_text(round(memory.mean))} ({bytes_text(round(memory.high))} at most){room}"
        )
    if candidate.seconds is not None:
        found = candidate.seconds
        texts["time"] = (
            f"{seconds_text(found.mean)} ({interval_text(found.low, found.high, seconds_text)})"
        )
    if candidate.usd is not None:
        found = candidate.usd
        texts["cost"] = f"{usd_text(found.mean)} ({interval_text(found.low, found.high, usd_text)})"
    return texts


def suite_text(proposal: Proposal) -> str:
    """The suite file, with what is estimated of each cell beside it."""
    document = dict(proposal.document)
    included = document.pop("include", [])
    first, *others = proposal.cells
    why = proposal.why_unknown
    lines = [f"# No estimates: {why}." if why else ESTIMATES_NOTE, *_yaml(document)]
    comment = partial(_comment, prices=proposal.inputs.prices)
    if included:
        lines += [f"# The matrix is the cell to compare with: {comment(first)}", "include:"]
        for entry, each in zip(included, others, strict=True):
            lines += [f"  # {comment(each)}", *(f"  {line}" for line in _yaml([entry]))]
    elif document.get("source"):
        lines.append(SCRIPT_NOTE)
    kept = [
        (cell.cell_id, _kept(each))
        for cell, each in zip(proposal.plan.cells, proposal.cells, strict=True)
    ]
    if any(estimate for _, estimate in kept):
        workload = proposal.suite.suite.workload
        of = {"examples": workload.examples, "sequence_length": workload.sequence_length}
        lines += [
            KEPT_NOTE,
            "estimates:",
            *(f"  {line}" for line in _yaml({**of, "cells": dict(kept)})),
        ]
    return "\n".join(lines) + "\n"


def _kept(candidate: Candidate) -> dict[str, Any]:
    """The document of a CellEstimate; empty where nothing is known."""
    found = {each.name: getattr(candidate, each.name) for each in fields(CellEstimate)}
    return {
        name: {end: float(f"{value:.4g}") for end, value in asdict(estimate).items()}
        for name, estimate in found.items()
        if estimate is not None
    }


def _yaml(value: Any) -> list[str]:
    return write_yaml(value, default_flow_style=None, width=1000).splitlines()


def _comment(candidate: Candidate, prices: PriceList) -> str:
    texts = estimate_texts(candidate, prices)
    return (
        f"memory {texts['memory']}, time {texts['time']}, cost {texts['cost']}; "
        f"{candidate.evidence}"
    )
