"""A first suite for a model and its data: the cells that fit, ordered by their estimates, beside
the usual one.
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from traindyno.api.local_paths import find_local
from traindyno.api.memory_estimates import EstimatesUnavailable, MemoryEstimator, Say
from traindyno.api.model_check import fetch_configuration, find_configuration
from traindyno.api.plan_inputs import PlanInputs, read_plan_inputs
from traindyno.api.plans import data_lines, find_histories
from traindyno.api.suite_loading import Suite, check_startable
from traindyno.api.training_code import missing_libraries
from traindyno.core.costs.quantity_text import (
    counted,
    seconds_text,
)
from traindyno.core.errors import TraindynoError
from traindyno.core.instances.devices import AcceleratorKind
from traindyno.core.instances.instance_types import instance_types
from traindyno.core.planning.history import CellHistory, Histories
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
#: LoRA with its usual learning rate
USUAL_ADAPTER = Adapter(rank=16, learning_rate=2e-4)
NO_ADAPTER = "none"
START_SECONDS = 300.0  # of a job, as assumed in tests/data/surfaces
TOO_DEAR = "one job may cost more than --max-usd"
NO_PRICE = "no known price"
NO_STEP = "by the estimate, no step fits"
NOT_BEST = "another type is better by the estimate, or has the same devices for less"


class NothingFits(TraindynoError):
    """No allowed type has the memory for a step, as estimated, or none has a known price."""


class NothingKnown(TraindynoError):
    """Nothing can be estimated for the model, and no types are named to compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a person asks of `init`.

    ``sections`` are sections of the suite as a file would have them, without cells. ``instances``
    are the only types to propose, if there are any. ``max_instances`` is the most of one cell;
    types whose instances have a fast network are tried with 1, 2, 4 … of them. ``adapter`` is what
    every cell trains; without one, conversations are trained on with all weights and with LoRA.
    """

    sections: Mapping[str, Any]
    folder: Path
    instances: tuple[str, ...]
    max_instances: int
    local: bool
    adapter: Adapter | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A first suite, with the estimates of its cells.

    The usual cell is the first of ``cells``. ``why_unknown`` says why nothing could be estimated,
    or is None. ``left_out`` has the types that were asked for, or one job of which may cost more
    than limits.max_usd, with the reason.
    """

    suite: Suite
    document: Mapping[str, Any]
    cells: tuple[Candidate, ...]
    why_unknown: str | None
    inputs: PlanInputs
    plan: Plan
    left_out: Mapping[str, str]

    @property
    def tokens(self) -> int:
        """Tokens of the whole work; 0 where they are unknown."""
        return self.suite.suite.workload.examples * (self.suite.suite.workload.sequence_length or 0)

    @property
    def too_little(self) -> str | None:
        """Why measuring can save nothing, or None."""
        known = [cell.seconds.mean for cell in self.cells if cell.seconds is not None]
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
        """The account's quota and the instances that the cell needs; (None, …) where the quota is
        unknown or nothing limits it.
        """
        name = instance_quota(candidate.settings.instance, Purchase.ON_DEMAND).name
        reading = self.inputs.quotas.get(name)
        return (None if reading is None else reading.limit), candidate.settings.instance_count


def propose(
    asked: Asked, *, prices: Path | None, quotas: Path | None, lab: str | None, say: Say
) -> Proposal:
    """Propose cells for a model and its data, and plan the suite that measures them.

    Args:
        asked: What a person wants to train, and on what.
        prices: File of prices, in place of AWS's.
        quotas: File of quotas, in place of the account's.
        lab: Lab whose earlier runs of the cells are counted; None counts none.
        say: Gets a line for each estimate that takes time.

    Raises:
        SuiteInvalid: Something is wrong with the model or its data.
        DatasetFilesInvalid: Something is wrong with the files of the data.
        AccountUnreachable: Prices or quotas could not be read.
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
        chosen = _choose_cells(asked, suite, types, work, inputs, why_unknown)
    if not chosen.kept:
        raise NothingFits(_why_nothing(work, types, inputs))
    if asked.adapter is None and all(candidate.settings.adapter for candidate in chosen.kept):
        say(f"training all weights fits into none of the types: each cell trains {USUAL_ADAPTER}")
    document = _document([candidate.settings for candidate in chosen.kept])
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
    cells = tuple(
        _with_history(candidate, histories.get(cell.cell_id))
        for candidate, cell in zip(chosen.kept, plan.cells, strict=True)
    )
    return Proposal(
        suite=loaded,
        document={**asked.sections, **document},
        cells=cells,
        why_unknown=why_unknown,
        inputs=inputs,
        plan=plan,
        left_out=_left_out(asked.instances, chosen, inputs),
    )


def _with_history(candidate: Candidate, history: CellHistory | None) -> Candidate:
    """The candidate, whose evidence counts the earlier runs of its cell."""
    if not history:
        return candidate
    evidence = [] if candidate.evidence == NO_BASIS else [candidate.evidence]
    evidence.append(f"{counted(history.run_count, 'run')} of yours")
    return replace(candidate, evidence=", ".join(evidence))


def _know(
    suite: Suite, asked: Asked, inputs: PlanInputs, say: Say, stack: ExitStack
) -> tuple[EstimatedWork, str | None]:
    """The inputs of estimates, and why nothing can be estimated, or None."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """Cells that fit, cells that the cap of the suite can pay for, and cells to propose."""

    fitting: Sequence[Candidate] = ()
    affordable: Sequence[Candidate] = ()
    kept: Sequence[Candidate]


def _choose_cells(
    asked: Asked,
    suite: CoreSuite,
    types: Sequence[str],
    work: EstimatedWork,
    inputs: PlanInputs,
    why_unknown: str | None,
) -> _Chosen:
    """Choose cells: of this machine, of named types without estimates, or by estimates."""
    is_script = suite.workload.task is Task.SCRIPT
    if asked.local:
        return _Chosen(kept=_local_cells(asked, suite, work))
    priced = [name for name in types if name in inputs.prices]
    if work.shape is None:
        if not is_script and not asked.instances:
            raise NothingKnown(
                f"{why_unknown}: no cell can be estimated; name the types to compare with "
                "--instance"
            )
        priced.sort(key=lambda name: inputs.prices[name].usd_per_hour)
        fitting = _one_of_each_device(priced, work)
        affordable = _within_cap(fitting, suite, inputs)
        return _Chosen(fitting=fitting, affordable=affordable, kept=affordable)
    counts = [2**power for power in range(asked.max_instances.bit_length())]
    works = [work]
    fitting = find_candidates(work, priced, counts)
    has_weights = suite.workload.model is not None and suite.workload.model.path is not None
    is_last_resort = asked.adapter is None and has_weights and not fitting
    if is_last_resort or _offers_both(asked, suite):
        works.append(replace(work, adapter=USUAL_ADAPTER))
        fitting += find_candidates(works[-1], priced, counts)
    affordable = _within_cap(fitting, suite, inputs)
    best = choose(affordable, is_time=suite.goal.is_time, most=MOST_CELLS - 2)
    with_usual = _with_usual(works, affordable, best, is_time=suite.goal.is_time)
    return _Chosen(
        fitting=fitting, affordable=affordable, kept=[*with_usual, *_compiled(work, best)]
    )


def _local_cells(asked: Asked, suite: CoreSuite, work: EstimatedWork) -> list[Candidate]:
    """Cells of this machine, which differ in what they train and in batch; one for a script, which
    sees neither.
    """
    first = suite.cells[0].settings
    if suite.workload.task is Task.SCRIPT:
        return [estimate_candidate(work, first)]
    adapters = (None, USUAL_ADAPTER) if _offers_both(asked, suite) else (asked.adapter,)
    return [
        estimate_candidate(work, replace(first, batch_size_per_device=batch, adapter=adapter))
        for adapter in adapters
        for batch in LOCAL_BATCHES
    ]


def _compiled(work: EstimatedWork, best: Sequence[Candidate]) -> list[Candidate]:
    """The best cell compiled, since no estimate tells a compiled cell from the eager one."""
    return [
        estimate_candidate(work, replace(candidate.settings, compiler=Compiler.INDUCTOR))
        for candidate in best[:1]
        if candidate.settings.base_weights is not BaseWeights.NF4
    ]


def _left_out(asked: Sequence[str], chosen: _Chosen, inputs: PlanInputs) -> dict[str, str]:
    fitting = _types_of(chosen.fitting)
    proposed = _types_of(chosen.kept)
    reasons = dict.fromkeys(sorted(fitting - _types_of(chosen.affordable)), TOO_DEAR)
    for name in asked:
        if name not in inputs.prices:
            reasons[name] = NO_PRICE
        elif name not in fitting:
            reasons[name] = NO_STEP
        elif name not in proposed:
            reasons.setdefault(name, NOT_BEST)
    return reasons


def _types_of(candidates: Sequence[Candidate]) -> set[str]:
    return {candidate.settings.instance for candidate in candidates}


def _within_cap(
    candidates: Sequence[Candidate], suite: CoreSuite, inputs: PlanInputs
) -> list[Candidate]:
    """Candidates whose longest job costs at most limits.max_usd, which plan refuses otherwise; all
    candidates where none is left.
    """
    prices = [inputs.prices[candidate.settings.instance].usd_per_hour for candidate in candidates]
    worst = [
        run_terms(candidate.settings, suite).worst_case_usd(usd)
        for candidate, usd in zip(candidates, prices, strict=True)
    ]
    return [
        candidate
        for candidate, usd in zip(candidates, worst, strict=True)
        if usd <= suite.limits.max_usd
    ] or [*candidates]


def _load(asked: Asked, cells: Mapping[str, Any]) -> Suite:
    return Suite.of(folder=asked.folder, local=asked.local, **{**asked.sections, **cells})


def is_proposed(name: str) -> bool:
    """Whether a type has GPUs that a training job may use. NeuronCores need a compiler that is
    chosen by hand.
    """
    instance_type = instance_types()[name]
    return (
        instance_type.accelerator_kind is AcceleratorKind.GPU
        and instance_type.has_training_quota
        and not instance_type.is_local
    )


def _offers_both(asked: Asked, suite: CoreSuite) -> bool:
    """Whether cells with all weights and with LoRA are to be compared."""
    dataset = suite.workload.dataset
    is_chat = dataset is not None and dataset.format is DatasetFormat.CHAT
    return asked.adapter is None and is_chat


def _with_usual(
    works: Sequence[EstimatedWork],
    affordable: Sequence[Candidate],
    best: Sequence[Candidate],
    *,
    is_time: bool,
) -> list[Candidate]:
    """The best candidates after the usual one, which people would train with.

    It is a cell of the first of ``works`` that fits on one instance, on the instance that is best
    for it; the cheapest or fastest cell with weights of 4 bits comes first where only they fit.
    """
    usual = None
    for work in works:
        of_best = choose(
            _usual_choices(work, affordable, is_last=work is works[-1]), is_time=is_time, most=1
        )
        if of_best:
            usual = usual_candidate(work, of_best[0].settings) or of_best[0]
            break
    if usual is None:
        return [*best]
    return [usual, *(candidate for candidate in best if candidate.settings != usual.settings)]


def _usual_choices(
    work: EstimatedWork, candidates: Sequence[Candidate], *, is_last: bool
) -> list[Candidate]:
    """Candidates that train what ``work`` trains, without weights of 4 bits; on one instance,
    unless nothing else may come after them.
    """
    return [
        candidate
        for candidate in candidates
        if candidate.settings.adapter == work.adapter
        and candidate.settings.base_weights is not BaseWeights.NF4
        and (is_last or candidate.settings.instance_count == 1)
    ]


def _one_of_each_device(names: Sequence[str], work: EstimatedWork) -> list[Candidate]:
    """The cheapest type of each device, for a model that cannot be estimated."""
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
    """The section of cells: the first cell is the baseline, which the matrix has; the others are
    included.
    """
    values = [{name: _plain(getattr(settings, name)) for name in VARIED} for settings in cells]
    usual = {
        field.name: _plain(field.default) for field in fields(Settings) if field.name in VARIED
    }
    varying = [
        name
        for name in VARIED
        if len({json.dumps(cell_values[name]) for cell_values in values}) > 1
    ]
    fixed = {
        name: values[0][name]
        for name in VARIED
        if name not in varying and values[0][name] != usual.get(name)
    }
    if "instance" not in varying:
        fixed = {"instance": values[0]["instance"], **fixed}
    document: dict[str, Any] = {"training": fixed} if fixed else {}
    if varying:
        baseline = {name: values[0][name] for name in varying}
        document["baseline"] = baseline
        document["matrix"] = {name: [value] for name, value in baseline.items()}
        document["include"] = [
            {name: cell_values[name] for name in varying} for cell_values in values[1:]
        ]
    return document


def _plain(value: Any) -> Any:
    if isinstance(value, Adapter):
        return {"rank": value.rank, "learning_rate": value.learning_rate}
    if value is None:
        return NO_ADAPTER
    return str(value) if isinstance(value, str) else value
