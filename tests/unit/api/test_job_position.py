"""Which of its runs a shared job is at."""

import random

from tests.unit.core.jobs.written_jobs import written_job
from tests.unit.lab.shared_job_world import World
from tests.unit.step_log_samples import log_lines
from traindyno.api.execution_state import Position, ended_in, find_position, list_files


def test_the_run_that_logs_and_has_not_ended_is_shown() -> None:
    """Files of an earlier attempt, of a run that is carried on, say nothing."""
    world = World(random.Random(0), run_count=3)
    world.start("t1")
    (row,) = world.lab.attempt_rows.values()
    contents = world.lab.objects.contents

    def position() -> Position:
        return find_position(row, list_files(row, world.lab.bucket), world.lab.bucket)

    assert position() == Position()
    first, second, third = (run.run_id for run in world.job.runs)
    written = written_job(row.job_name)
    written.carry(first, 20)
    contents |= {f"{world.prefix}{key}": text for key, text in written.files.items()}
    contents[f"{world.prefix}{third}/step_log/an-earlier-one-a1/rank-00000.1.jsonl"] = b"{}"
    assert position() == Position()
    log = "".join(log_lines(step_seconds=[0.5] * 4)).encode()
    contents[f"{world.prefix}{second}/step_log/{row.job_name}/rank-00000.1.jsonl"] = log
    assert position() == Position(place=2, phase=None, step=3)


def test_runs_that_ended_in_any_attempt_of_a_running_job_are_counted() -> None:
    world = World(random.Random(0), run_count=3)
    world.start("t1")
    (row,) = world.lab.attempt_rows.values()
    assert ended_in(world.job, list_files(row, world.lab.bucket)) == frozenset()
    first, second, _ = (run.run_id for run in world.job.runs)
    for name, run_id in (("job-a1", first), ("job-a2", second)):
        written = written_job(name)
        written.carry(run_id, 20)
        world.lab.objects.contents |= {f"{world.prefix}{key}": text for key, text in written.files.items()}
    assert ended_in(world.job, list_files(row, world.lab.bucket)) == {first, second}
