"""Whatever the files of a step log hold, RecordRun stores an outcome, and JudgeSuite can read
it.
"""

import json
from collections.abc import Mapping
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.cpu_limit import cpu_limit
from tests.fuzz.mutations import damaged_documents, damaged_texts
from tests.properties import examples
from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, MemoryLab, no_sleep
from tests.unit.planned_lab import judge_execution, measure, planned, runs_of_item
from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.core.measurement.run_result import parse_run_result
from traindyno.core.s3_keys import result_key, step_log_prefix
from traindyno.core.step_log import line
from traindyno.lab.finish_run import finish_run
from traindyno.lab.plan_round import plan_next_round
from traindyno.lab.record_run import record_runs
from traindyno.lab.submit_run import submit_run

MOST_CPU_SECONDS = 10.0
PLACE = "@place@"
# Values as they are written: Python itself writes none of the long ones.
LITERALS = [
    "null",
    "true",
    "-1",
    "0",
    "1",
    "1.5",
    "-0.0",
    "1e-320",
    "1e15",
    "1e16",
    "1e60",
    "1e61",
    "1e308",
    "-1e308",
    "1e999",
    "NaN",
    "Infinity",
    '"nan"',
    '"-inf"',
    '"text"',
    '""',
    '"\\u0000"',
    '"\\ud800"',
    "[]",
    "{}",
    '{"a": "\\udfff"}',
    str(2**31),
    str(2**63),
    str(10**18),
    "1" + "0" * 400,
    "9" * 5000,
    "-" + "9" * 5000,
    "[" * 100_000,
    '{"a":' * 100_000,
    "[" * 900 + "]" * 900,
    '{"a":' * 60 + "1" + "}" * 60,
    '"' + "x" * 500_000 + '"',
    '{"' + "x" * 300_000 + '": 1}',
]
NAMES = [
    f"rank-{'9' * 400}.1700000000000.jsonl",
    "rank-99999999999.1700000000000.jsonl",
    f"rank-00000.{'9' * 400}.jsonl",
    "rank-00000.0.jsonl",
    "rank-٣.1700000000000.jsonl",
    "deep/er/rank-00000.1700000000000.jsonl",
    "rank-x.jsonl",
    ".jsonl",
]
Files = dict[str, list[str]]


def whole_logs() -> list[Files]:
    load = dict.fromkeys(
        ["cpu_seconds", "run_queue_seconds", "host_busy_seconds", "steal_seconds"], 1.0
    )
    before = [
        line.phase_line("load", START, START + 1, {"source": "train"}),
        line.model_line(START, 1000, 6000.0, "6 N"),
        line.host_load_line(begin=START, end=START + 5, host_cpu_count=4, **load),
    ]
    after = [
        line.phase_line(line.CHECKPOINT, START + 21, START + 22, {"step": 40, "bytes": 100}),
        line.evaluation_line(START + 23, 40, {"loss": 3.5, "accuracy": 0.5}),
    ]
    facts = {"torch": "2.13.0", "device": {"name": "cpu"}}
    one = log_lines(step_seconds=[0.5] * 40, tokens=64, before=before, after=after, facts=facts)
    two = {
        file_name(rank): log_lines(
            rank=rank, world_size=2, step_seconds=[0.5] * 30, before=before, facts=facts
        )
        for rank in range(2)
    }
    cut = log_lines(step_seconds=[0.5] * 20, before=before, is_ended=False)
    resumed = log_lines(step_seconds=[0.5] * 30, first_step=15, start=START + 100, after=after)
    diverged = log_lines(
        step_seconds=[0.5] * 8, after=[line.error_line(START + 9, "loss_diverged", "loss is nan")]
    )
    return [
        {file_name(): one},
        two,
        {file_name(): cut, file_name(start=START + 100): resumed},
        {file_name(): diverged},
    ]


@st.composite
def damaged_logs(draw: st.DrawFn, files: Files) -> Files:
    damaged = deepcopy(files)
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(list(damaged)))
        lines = damaged[name]
        match draw(st.integers(0, 9)):
            case 9:
                damaged[draw(st.sampled_from(NAMES))] = damaged.pop(name)
            case 8:
                damaged[name] = draw(damaged_texts("".join(lines))).splitlines(keepends=True)
            case _ if lines:
                at = draw(st.integers(0, len(lines) - 1))
                lines[at] = draw(damaged_lines(lines[at]))
    return damaged


@st.composite
def damaged_lines(draw: st.DrawFn, text: str) -> str:
    """The line as it is where it was damaged beyond Python's own reader and writer before."""
    try:
        parsed = json.loads(text)
        if draw(st.integers(0, 4)) == 4:
            return json.dumps(draw(damaged_documents(parsed))) + "\n"
        container = draw(
            st.sampled_from(
                [parsed, *(value for value in parsed.values() if isinstance(value, dict))]
            )
        )
        container[draw(st.sampled_from([*container, "extra"]))] = PLACE
        return json.dumps(parsed).replace(f'"{PLACE}"', draw(st.sampled_from(LITERALS))) + "\n"
    except (ValueError, RecursionError):
        return text


class EndedRun:
    """A lab of two cells: one run is measured, the other one's job has completed, and its log is to
    be read.
    """

    def __init__(self) -> None:
        self.lab = planned(4, measurement={"trials": 2, "jobs": "separate"})
        (lane,) = plan_next_round(EXECUTION, finished_rounds=0, bucket=self.lab.bucket)["lanes"]
        first, *others = self.lab.bucket.read_json(lane["packs"][0]["items_key"])
        for item in others:
            measure(self.lab, item)
        (self.run,) = runs_of_item(first)
        before = set(self.lab.jobs.jobs)
        submit_run(
            self.run,
            "token",
            services=self.lab.services,
            settings=SETTINGS,
            now=NOW,
            sleep=no_sleep,
        )
        (self.job_name,) = set(self.lab.jobs.jobs) - before
        self.lab.jobs.end(self.job_name, "Completed")
        finish_run(self.job_name, services=self.lab.services, now=NOW + 500)
        self._items = deepcopy(self.lab.table.items)
        self._contents = dict(self.lab.objects.contents)

    def with_log(self, files: Mapping[str, list[str]]) -> MemoryLab:
        """The lab as it was, with the files of this log."""
        self.lab.table.items = deepcopy(self._items)
        self.lab.objects.contents = dict(self._contents)
        prefix = step_log_prefix(EXECUTION, self.run.run_id, self.job_name)
        for name, lines in files.items():
            key = f"{prefix}{name.removeprefix('job-a1/')}"
            self.lab.objects.contents[key] = "".join(lines).encode("utf-8", errors="surrogatepass")
        return self.lab


@pytest.fixture(scope="module")
def ended() -> EndedRun:
    return EndedRun()


def test_a_damaged_step_log_leaves_an_outcome(ended: EndedRun) -> None:
    outcomes = set()

    @examples(300)
    @given(st.sampled_from(whole_logs()).flatmap(damaged_logs), st.integers(0, 9))
    def record(files: Files, dice: int) -> None:
        with cpu_limit(MOST_CPU_SECONDS):
            outcomes.add(_put_through(ended, files, is_judged=dice == 9))

    record()
    assert {"completed", "user_code_error"} <= outcomes, (
        "the damage did nothing, or left nothing to measure"
    )


def _put_through(ended: EndedRun, files: Files, *, is_judged: bool) -> str:
    """RecordRun, and JudgeSuite for some; the run's outcome."""
    lab = ended.with_log(files)
    record_runs(ended.run, final=None, services=lab.services)
    result = parse_run_result(
        json.loads(lab.objects.contents[result_key(EXECUTION, ended.run.run_id)])
    )
    summary = lab.summary(ended.run.run_id)
    assert summary.outcome is result.outcome
    assert (
        len(
            json.dumps(
                lab.table.items["execution#" + EXECUTION, f"run#{ended.run.run_id}"], default=str
            )
        )
        < 100_000
    )
    (summary.message or "").encode()
    if is_judged:
        judge_execution(lab)
    return result.outcome.value
