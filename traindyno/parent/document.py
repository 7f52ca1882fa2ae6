"""The job's document: which runs the parent starts, in which order, and how much time they have."""

import json
from pathlib import Path
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple, Type, Union

from traindyno.core.jobs.journal_format import DOCUMENT_CHANNEL, DOCUMENT_VARIABLE, FORMAT_VERSION, PROCESS, TORCHRUN
from traindyno.core.search.largest_batch import BEST, LARGEST

LAUNCHERS = (PROCESS, TORCHRUN)
LOCAL_GPU = "local.gpu"
GRACE_SECONDS = 30.0
# A host is silent while a full disk cache is written, or a large cache of the run removed.
LEASE_SECONDS = 300.0
DEVICE_SECONDS = 60.0
NUMBER = (int, float)
Kinds = Union[Type[Any], Tuple[Type[Any], ...]]


class DocumentRefused(Exception):
    """The job's document is absent, or says something that this parent does not know."""


class BatchOrder(NamedTuple):
    """How a run's batch is searched. ``path``: of the batch in its hyperparameters. ``first``: what is probed first;
    each batch is a multiple of ``step``. ``choice``: ``largest`` or ``best``. ``possible``: the only batches, in order;
    None: all of them.
    """

    choice: str
    first: int
    step: int
    path: Tuple[str, ...]
    possible: Optional[Tuple[int, ...]] = None


class RunOrder(NamedTuple):
    """``channels``: the run's channel → the job's channel that has its files. ``batch``: None unless it is searched."""

    run_id: str
    launcher: str
    processes_per_host: int
    arguments: Tuple[str, ...]
    hyperparameters: Dict[str, Any]
    environment: Dict[str, str]
    channels: Dict[str, str]
    batch: Optional[BatchOrder] = None


class JobOrder(NamedTuple):
    """``grace_seconds``: from SIGTERM to SIGKILL. ``lease_seconds``: a host that is silent for so long is lost.
    ``device_seconds``: for so long a run waits for the memory of the devices. ``inherited``: variables of the job that
    are the runs' own too. ``race_samples``: a run that would need much longer for so many samples than an earlier one
    is ended; None: every run goes on to its end. ``again``: further runs of the contenders among them, by the ids of
    their cells' first runs. ``warm_up_steps``: of a throw-away run before the first one.
    ``cut_off``: earlier jobs that the service ended at their time limit: they did not die of their run in progress.
    """

    job_id: str
    program: str
    instance_type: str
    max_job_seconds: float
    max_run_seconds: Optional[float]
    ending_seconds: float
    grace_seconds: float
    lease_seconds: float
    runs: Tuple[RunOrder, ...]
    device_seconds: float = DEVICE_SECONDS
    inherited: Tuple[str, ...] = ()
    race_samples: Optional[float] = None
    warm_up_steps: int = 0
    cut_off: Tuple[str, ...] = ()
    again: Tuple[Tuple[str, RunOrder], ...] = ()


def find_document(environment: Mapping[str, str]) -> Path:
    """A path, or the name of a file in the channel of documents."""
    named = environment.get(DOCUMENT_VARIABLE)
    if not named:
        raise DocumentRefused("the environment has no {}; expected the job's document".format(DOCUMENT_VARIABLE))
    channel = environment.get("SM_CHANNEL_{}".format(DOCUMENT_CHANNEL.upper()), "")
    return Path(channel) / named


def read_document(path: Path) -> JobOrder:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DocumentRefused("the job's document {} is not readable: {}".format(path, error)) from error
    try:
        return _job(_typed(document, "the document", dict))
    except DocumentRefused as error:
        raise DocumentRefused("the job's document {}: {}".format(path, error)) from error


def with_own_devices(job: JobOrder, environment: Mapping[str, str]) -> JobOrder:
    """Each GPU of this machine gets a process, as in a job of one run: the lab does not know how many there are."""
    count = environment.get("SM_NUM_GPUS", "")
    if job.instance_type != LOCAL_GPU or not count.isdigit() or int(count) < 1:
        return job

    def with_all(run: RunOrder) -> RunOrder:
        return run._replace(processes_per_host=int(count)) if run.launcher == TORCHRUN else run

    again = tuple((first, with_all(run)) for first, run in job.again)
    return job._replace(runs=tuple(map(with_all, job.runs)), again=again)


def _job(document: Dict[str, Any]) -> JobOrder:
    version = _field(document, "", "version", int)
    if version != FORMAT_VERSION:
        raise DocumentRefused("version is {!r}, expected {}".format(version, FORMAT_VERSION))
    runs = tuple(_run(run, "runs[{}]".format(place)) for place, run in enumerate(_field(document, "", "runs", list)))
    again = tuple(
        (_field(_typed(run, "again", dict), "again", "first", str), _run(run, "again[{}]".format(place)))
        for place, run in enumerate(_typed(document.get("again", []), "again", list))
    )
    if len({run.run_id for run in (*runs, *(run for _, run in again))}) != len(runs) + len(again):
        raise DocumentRefused("two runs have the same run_id")
    limit, race = document.get("max_run_seconds"), document.get("race")
    return JobOrder(
        job_id=_field(document, "", "job_id", str),
        program=_field(document, "", "program", str),
        instance_type=_field(document, "", "instance_type", str),
        max_job_seconds=float(_field(document, "", "max_job_seconds", NUMBER)),
        max_run_seconds=None if limit is None else float(_typed(limit, "max_run_seconds", NUMBER)),
        ending_seconds=float(_field(document, "", "ending_seconds", NUMBER)),
        grace_seconds=float(_typed(document.get("grace_seconds", GRACE_SECONDS), "grace_seconds", NUMBER)),
        lease_seconds=float(_typed(document.get("lease_seconds", LEASE_SECONDS), "lease_seconds", NUMBER)),
        runs=runs,
        again=again,
        inherited=_names_of(document, "inherited"),
        cut_off=_names_of(document, "cut_off"),
        device_seconds=float(_typed(document.get("device_seconds", DEVICE_SECONDS), "device_seconds", NUMBER)),
        race_samples=None if race is None else float(_field(_typed(race, "race", dict), "race", "samples", NUMBER)),
        warm_up_steps=_typed(document.get("warm_up_steps", 0), "warm_up_steps", int),
    )


def _run(run: Any, place: str) -> RunOrder:
    given = _typed(run, place, dict)
    launcher = _field(given, place, "launcher", str)
    if launcher not in LAUNCHERS:
        raise DocumentRefused("{}.launcher is {!r}, expected {}".format(place, launcher, " or ".join(LAUNCHERS)))
    arguments = _field(given, place, "arguments", list)
    run_id = _field(given, place, "run_id", str)
    if not run_id or "/" in run_id or run_id.startswith("."):
        raise DocumentRefused("{}.run_id is {!r}, expected the name of a folder".format(place, run_id))
    return RunOrder(
        run_id=run_id,
        launcher=launcher,
        processes_per_host=_field(given, place, "processes_per_host", int),
        arguments=tuple(_typed(each, "{}.arguments".format(place), str) for each in arguments),
        hyperparameters=_field(given, place, "hyperparameters", dict),
        environment=_texts(given, place, "environment"),
        channels=_texts(given, place, "channels"),
        batch=_batch(given, "{}.batch".format(place)),
    )


def _batch(given: Dict[str, Any], place: str) -> Optional[BatchOrder]:
    if given.get("batch") is None:
        return None
    found = _typed(given["batch"], place, dict)
    choice, path = _field(found, place, "choice", str), _names_of(found, "path")
    if choice not in (LARGEST, BEST) or not path:
        raise DocumentRefused("{} is {!r}, expected a choice, {} or {}, and a path".format(place, found, LARGEST, BEST))
    first, step = _field(found, place, "first", int), _field(found, place, "step", int)
    if first < 1 or step < 1:
        raise DocumentRefused("{} is {!r}, expected numbers of at least 1".format(place, found))
    return BatchOrder(choice=choice, first=first, step=step, path=path, possible=_possible(found, place))


def _possible(found: Dict[str, Any], place: str) -> Optional[Tuple[int, ...]]:
    if found.get("possible") is None:
        return None
    batches = _field(found, place, "possible", list)
    if not batches or not all(isinstance(each, int) and each >= 1 for each in batches):
        raise DocumentRefused("{}.possible is {!r}, expected numbers of at least 1".format(place, batches))
    return tuple(sorted(batches))


def _texts(given: Dict[str, Any], place: str, name: str) -> Dict[str, str]:
    found: Dict[str, Any] = _field(given, place, name, dict)
    return {key: _typed(value, "{}.{}.{}".format(place, name, key), str) for key, value in found.items()}


def _field(document: Dict[str, Any], place: str, name: str, kinds: Kinds) -> Any:
    where = "{}.{}".format(place, name) if place else name
    if name not in document:
        raise DocumentRefused("{} is absent, expected {}".format(where, _names(kinds)))
    return _typed(document[name], where, kinds)


def _names_of(document: Dict[str, Any], name: str) -> Tuple[str, ...]:
    return tuple(_typed(each, name, str) for each in _typed(document.get(name, []), name, list))


def _typed(value: Any, where: str, kinds: Kinds) -> Any:
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise DocumentRefused("{} is {!r}, expected {}".format(where, value, _names(kinds)))
    return value


def _names(kinds: Kinds) -> str:
    return " or ".join(kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
