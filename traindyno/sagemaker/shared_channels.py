"""The input channels of a shared job: those of all its runs, under names that are distinct where their data are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from traindyno.core.errors import TraindynoError
from traindyno.core.jobs.journal_format import DOCUMENT_CHANNEL
from traindyno.core.suite.checks.job_limits_check import SHARED_CHANNELS
from traindyno.core.suite.suite import Run, Suite
from traindyno.sagemaker.channels import run_channels
from traindyno.sagemaker.launcher import CODE_CHANNEL


class TooManyChannels(TraindynoError):
    """The runs of a job need more channels than SageMaker gives to one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedChannels:
    """``entries`` of InputDataConfig; ``names``: run id → the run's channel → the job's channel that has its data."""

    entries: tuple[Mapping[str, Any], ...]
    names: Mapping[str, Mapping[str, str]]


def shared_channels(runs: Sequence[tuple[Run, Suite]]) -> SharedChannels:
    """``runs`` with the suites as their own jobs would have them. A channel keeps its name if no other run needs other
    data under it.
    """
    wanted = {run.run_id: run_channels(run, suite.workload) for run, suite in runs}
    taken = {DOCUMENT_CHANNEL, CODE_CHANNEL}
    reserved = taken | {entry["ChannelName"] for entries in wanted.values() for entry in entries}
    made: list[dict[str, Any]] = []
    names: dict[str, dict[str, str]] = {}
    job_names: dict[str, str] = {}
    for run_id, entries in wanted.items():
        names[run_id] = {}
        for entry in entries:
            name, content = entry["ChannelName"], repr(sorted(entry.items()))
            if content not in job_names:
                job_names[content] = name if name not in taken else _free_name(name, reserved)
                taken.add(job_names[content])
                reserved.add(job_names[content])
                made.append({**entry, "ChannelName": job_names[content]})
            names[run_id][name] = job_names[content]
    if len(made) > SHARED_CHANNELS:
        raise TooManyChannels(
            f"the runs {', '.join(wanted)} need {len(made)} channels together, expected at most {SHARED_CHANNELS}: "
            "measurement.jobs: separate gives each run a job of its own"
        )
    return SharedChannels(entries=tuple(made), names=names)


def _free_name(name: str, reserved: set[str]) -> str:
    return next(found for number in count(2) if (found := f"{name}-{number}") not in reserved)
