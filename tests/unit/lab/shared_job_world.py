"""A lab in memory, a shared job's containers and its task in the state machine, with faults that a
seed draws.
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Any

from botocore.exceptions import ClientError

from tests.unit.core.jobs.written_jobs import WrittenJob, described, written_job
from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, UNHURRIED, MemoryExecutions, make_lab
from tests.unit.step_log_samples import START, log_lines
from tests.unit.throttled_calls import METHODS, NAMED
from traindyno.core.errors import NextAttempt, RunsLeft, ServiceFault, Throttled
from traindyno.core.jobs.job import Job
from traindyno.core.jobs.journal import JobJournal, ended_runs, read_job_journal
from traindyno.core.jobs.journal_format import ENDED, OUTPACED
from traindyno.core.planning.jobs import runs_again
from traindyno.core.s3_keys import checkpoints_prefix, suite_key
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.lab.finish_run import finish_run
from traindyno.lab.reconcile_runs import sweep
from traindyno.lab.record_run import record_runs, refused_outcome
from traindyno.lab.stop_runs import stop_runs
from traindyno.lab.submit_run import submit_run
from traindyno.lab.use_case import use_case

JOB_ID = "j0123abcd-1"
LATER = NOW + 2000
NEXT_ATTEMPTS = {error.__name__ for error in NextAttempt.__subclasses__()}
FAULT = "InternalServerError: We encountered an internal error. Please try again."
SHORTAGE = "CapacityError: Unable to provision requested ML compute capacity."
CRASH = 'AlgorithmError: ExecuteUserScriptError: ExitCode 1 ErrorMessage "KeyError"'


class Killed(BaseException):
    """A function is killed, as at its time limit or with its machine: none of its handlers runs."""


@dataclass
class World:
    """A lab with one shared job, whose faults have these probabilities.

    A call is throttled, or the function killed before or after it, at ``rate``. ``loses_files``: a
    file of a job reaches S3 late or never. ``damages``: it is cut off there. ``times_out``: the
    task gives up before the next thing happens. ``stops``: the execution is stopped before it.
    ``failing``: a run exits with 1. ``again``: the parent carries a further run. ``changes`` are of
    the suite's document, ``outpaced`` are the runs that can't win.
    """

    source: random.Random
    run_count: int = 3
    hosts: int = 1
    max_attempts: int = 3
    rate: float = 0.0
    loses_files: float = 0.0
    damages: float = 0.0
    times_out: float = 0.0
    stops: float = 0.0
    failing: float = 0.2
    again: float = 0.0
    changes: Mapping[str, Any] = field(default_factory=dict)
    outpaced: tuple[str, ...] = ()
    tokens: int = 0
    is_stopped: bool = False

    def __post_init__(self) -> None:
        limits = {
            "max_usd": 500,
            "max_hours": 8,
            "max_job_seconds": 1800,
            "max_attempts": self.max_attempts,
        }
        training = {
            "instance": "ml.g5.xlarge",
            "precision": "bf16",
            "strategy": "ddp",
            "instance_count": self.hosts,
        }
        alone: dict[str, Any] = {} if self.hosts == 1 else {"training": training}
        alone |= {"search": "race"} if self.again else {}
        self.lab, runs = make_lab(
            limits=limits, measurement={"trials": 4}, **{**alone, **self.changes}
        )
        carried = tuple(replace(run, job_id=JOB_ID) for run in runs[: self.run_count])
        self.job = Job(execution_id=EXECUTION, job_id=JOB_ID, runs=carried)
        suite = self.lab.bucket.read_as(suite_key(EXECUTION), read_stored_suite)
        self.further = [run.run_id for run in runs_again(self.job, suite)] if self.again else []
        self.prefix = checkpoints_prefix(EXECUTION, JOB_ID)
        self.executions = MemoryExecutions()
        self.executions.start(EXECUTION, {})
        self.late: dict[str, bytes] = {}
        self._is_calm = True
        for name in sorted(METHODS.keys() & vars(self.lab).keys()):
            service = getattr(self.lab, name)
            for method in METHODS[name]:
                setattr(service, method, self._shaken(method, getattr(service, method)))

    def run_to_end(self) -> None:
        """From the item of the state machine to the last sweep."""
        end = self._submit()
        if end is not None:
            self.late.clear()
            self._tempt()
            while not self.is_stopped and not self._called(partial(self.record, end)):
                self._tempt()
            is_whole = "job_name" in end and not self.is_stopped and not self.rate
            assert not is_whole or not self.open_jobs, "what is recorded is not closed"
        self._settle()

    def record(self, end: Mapping[str, str]) -> None:
        record_runs(
            self.job,
            final=refused_outcome(end),
            services=self.lab.services,
            may_go_on=lambda: self.source.random() >= self.rate,
        )

    def _submit(self) -> Mapping[str, str] | None:
        """What SubmitRun hands on; None if the execution was stopped before."""
        while not self.is_stopped:
            self._tempt()
            self.tokens += 1
            token = f"token-{self.tokens}"
            is_done = self._called(partial(self.start, token))
            if not is_done:
                self.lab.answers.gone.add(token)  # the task failed with its function
            name, text = self._answer(token) if is_done else (None, "")
            if name == "success":
                return dict(json.loads(text))
            if name is not None and name not in NEXT_ATTEMPTS:
                return {"Error": name, "Cause": text}
        return None

    def start(self, token: str) -> None:
        before = len(self.lab.jobs.jobs)
        is_left = bool(self.left)
        try:
            submit_run(
                self.job,
                token,
                services=self.lab.services,
                settings=SETTINGS,
                now=NOW,
                sleep=lambda _: None,
                clock=lambda: NOW,
            )
        finally:
            is_new = len(self.lab.jobs.jobs) > before
            assert is_left or not is_new, "a job was started, and no run was left"
        waits = is_new and token not in {given for given, _, _ in self.lab.answers.given}
        assert not waits or len(self.open_jobs) == 1, "the attempt before is still open"

    def _answer(self, token: str) -> tuple[str | None, str]:
        """Things happen in any order until the task has its answer, or the execution is stopped."""
        for _ in range(200):
            answer = next(
                ((name, text) for given, name, text in self.lab.answers.given if given == token),
                None,
            )
            if answer or self.is_stopped:
                return answer or (None, "")
            if self.source.random() < self.times_out:
                self.lab.answers.gone.add(token)
                return "States.Timeout", ""
            self._move()
        raise AssertionError(f"{token} waits for nothing: {self.lab.attempt_rows}")

    def _tempt(self) -> None:
        if self.source.random() < self.stops and not self.is_stopped:
            self.stop()

    @property
    def open_jobs(self) -> list[str]:
        return [name for name, row in self.lab.attempt_rows.items() if row.is_open]

    def _move(self) -> None:
        self._tempt()
        arrived = [key for key in self.late if self.source.random() < 0.3]
        self.lab.objects.contents |= {key: self.late.pop(key) for key in arrived}
        open_jobs = [
            name
            for name, job in self.lab.jobs.jobs.items()
            if job["TrainingJobStatus"] == "InProgress"
        ]
        events = [name for name in self.lab.jobs.jobs if name not in open_jobs]
        moves: list[Callable[[], object]] = [self.sweep]
        if open_jobs:
            moves += [lambda: Container(self, open_jobs[0]).live()] * 3
        if events:  # repeated, late, or lost for ever
            moves += [lambda: self._called(lambda: self.finish(self.source.choice(events)))] * 3
        self.source.choice(moves)()

    def finish(self, name: str) -> None:
        finish_run(name, services=self.lab.services, now=LATER)

    def sweep(self) -> bool:
        return self._called(
            lambda: sweep(
                lab="traindyno",
                services=self.lab.services,
                executions=self.executions,
                now=LATER,
                pace=UNHURRIED,
            )
        )

    def stop(self) -> None:
        self.is_stopped = True
        self.late.clear()
        self.executions.stop(EXECUTION, reason="traindyno stop")
        self.lab.answers.gone |= {f"token-{number}" for number in range(self.tokens + 1)}
        self._again(lambda: stop_runs(EXECUTION, services=self.lab.services, pace=UNHURRIED))

    def _settle(self) -> None:
        """The schedule sweeps on. Nothing is shaken, so that the end is reached."""
        self.rate = 0.0
        if not self.is_stopped:
            self.executions.end(EXECUTION, "SUCCEEDED")
        for _ in range(4):
            for name, job in list(self.lab.jobs.jobs.items()):
                if job["TrainingJobStatus"] in ("InProgress", "Stopping"):
                    Container(self, name).live()
            self.sweep()

    def _again(self, call: Callable[[], object]) -> None:
        while not self._called(call):
            pass

    def _called(self, call: Callable[[], object]) -> bool:
        """False if the function failed."""
        self._is_calm = False
        try:
            with use_case("test"):
                call()
        except (Killed, Throttled, ServiceFault, RunsLeft):
            return False
        finally:
            self._is_calm = True
        return True

    def _shaken(self, method: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def shaken(*arguments: Any, **named: Any) -> Any:
            if self._is_calm:
                return call(*arguments, **named)
            self._is_calm = True  # a double may use its own methods
            try:
                lot = self.source.random() / self.rate if self.rate else 1.0
                if lot < 1 / 3:
                    raise Killed
                if lot < 2 / 3:
                    self._throttle(method)
                answer = call(*arguments, **named)
                if lot < 1:
                    raise Killed
                return answer
            finally:
                self._is_calm = False

        return shaken

    def _throttle(self, method: str) -> None:
        if method in NAMED:
            raise Throttled(f"{method}: Rate exceeded")
        error = {"Code": "ThrottlingException", "Message": "Rate exceeded"}
        raise ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}}, method)  # type: ignore[typeddict-item]

    @property
    def files(self) -> dict[str, bytes]:
        """Files below the job's checkpoint prefix."""
        contents = self.lab.objects.contents
        return {
            key.removeprefix(self.prefix): text
            for key, text in contents.items()
            if key.startswith(self.prefix)
        }

    @property
    def ended(self) -> frozenset[str]:
        return ended_runs(self.files, host_count=self.hosts)

    def journal(self, job_name: str) -> JobJournal:
        return read_job_journal(self.files, job_name=job_name, host_count=self.hosts)

    @property
    def left(self) -> list[str]:
        return [run.run_id for run in self.job.runs if run.run_id not in self.ended]


@dataclass
class Container:
    """One training job: its parent carries the runs that have not ended, until all have or
    something ends it.
    """

    world: World
    name: str

    def live(self) -> None:
        world = self.world
        source = self.world.source
        job = world.lab.jobs.jobs[self.name]
        is_stopped = job["TrainingJobStatus"] == "Stopping"
        if not is_stopped and source.random() < 0.15:
            return self._end(
                "Failed", reason=source.choice([SHORTAGE, FAULT, CRASH]), billable_seconds=0
            )
        left = world.left
        whole = source.randint(0, len(left)) if source.random() < 0.6 or is_stopped else len(left)
        written = self.write(left, whole)
        for key in written:
            if source.random() < world.damages:
                written[key] = written[key][: source.randrange(len(written[key]))]
        lost = [key for key in written if source.random() < world.loses_files]
        world.late |= {
            f"{world.prefix}{key}": written[key] for key in lost if source.random() < 0.7
        }
        kept = {f"{world.prefix}{key}": text for key, text in written.items() if key not in lost}
        world.lab.objects.contents |= kept
        seconds = source.randint(0, 900)
        if is_stopped:
            return self._end("Stopped", billable_seconds=seconds)
        if whole == len(left):
            return self._end("Completed", billable_seconds=seconds)
        status, changes = source.choice(
            [
                ("Completed", {}),
                ("Failed", {"reason": FAULT}),
                ("Failed", {"reason": CRASH}),
                ("Stopped", {"secondary": "MaxRuntimeExceeded"}),
                ("Stopped", {"secondary": "MaxWaitTimeExceeded"}),
            ]
        )
        return self._end(status, billable_seconds=seconds, **changes)

    def write(self, left: list[str], whole: int) -> dict[str, bytes]:
        """What the parents leave if they end ``whole`` runs of those that are left, and die in the
        next one: some of several hosts may have written its end.
        """
        written = written_job(self.name, hosts=self.world.hosts)
        for run_id in left[:whole]:
            exit_code = 0 if self.world.source.random() >= self.world.failing else 1
            self._carry(written, run_id, exit_code, written.hosts, first=left[0])
        if whole == len(left):
            for run_id in self.world.further:
                if run_id not in self.world.ended and self.world.source.random() < self.world.again:
                    self._carry(written, run_id, 0, written.hosts, first=left[0])
        else:
            done = self.world.source.randrange(self.world.hosts)
            if done:
                self._carry(written, left[whole], 0, written.hosts[:done], first=left[0])
            else:
                written.begin(left[whole])
        return written.files

    def _carry(
        self, written: WrittenJob, run_id: str, exit_code: int, hosts: Sequence[str], *, first: str
    ) -> None:
        """Writes a run on the hosts that write their file of the end.

        Each has one process. ``first`` is the run that is not outpaced.
        """
        bound = {"by": first, "steps": 5, "least_ratio": 1.5}
        outpaced = (
            {"reason": OUTPACED, "exit_code": None, "bound": bound}
            if run_id in self.world.outpaced
            else {}
        )
        start = START + 2000 * list(self.world.lab.jobs.jobs).index(self.name)
        written.carry(run_id, 20, **{"exit_code": exit_code, **outpaced})
        for rank, host in enumerate(written.hosts):
            del written.files[f"{run_id}/step_log/{self.name}/{host}.jsonl"]
            log = f"{run_id}/step_log/{self.name}/rank-{rank:05d}.{round(1000 * start)}.jsonl"
            lines = log_lines(
                rank=rank, world_size=len(written.hosts), step_seconds=[0.5] * 6, start=start
            )
            written.files[log] = "".join(lines).encode()
            end = f"{run_id}/{ENDED}/{self.name}/{host}.json"
            document = {
                **json.loads(written.files.pop(end)),
                "files": {log: described(written.files[log])},
            }
            if host in hosts:
                written.files[end] = json.dumps(document).encode()

    def _end(self, status: str, **changes: Any) -> None:
        self.world.lab.jobs.end(self.name, status, **changes)
