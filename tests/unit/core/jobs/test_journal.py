"""What a shared job's parents wrote is read, whatever is damaged, late or missing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tests.unit.core.jobs.damages import damaged
from tests.unit.core.jobs.written_jobs import START, WrittenJob, described, written_job
from traindyno.core.jobs.journal import JobJournal, ended_runs, read_job_journal

RUNS = ("a-t1", "b-t1", "c-t1")
HOSTS = 2


def whole_job() -> WrittenJob:
    job = written_job(hosts=HOSTS)
    job.clock = 5.0
    for seconds, run_id in enumerate(RUNS, start=20):
        job.carry(run_id, seconds)
        job.clock += 0.5
    job.write("parent_ended", reason=None)
    return job


def read(files: dict[str, bytes], **changes: object) -> JobJournal:
    return read_job_journal(files, **{"job_name": "job-a1", "host_count": HOSTS, **changes})  # type: ignore[arg-type]


def test_a_whole_job_by_hand() -> None:
    journal = read(whole_job().files)
    assert journal.began == RUNS
    assert [journal.ends[run_id].own_seconds for run_id in RUNS] == [20, 21, 22]
    # 20 + 0.5 + 21 + 0.5 + 22 after a start of 5 s, and 0.5 s to the parent's end
    assert (journal.start_seconds, journal.runs_seconds, journal.end_seconds) == (5, 64, 0.5)
    assert journal.ends["b-t1"].ended_at == START + 46.5
    assert (journal.started_at, journal.left, journal.interrupted) == (START, {}, ())


def test_the_bytes_of_unread_logs_are_enough() -> None:
    files = whole_job().files
    small = {key: text for key, text in files.items() if "step_log" not in key}
    sizes = {key: len(text) for key, text in files.items()}
    assert read(small, sizes=sizes).ends == read(files).ends
    assert read(small).ends == {}
    assert ended_runs(small, host_count=HOSTS, sizes=sizes) == set(RUNS)
    sizes["b-t1/step_log/job-a1/algo-2.jsonl"] -= 1
    assert ended_runs(small, host_count=HOSTS, sizes=sizes) == {"a-t1", "c-t1"}


@pytest.mark.parametrize("part", ["ended", "step_log"])
@pytest.mark.parametrize("host", ["algo-1", "algo-2"])
def test_a_run_has_ended_only_if_all_of_every_host_is_there(part: str, host: str) -> None:
    whole = whole_job().files
    (key,) = (key for key in whole if key.startswith(f"b-t1/{part}/") and host in key)
    for contents in (None, whole[key][:-20], whole[key].replace(b"b-t1", b"b-t2"), b""):
        files = (
            {**whole, key: contents}
            if contents is not None
            else {k: v for k, v in whole.items() if k != key}
        )
        assert ended_runs(files, host_count=HOSTS) == {"a-t1", "c-t1"}
        assert set(read(files).ends) == {"a-t1", "c-t1"}


def test_the_place_of_a_failure_decides_the_end_of_its_run() -> None:
    job = written_job(hosts=HOSTS)
    job.carry(
        "a-t1",
        10,
        exit_code=1,
        failed_host="algo-2",
        failure="stopped by the other host",
        oom_kills=1,
    )
    key = "a-t1/ended/job-a1/algo-2.json"
    job.files[key] = json.dumps(
        {**json.loads(job.files[key]), "failure": "CUDA out of memory"}
    ).encode()
    end = read(job.files).ends["a-t1"]
    assert (end.failure, end.exit_code, end.oom_kills) == ("CUDA out of memory", 1, 2)


def test_ends_of_another_attempt_count_for_the_run_and_not_for_the_job() -> None:
    job = whole_job()
    later = written_job("job-a2", hosts=HOSTS)
    later.carry("d-t1", 3)
    files = {**job.files, **later.files}
    assert ended_runs(files, host_count=HOSTS) == {*RUNS, "d-t1"}
    assert set(read(files).ends) == set(RUNS)
    assert set(read(files, job_name="job-a2").ends) == {"d-t1"}


def test_an_interrupted_parent_goes_on_in_the_same_files() -> None:
    job = written_job(hosts=HOSTS)
    job.carry("a-t1", 10)
    job.begin("b-t1")
    job.clock += 300
    job.start()
    job.write("run_skipped", run_id="a-t1")
    job.carry("b-t1", 20)
    job.write("parent_ended")
    journal = read(job.files)
    assert (journal.began, journal.interrupted, set(journal.ends)) == (
        RUNS[:2],
        ("b-t1",),
        set(RUNS[:2]),
    )
    assert journal.runs_seconds is None


def test_a_run_begun_and_left_has_the_time_until_then() -> None:
    job = written_job(hosts=HOSTS)
    job.carry("a-t1", 10)
    job.begin("b-t1")
    job.clock += 7
    job.write("run_left", run_id="b-t1", reason="deadline", began=True)
    job.write("run_left", run_id="c-t1", reason="deadline", began=False)
    journal = read(job.files)
    assert journal.left == {"b-t1": "deadline", "c-t1": "deadline"}
    assert journal.spent_seconds == {"a-t1": 10, "b-t1": 7}
    assert journal.runs_seconds == 17


@examples(300)
@given(st.data())
def test_damaged_files_never_raise_and_never_end_another_run(data: st.DataObject) -> None:
    whole = whole_job().files
    missing = data.draw(st.sets(st.sampled_from(sorted(whole)), max_size=3))
    files = {key: text for key, text in whole.items() if key not in missing}
    for key in data.draw(st.lists(st.sampled_from(sorted(files)), max_size=3, unique=True)):
        files[key] = data.draw(damaged(files[key]))
    files |= {
        "": b"",
        "/": b"x",
        "journal/job-a1/x/algo-9.jsonl": b"{",
        "d-t1/ended/job-a1/x": b"{}",
    }
    journal = read(files)
    for run_id in journal.ends:
        logs = [f"{run_id}/step_log/job-a1/algo-{number}.jsonl" for number in (1, 2)]
        assert [described(files[key]) for key in logs] == [described(whole[key]) for key in logs]
    "".join(end.failure or end.reason for end in journal.ends.values()).encode()
    assert all(
        seconds >= 0 for seconds in (*journal.spent_seconds.values(), journal.start_seconds or 0)
    )
