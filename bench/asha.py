"""Syne Tune's asynchronous successive halving, which `make bench` installs in an environment of its
own.
"""

import importlib
import logging
import sys
from datetime import UTC, datetime
from random import Random
from typing import Any

from localcloud.home import REPO_ROOT
from tests.simulations.other_races import FACTOR, SimpleJobs
from tests.simulations.race_lab import FIRST_LOOK, Conditions, grid_seconds, run_steps
from tests.simulations.response_surface import Surface

ENVIRONMENT = REPO_ROOT / ".envs" / "syne_tune"
SECONDS = "seconds"
STEPS = "steps"


def is_installed() -> bool:
    return (ENVIRONMENT / ".installed").exists()


def search_by_asha(surface: Surface, seed: int, conditions: Conditions, *, share: float) -> float:
    """The regret of the cell with the best value seen for ``share`` of the grid's seconds; infinite
    if all failed. Its cells are drawn at random, each once, and run one after another in the jobs
    of their groups.
    """
    source = Random(f"asha {surface.name} {seed}")
    order = source.sample(list(surface.by_id), len(surface.by_id))
    jobs = SimpleJobs(surface=surface, conditions=conditions, source=source)
    budget = share * grid_seconds(surface, conditions)
    scheduler, make_trial = _scheduler(surface, order, seed)
    values: dict[str, float] = {}
    for number in range(len(order)):
        trial = make_trial(number, scheduler.suggest())
        scheduler.on_trial_add(trial)
        value = _run(surface, jobs, scheduler, trial)
        if number and jobs.spent > budget:
            break
        if value is not None:
            values[trial.config["cell"]] = value
    return (
        surface.regret(min(values, key=lambda cell_id: values[cell_id])) if values else float("inf")
    )


def _run(surface: Surface, jobs: SimpleJobs, scheduler: Any, trial: Any) -> float | None:
    """Until the scheduler stops it. What it reported last; None if it failed."""
    cell_id = trial.config["cell"]
    level = jobs.begin(cell_id)
    value = surface.value(cell_id)
    last = run_steps(surface, surface.by_id[cell_id])
    if value is None:
        jobs.spend_steps(cell_id, last)
        scheduler.on_trial_error(trial)
        return None
    done = 0
    rung = FIRST_LOOK
    while True:
        steps = min(rung, last)
        jobs.spend_steps(cell_id, steps - done)
        seen = value * level * jobs.step_noise(steps)
        result = {SECONDS: seen, STEPS: steps}
        if steps == last:
            scheduler.on_trial_complete(trial, result)
            return seen
        if scheduler.on_trial_result(trial, result) == "STOP":
            return seen
        done = steps
        rung = rung * FACTOR


def _scheduler(surface: Surface, order: list[str], seed: int) -> tuple[Any, Any]:
    """Syne Tune's scheduler, and what makes a trial of the number and the suggestion."""
    if str(ENVIRONMENT) not in sys.path:
        sys.path.append(str(ENVIRONMENT))
    logging.getLogger("syne_tune").setLevel(logging.ERROR)
    space = importlib.import_module("syne_tune.config_space")
    status = importlib.import_module("syne_tune.backend.trial_status")
    halving = importlib.import_module(
        "syne_tune.optimizer.schedulers.asha"
    ).AsynchronousSuccessiveHalving
    scheduler = halving(
        config_space={"cell": space.choice(order)},
        metric=SECONDS,
        time_attr=STEPS,
        max_t=max(run_steps(surface, cell) for cell in surface.cells),
        grace_period=FIRST_LOOK,
        reduction_factor=FACTOR,
        random_seed=seed,
        searcher_kwargs={"points_to_evaluate": [{"cell": cell_id} for cell_id in order]},
    )
    return scheduler, lambda number, suggested: status.Trial(
        trial_id=number, config=suggested.config, creation_time=datetime.fromtimestamp(0, UTC)
    )
