"""A run that can't win any more ends; the first one never does, and without the document's word no
run does.
"""

import json
from collections.abc import Mapping
from itertools import count
from math import nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.parent.shared_job import ENTRY, SharedJob, run_document
from tests.unit.run_samples import known
from traindyno.core.jobs.journal_format import EQUAL_BATCHES
from traindyno.core.step_log.line import (
    BATCH_SEARCH,
    CHECKSUMS,
    FIRST_BATCHES,
    KEPT_STEPS,
    SETUP,
    environment_line,
    phase_line,
    step_line,
)
from traindyno.figures.in_job.outpaced import MOST_STEPS
from traindyno.parent.conduct import Race
from traindyno.parent.peers import Peers
from traindyno.parent.step_times import RunLogs, StepsSoFar, work_per_sample

PROGRAM = Path(__file__).with_name("racing.py")
RACE = {"race": {"samples": 1e6}}
FAST = 0.1
LEVEL = 0.105
SLOW = 0.35
# If no run is ended, the test fails after this time.
LONG_SECONDS = 40.0
NUMBERS = count(1)


def racing(run_id: str, seconds: float, **given: Any) -> dict[str, Any]:
    return run_document(run_id, json.dumps({"seconds": seconds, **given}))


def race(root: Path, *runs: dict[str, Any], limits: Mapping[str, Any] = RACE) -> SharedJob:
    return SharedJob(root=root, runs=runs, limits=limits, programs=(PROGRAM,))


def reasons(job: SharedJob, job_name: str = "job-a1") -> dict[str | None, str | None]:
    return {
        run_id: reason for event, run_id, reason in job.events(job_name) if event == "run_ended"
    }


def test_a_hopeless_run_ends_with_its_bound(tmp_path: Path) -> None:
    job = race(
        tmp_path,
        racing("first", SLOW),
        racing("best", FAST),
        racing("behind", SLOW, waits=LONG_SECONDS),
        racing("level", LEVEL, waits=1.2),
        racing("twice-the-work", SLOW, samples=16, waits=1.2),
    )
    job.succeed()
    others = dict.fromkeys(("first", "best", "level", "twice-the-work"), "exited")
    assert reasons(job) == {**others, "behind": "outpaced"}
    end = known(job.end("behind"))
    # 0.35 s ÷ 0.1 s is 3.5; single runs of this machine scatter by 12 %. It is judged
    # after 7 of its 20 steps.
    bound = end["bound"]
    assert (bound["by"], bound["steps"]) == ("best", 5)
    assert 2.8 < bound["least_ratio"] < 3.1
    assert (end["exit_code"], end["signal"], end["failure"], end["failed_host"]) == (
        None,
        None,
        None,
        None,
    )
    assert [name for name in end["files"] if name.startswith("behind/step_log/job-a1/rank-")]
    assert [(job.end(run_id) or {})["bound"] for run_id in others] == [None] * len(others)
    assert job.carry("job-a2")[0] == 0
    assert {event for event, *_ in job.events("job-a2")} == {
        "parent_started",
        "run_skipped",
        "parent_ended",
    }


@pytest.mark.parametrize(
    ("best", "behind", "limits"),
    [
        ({}, {"waits": 1.2}, {}),
        ({}, {"steps": 6, "waits": 1.2}, RACE),
        ({}, {"steps": 3000}, RACE),
        ({}, {"lingers": 1.2}, RACE),
        ({"steps": 6}, {"waits": 1.2}, RACE),
    ],
    ids=[
        "not asked for",
        "too few steps",
        "over before a look",
        "has no step left",
        "nothing to compare with",
    ],
)
def test_a_slow_run_goes_on(
    best: dict[str, Any], behind: dict[str, Any], limits: dict[str, Any], tmp_path: Path
) -> None:
    job = race(
        tmp_path, racing("best", FAST, **best), racing("behind", SLOW, **behind), limits=limits
    )
    assert job.carry()[0] == 0
    assert reasons(job) == {"best": "exited", "behind": "exited"}
    assert (job.end("behind") or {})["bound"] is None


def test_a_run_with_an_overlong_step_ends(tmp_path: Path) -> None:
    behind = racing("behind", SLOW, steps=4, waits=LONG_SECONDS)
    warms_up = racing("warms-up", SLOW, steps=1, waits=3.0)
    job = race(tmp_path, racing("best", FAST), behind, warms_up)
    job.entry = (
        f"from traindyno.figures.in_job import outpaced; outpaced.STALL_SECONDS = 1.5; {ENTRY}"
    )
    assert job.carry()[0] == 0
    assert reasons(job) == {"best": "exited", "behind": "outpaced", "warms-up": "exited"}
    bound = (job.end("behind") or {})["bound"]
    assert (bound["by"], bound["steps"]) == ("best", 3)
    assert bound["least_ratio"] > 1.5 / FAST / 3


@pytest.mark.parametrize(
    ("hyperparameters", "reason"),
    [
        ({"measurement": {"max_steps": 20, "evaluate": False}}, "stalled"),
        ({"measurement": {"max_steps": 20, "evaluate_every_steps": 8}}, "exited"),
        ({"depth": 3}, "exited"),
    ],
    ids=["built-in task", "it may evaluate", "script"],
)
def test_a_stalling_first_run_is_ended_by_its_own_earlier_steps(
    hyperparameters: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    waits = LONG_SECONDS if reason == "stalled" else 2.5
    stalls = racing("stalls", FAST, steps=8, waits=waits)
    job = race(tmp_path, {**stalls, "hyperparameters": hyperparameters}, racing("later", FAST))
    job.entry = (
        f"from traindyno.figures.in_job import outpaced; outpaced.STALL_SECONDS = 1.0; {ENTRY}"
    )
    assert job.carry()[0] == 0
    assert reasons(job) == {"stalls": reason, "later": "exited"}


@pytest.mark.parametrize("limits", [RACE, {}], ids=["race", "grid"])
def test_a_run_with_processes_counting_the_same_batches_ends_at_once(
    limits: dict[str, Any], tmp_path: Path
) -> None:
    same = racing("same", FAST, processes=2, waits=LONG_SECONDS)
    own = racing("own", FAST, processes=2, differ=1, waits=1.2)
    job = race(tmp_path, same, own, limits=limits)
    assert job.carry()[0] == 0
    assert reasons(job) == {"same": "equal_batches", "own": "exited"}


@pytest.mark.parametrize(("differ", "verdict"), [(0, EQUAL_BATCHES), (1, None)])
def test_the_first_batches_of_two_hosts_are_compared(
    differ: int, verdict: str | None, tmp_path: Path
) -> None:
    job: Any = SimpleNamespace(race_samples=None, instance_type="local.cpu", runs=(), again=())
    run: Any = SimpleNamespace(run_id="a")
    words: dict[str, str] = {}
    said = []
    for rank in range(2):
        peers = Peers()
        peers.rank, peers.count, peers._words = rank, 2, words
        folder = tmp_path / f"{rank}"
        (folder / "a" / "job").mkdir(parents=True)
        host = SimpleNamespace(environment={}, job_name="job", step_log=folder.joinpath)
        attempt: Any = SimpleNamespace(host=host, peers=peers, job=job)
        judge = Race(attempt, [], {}).judge_of(run)
        first = phase_line(FIRST_BATCHES, 0.0, 0.0, {CHECKSUMS: [7, 8, 9 + rank * differ]})
        written(folder / "a" / "job", environment(2), first, rank=rank)
        said.append(judge())
    assert [end and end.reason for end in said] == [None, verdict]


def test_the_contenders_run_again_after_the_last_run(tmp_path: Path) -> None:
    """A cell's further run goes on to its end, however slow.

    A later attempt neither repeats nor adds one.
    """
    cells = {"best": FAST, "level": LEVEL, "behind": SLOW, "fails": FAST}
    runs = [
        racing(name, seconds, exits=int(name == "fails"), waits=0.6)
        for name, seconds in cells.items()
    ]
    again = [
        {
            **racing(
                f"{name}-{number}", SLOW if (name, number) == ("level", 2) else seconds, waits=0.6
            ),
            "first": name,
        }
        for number in (1, 2)
        for name, seconds in cells.items()
    ]
    job = race(tmp_path, *runs, limits={**RACE, "again": again})
    job.succeed()
    began = [run_id for event, run_id, _ in job.events() if event == "run_began"]
    assert began == [*cells, "best-1", "level-1", "best-2", "level-2"]
    assert reasons(job) == {**dict.fromkeys(began, "exited"), "behind": "outpaced"}
    assert job.carry("job-a2")[0] == 0
    assert not reasons(job, "job-a2")


def test_a_failed_run_outpaces_no_other(tmp_path: Path) -> None:
    job = race(tmp_path, racing("fails", FAST, exits=1), racing("behind", SLOW, waits=1.2))
    assert job.carry()[0] == 0
    assert (job.end("fails") or {})["exit_code"] == 1
    assert reasons(job)["behind"] == "exited"


def test_runs_of_a_dead_job_still_outpace_others(tmp_path: Path) -> None:
    """The run in progress begins again, and is compared with what ended in the earlier job."""
    behind = racing("behind", SLOW, waits=LONG_SECONDS, first={"steps": 3})
    job = race(tmp_path, racing("best", FAST), behind)
    job.die("job-a1", lambda: list((job.folder() / "behind" / "step_log").glob("*/rank-*")))
    assert job.carry("job-a2")[0] == 0
    assert job.events("job-a2")[1:3] == [
        ("run_skipped", "best", None),
        ("run_began", "behind", None),
    ]
    assert reasons(job, "job-a2") == {"behind": "outpaced"}
    assert (job.end("behind", "job-a2") or {})["bound"]["by"] == "best"


def test_the_log_of_a_run_before_an_interruption_does_not_end_it(tmp_path: Path) -> None:
    """A spot job goes on under its name. The run is judged by its own steps only."""
    job = race(tmp_path, racing("best", FAST), racing("level", LEVEL, late=1.2))
    before = job.folder() / "level" / "step_log" / "job-a1"
    before.mkdir(parents=True)
    written(before, environment(), *(step(number, number + SLOW) for number in range(20)))
    assert job.carry()[0] == 0
    assert reasons(job) == {"best": "exited", "level": "exited"}


def test_a_throw_away_run_takes_the_cold_start(tmp_path: Path) -> None:
    """It is the first run, ended after some steps; nothing of it is among the results."""
    job = race(tmp_path, racing("a", SLOW), racing("b", SLOW), limits={"warm_up_steps": 7})
    job.succeed()
    assert [event for event, *_ in job.events()] == [
        "parent_started",
        "warm_up_began",
        "warmed_up",
        *("run_began", "run_ended") * 2,
        "parent_ended",
    ]
    assert {path.name for path in job.folder().iterdir()} == {"a", "b", "journal"}
    assert {path.name for path in (tmp_path / "algo-1" / "model").iterdir()} == {"a", "b"}
    assert (job.end("a") or {})["place"] == 1
    warmed = next(line for line in job.journal() if line["event"] == "warmed_up")
    began = next(line for line in job.journal() if line["event"] == "run_began")
    assert 0 < warmed["own_milliseconds"] <= began["elapsed_milliseconds"]
    assert job.carry("job-a2")[0] == 0
    assert "warm_up_began" not in {event for event, *_ in job.events("job-a2")}


def test_a_throw_away_run_with_a_dead_job_is_left_out(tmp_path: Path) -> None:
    job = race(tmp_path, racing("a", SLOW), limits={"warm_up_steps": 1000})
    job.die("job-a1", lambda: "warm_up_began" in {event for event, *_ in job.events()})
    assert job.carry("job-a2")[0] == 0
    assert [event for event, *_ in job.events("job-a2")] == [
        "parent_started",
        "run_began",
        "run_ended",
        "parent_ended",
    ]


def environment(world_size: int = 1, **facts: Any) -> dict[str, Any]:
    return environment_line(0.0, 0, world_size, "algo-1", facts)


def step(begin: float, end: float, **fields: Any) -> dict[str, Any]:
    numbered = {"step": next(NUMBERS), "samples": 4, "loss": 1.0, **fields}
    return step_line(begin=begin, end=end, wait_seconds=0.0, **numbered)


def written(folder: Path, *lines: dict[str, Any], rank: int = 0, start: int = 1) -> None:
    with (folder / f"rank-{rank:05d}.{start}.jsonl").open("a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))


def test_steps_are_those_ended_by_all_processes(tmp_path: Path) -> None:
    logs = RunLogs(tmp_path, hosts=1)
    written(tmp_path, environment(2), step(10, 11), step(11, 12))
    logs.read_new()
    assert logs.steps() is None  # the other process has no log yet
    written(tmp_path, environment(2), step(10, 13), rank=1)
    with (tmp_path / "rank-00001.1.jsonl").open("a") as file:
        file.write(
            'not JSON\n{"kind": "step"}\n' + json.dumps(step(13, 17))
        )  # without the end of its line
    logs.read_new()
    steps = known(logs.steps())
    assert (steps.begin, steps.seconds, steps.samples) == (10, [3], 8)
    with (tmp_path / "rank-00001.1.jsonl").open("a") as file:
        file.write("\n")
    written(tmp_path, {"kind": "end"}, rank=1)
    logs.read_new()
    assert (logs.step_count, logs.has_ended) == (2, True)


def test_each_host_has_a_part_of_the_batch(tmp_path: Path) -> None:
    written(tmp_path, environment(2), step(10, 11))
    alone = RunLogs(tmp_path, hosts=1)
    with_another = RunLogs(tmp_path, hosts=2)
    for logs in (alone, with_another):
        logs.read_new()
    assert alone.steps() is None
    steps = known(with_another.steps())
    assert steps.samples == 8


def test_the_newest_log_of_a_process_counts(tmp_path: Path) -> None:
    """A spot job starts again under its name, and a run that goes on logs into another file."""
    written(tmp_path, environment(), *(step(0, 9) for _ in range(30)))
    earlier = frozenset(tmp_path.iterdir())
    logs = RunLogs(tmp_path, hosts=1, earlier=earlier)
    all_logs = RunLogs(tmp_path, hosts=1)
    logs.read_new()
    assert logs.steps() is None
    written(
        tmp_path, environment(), *(step(0, 1, loss=nan) for _ in range(MOST_STEPS + 5)), start=2
    )
    for log in (logs, all_logs):
        log.read_new()
        steps = known(log.steps())
        assert (log.step_count, set(steps.seconds), log.has_diverged) == (MOST_STEPS, {1}, True)


def test_the_steps_of_an_unfit_batch_are_no_steps(tmp_path: Path) -> None:
    logs = RunLogs(tmp_path, hosts=1)
    search = phase_line(BATCH_SEARCH, 0, 9, {KEPT_STEPS: 42})
    written(
        tmp_path, environment(), *(step(0, 9, step=number) for number in (41, 42, 43, 44)), search
    )
    written(tmp_path, environment(), step(9, 10, step=43, samples=1))
    logs.read_new()
    steps = known(logs.steps())
    assert (steps.seconds, steps.samples) == ([9, 9, 1], 3)


@pytest.mark.parametrize(("unit", "work"), [("tokens", 50.0), ("rows", 1.0), (None, 1.0)])
def test_a_packed_sample_has_more_work(unit: str | None, work: float, tmp_path: Path) -> None:
    facts: dict[str, Any] = {"work_unit": unit} if unit else {}
    written(tmp_path, environment(**facts), step(0, 1, tokens=200))
    by_script = tmp_path / "script"
    by_script.mkdir()
    written(by_script, environment(), phase_line(SETUP, 0, 1, facts), step(0, 1, tokens=200))
    assert of_one_step(by_script).unit == unit
    assert work_per_sample(of_one_step(tmp_path)) == work


def of_one_step(folder: Path) -> StepsSoFar:
    logs = RunLogs(folder, hosts=1)
    logs.read_new()
    return known(logs.steps())
