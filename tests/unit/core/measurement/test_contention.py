from dataclasses import replace
from typing import Any

import pytest

from tests.unit.run_samples import known
from traindyno.core.measurement.measured_run import (
    LARGEST_FOREIGN_SHARE,
    Contention,
    measure_contention,
)
from traindyno.core.step_log.content import ProcessLog, Session
from traindyno.core.step_log.fields import Environment, HostLoad

QUIET = HostLoad(
    begin=0.0,
    end=10.0,
    cpu_seconds=9.8,
    run_queue_seconds=0.1,
    host_busy_seconds=10.0,
    steal_seconds=0.0,
    host_cpu_count=2,
)


def session_of(*loads: HostLoad, host_ids: tuple[str | None, ...] = ()) -> Session:
    processes = tuple(
        ProcessLog(job_name="job", rank=rank, start=0.0) for rank in range(len(loads))
    )
    for rank, (process, load) in enumerate(zip(processes, loads, strict=True)):
        process.host_loads.append(load)
        process.environment = Environment(
            time=0.0,
            rank=rank,
            world_size=len(loads),
            host=f"algo-{rank + 1}",
            facts={},
            host_id=host_ids[rank] if host_ids else None,
        )
    return Session(job_name="job", world_size=len(loads), processes=processes)


@pytest.mark.parametrize(
    ("changes", "is_contended"),
    [
        ({}, False),
        ({"steal_share": 0.021}, True),
        ({"queue_share": 0.051, "foreign_share": 0.051}, True),
        ({"queue_share": 0.051}, False),
        ({"foreign_share": 0.051}, False),
    ],
)
def test_shares_of_exactly_the_limits_are_no_contention(
    changes: dict[str, float], is_contended: bool
) -> None:
    at_limits = {"steal_share": 0.02, "queue_share": 0.05, "foreign_share": 0.05}
    contention = Contention(**{**at_limits, **changes})
    assert contention.is_contended is is_contended


@pytest.mark.parametrize(
    ("changes", "shares", "is_contended"),
    [
        # alone on its host: 0.2 of 20 CPU seconds are of others
        ({}, (0.0, 0.01, 0.1 / 9.9), False),
        ({"steal_seconds": 0.5}, (0.025, 0.01, 0.1 / 9.9), True),
        (
            {"cpu_seconds": 8.0, "run_queue_seconds": 2.0, "host_busy_seconds": 18.0},
            (0.0, 0.5, 0.2),
            True,
        ),
        # more threads than cores
        (
            {"cpu_seconds": 19.5, "run_queue_seconds": 30.0, "host_busy_seconds": 19.7},
            (0.0, 0.01, 30 / 49.5),
            False,
        ),
        # 1 of 20 CPU seconds is foreign work: the limit
        (
            {"cpu_seconds": 9.0, "run_queue_seconds": 4.5},
            (0.0, LARGEST_FOREIGN_SHARE, 1 / 3),
            False,
        ),
    ],
)
def test_the_shares_of_a_host_say_whether_a_run_is_contended(
    changes: dict[str, Any], shares: tuple[float, float, float], is_contended: bool
) -> None:
    contention = known(measure_contention(session_of(replace(QUIET, **changes))))
    assert (
        contention.steal_share,
        contention.foreign_share,
        contention.queue_share,
    ) == pytest.approx(shares)
    assert contention.is_contended is is_contended


def test_processes_of_one_machine_are_no_foreign_work_for_each_other() -> None:
    half = replace(QUIET, cpu_seconds=9.5, run_queue_seconds=2.0, host_busy_seconds=19.2)
    together = known(
        measure_contention(session_of(half, half, host_ids=("boot_id:a", "boot_id:a")))
    )
    apart = known(measure_contention(session_of(half, half, host_ids=("boot_id:a", "boot_id:b"))))
    assert together.foreign_share == pytest.approx(0.01)
    assert (together.is_contended, apart.is_contended) == (False, True)


def test_a_log_without_host_loads_says_nothing() -> None:
    session = session_of(QUIET)
    session.processes[0].host_loads.clear()
    assert measure_contention(session) is None
