"""Reads the files of a step log: strict about each line, tolerant of a truncated log."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from traindyno.core.errors import TraindynoError
from traindyno.core.step_log.content import ProcessLog, Session, StepLog
from traindyno.core.step_log.fields import LineInvalid
from traindyno.core.step_log.steps import MOST_STEPS
from traindyno.core.step_log.unknown_work import describe_lost, describe_unknown_work

__all__ = ["StepLog", "StepLogInvalid", "read_step_log"]

LAUNCH_SECONDS = 10.0  # the processes of one launch start within this time
LONGEST_LINE = 1_000_000
_FILE_NAME = re.compile(
    r"(?:(?P<job_name>[^/]+)/)?rank-(?P<rank>\d{1,5})\.(?P<start>\d{1,16})\.jsonl$"
)


class StepLogInvalid(TraindynoError):
    """A file is not a step log.

    The message names the file, the line and what was expected there.
    """


def read_step_log(files: Mapping[str, Iterable[str]]) -> StepLog:
    """Parse the files of one run, by name (``<job name>/rank-00003.<start ms>.jsonl``; leading
    folders are ignored).
    """
    problems: list[str] = []
    processes = [_read_process(file, lines, problems) for file, lines in files.items()]
    sessions = tuple(_sessions(processes, problems))
    problems += describe_lost(sessions)
    return StepLog(sessions=sessions, problems=tuple(problems))


def _read_process(file: str, lines: Iterable[str], problems: list[str]) -> ProcessLog:
    name = _FILE_NAME.search(file)
    if name is None:
        raise StepLogInvalid(
            f"got {file}, expected a name like <job name>/rank-00003.1700000000000.jsonl"
        )
    rank = int(name["rank"])
    read = ProcessLog(job_name=name["job_name"] or "", rank=rank, start=int(name["start"]) / 1000)
    for number, line in _parsed_lines(file, lines, problems):
        try:
            read.add(line)
        except LineInvalid as error:
            raise StepLogInvalid(f"{file}:{number}: {error}") from error
    if read.environment is not None and read.environment.rank != rank:
        raise StepLogInvalid(
            f"{file}: the name says rank {rank}, the environment line rank {read.environment.rank}"
        )
    if read.steps.is_full:
        problems.append(f"{file}: more than {MOST_STEPS:,} steps; the later ones were left out")
    if not read.is_ended:
        problems.append(f"{file}: no end line, the log ends after {read.step_count} steps")
    return read


def _parsed_lines(
    file: str, lines: Iterable[str], problems: list[str]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Each line as an object.

    Only the last one may be broken: a process that is killed leaves a partial line.
    """
    broken: tuple[int, str] | None = None
    for number, text in enumerate(lines, start=1):
        if not text.strip(" \t\r\n\0"):
            continue
        if broken is not None:
            raise _no_object(file, *broken)
        if len(text) > LONGEST_LINE:
            raise StepLogInvalid(
                f"{file}:{number}: got a line of {len(text)} characters, expected {LONGEST_LINE} "
                "at most"
            )
        try:
            line = _parsed(text)
        except json.JSONDecodeError:
            broken = (number, text)
            continue
        except (ValueError, RecursionError) as error:
            raise StepLogInvalid(
                f"{file}:{number}: got {text[:80]!r}, with an integer of thousands of digits or "
                "thousands of levels of lists and objects within each other; expected values that "
                "a program can store"
            ) from error
        if not isinstance(line, dict) or "kind" not in line:
            raise _no_object(file, number, text)
        yield number, line
    if broken is not None:
        if broken[0] == 1:
            raise _no_object(file, *broken)
        problems.append(
            f"{file}:{broken[0]}: the last line is truncated after {len(broken[1])} characters; "
            "left out"
        )


def _parsed(text: str) -> Any:
    """Half of a surrogate pair, which is no character and can't be stored, becomes a question
    mark.
    """
    value = json.loads(text)
    if "\\ud" in text.lower():
        value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    return value


def _no_object(file: str, number: int, text: str) -> StepLogInvalid:
    return StepLogInvalid(f"{file}:{number}: got {text[:80]!r}, expected a JSON object with a kind")


def _sessions(processes: list[ProcessLog], problems: list[str]) -> Iterator[Session]:
    """Processes in order of start; one that cannot have run with those before it opens the next
    session.
    """
    together: dict[int, ProcessLog] = {}
    for process in sorted(processes, key=lambda process: (process.start, process.rank)):
        if together and not _run_together(process, together):
            yield _session(together, problems)
            together = {}
        together[process.rank] = process
    if together:
        yield _session(together, problems)


def _run_together(process: ProcessLog, others: Mapping[int, ProcessLog]) -> bool:
    """Whether it is another rank of the same job, launched with the others or while one of them was
    still logging.

    A job that restarts may have lost a rank's first log: the rank alone does not identify the
    launch. Where the logs name it, those of two launches are apart however soon the job started
    again.
    """
    if process.rank in others or process.job_name != next(iter(others.values())).job_name:
        return False
    if len({lines.launch for lines in (process, *others.values())} - {None}) > 1:
        return False
    launched = min(other.start for other in others.values())
    last_logged = max(other.last_logged for other in others.values())
    return process.start <= max(last_logged, launched + LAUNCH_SECONDS)


def _session(together: Mapping[int, ProcessLog], problems: list[str]) -> Session:
    processes = tuple(together[rank] for rank in sorted(together))
    sizes = {process.environment.world_size for process in processes if process.environment}
    if len(sizes) > 1:
        problems.append(
            f"job {processes[0].job_name}: its processes name different world sizes: "
            f"{sorted(sizes)}"
        )
    session = Session(
        job_name=processes[0].job_name,
        world_size=max((*sizes, processes[-1].rank + 1)),
        processes=processes,
    )
    if session.missing_ranks:
        problems.append(session.describe_missing_ranks())
    unlogged = describe_unknown_work(session)
    if unlogged is not None:
        problems.append(unlogged)
    return session
