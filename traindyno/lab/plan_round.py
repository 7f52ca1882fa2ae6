"""Write the jobs of the next round, lane by lane, for the state machine to read."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from traindyno.core.errors import TraindynoError
from traindyno.core.jobs.job import Job
from traindyno.core.planning.jobs import share_jobs
from traindyno.core.planning.lanes import Lane, LanePlan, split_lanes
from traindyno.core.planning.plan import Plan, read_stored_plan
from traindyno.core.planning.waves import fill_waves, wave_items
from traindyno.core.s3_keys import lane_key, plan_key, suite_key
from traindyno.core.suite.preparation import is_packed
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.core.verdict.found_batch import searches_batch, with_batches
from traindyno.core.verdict.next_round import plan_round
from traindyno.store.results import load_results
from traindyno.store.results_bucket import ResultsBucket, TokenCache


class TokensMissing(TraindynoError):
    """Prepared data, or the model's copy, was deleted while its execution was running."""


def plan_next_round(
    execution_id: str, *, finished_rounds: int, bucket: ResultsBucket
) -> dict[str, Any]:
    """The state machine's next input; without lanes, the search has ended."""
    suite = bucket.read_as(suite_key(execution_id), read_stored_suite)
    plan = bucket.read_as(plan_key(execution_id), read_stored_plan)
    number = finished_rounds + 1
    searches = searches_batch(plan.cells)
    needs_results = suite.search.is_race or searches or suite.measurement.confirm is not None
    results = load_results(bucket, execution_id) if number == 1 or needs_results else []
    next_runs = partial(
        plan_round,
        suite,
        plan.cells,
        execution_id=execution_id,
        results=results,
        host_priors=plan.host_priors,
    )
    runs = next_runs(round_number=number)
    if number == 1 and results:  # of the execution that this one continues
        done = {result.run.run_id for result in results}
        runs = tuple(run for run in runs if run.run_id not in done)
        if not runs:
            number = 2
            runs = next_runs(round_number=number)
    if searches:
        runs = with_batches(runs, results, plan.first_batches)
    histories = {history.cell_id: history for history in plan.history}
    jobs = share_jobs(_with_prepared(runs, suite, plan, TokenCache(bucket)), suite, histories)
    lanes = split_lanes(jobs, suite.purchase)
    plans = {lane.lane_id: lane for lane in plan.lanes}
    pointers = []
    for lane in lanes:
        waves: list[dict[str, Any]] = []
        for wave, concurrency in _waves(lane, plans[lane.lane_id]):
            key = lane_key(execution_id, number, lane.lane_id, wave=len(waves) + 1)
            bucket.write_json(key, wave_items(wave, suite.limits))
            waves.append({"items_key": key, "concurrency": concurrency})
        # The field keeps its old name: a running execution reads it by the definition that it began
        # with.
        pointers.append({"lane_id": lane.lane_id, "packs": waves})
    return {
        "execution_id": execution_id,
        "round": number,
        "lanes_at_once": plan.lanes_at_once,
        "lanes": pointers,
    }


def _waves(lane: Lane, plan: LanePlan) -> list[tuple[Sequence[Job], int]]:
    """The waves of the lane, one after another, each with the most jobs that are in progress at the
    same time. A lane whose jobs are counted is one wave.
    """
    if plan.instances_at_once is None:
        return [(lane.jobs, plan.concurrency)]
    return [(wave, len(wave)) for wave in fill_waves(lane.jobs, plan.instances_at_once)]


def _with_prepared(
    runs: Sequence[Run], suite: Suite, plan: Plan, cache: TokenCache
) -> tuple[Run, ...]:
    """Each run with the tokens that its cell reads, and the lab's copy of the model."""
    prepared = plan.preparation.tokens if plan.preparation else ()
    places = {token_set.key: cache.find(token_set.key, oldest=0.0) for token_set in prepared}
    missing = [key for key, place in places.items() if place is None]
    if missing:
        raise TokensMissing(
            f"{plan.execution_id}: {', '.join(missing)} was prepared and no longer exists"
        )
    tokens = {
        token_set.packing: places[token_set.key]
        for token_set in prepared
        if not token_set.stages_model
    }
    models = [
        place.s3_uri
        for token_set in prepared
        if token_set.stages_model and (place := places[token_set.key])
    ]
    model = models[0] if models else None
    return tuple(
        replace(
            run, tokens=tokens.get(is_packed(run.cell.settings, suite.workload)), model_s3_uri=model
        )
        for run in runs
    )
