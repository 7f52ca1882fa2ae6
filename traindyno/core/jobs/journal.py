"""Reads what the parents of a shared job wrote: their journals, and how each run ended. Damaged files never raise."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from traindyno.core.jobs import journal_format
from traindyno.core.jobs.host_journal import merge_journals, read_host_journal
from traindyno.core.jobs.job_journal import JobJournal
from traindyno.core.jobs.run_end import HostEnd, RunEnd, agree, read_host_end

_DEPTH = 3  # of journals, as <journal>/<job name>/<host>.jsonl
_END_DEPTH = 4  # of ends, as <run id>/<ended>/<job name>/<host>.json


def read_job_journal(
    files: Mapping[str, bytes], *, job_name: str, host_count: int, sizes: Mapping[str, int] | None = None
) -> JobJournal:
    """``files``: key, relative to the job's checkpoint prefix → contents, at least of its journals and ends.

    ``sizes``: the bytes of keys whose contents were not read. Keys of other jobs and unknown names are ignored.
    """
    problems: list[str] = []
    hosts = [
        read_host_journal(job_name, key, files[key], problems)
        for key, (folder, job, name) in _parts(files, _DEPTH)
        if folder == journal_format.JOURNAL and job == job_name and name.endswith(".jsonl")
    ]
    ends = _ends(files, sizes or {}, host_count=host_count, problems=problems, job_name=job_name)
    return replace(
        merge_journals(job_name, hosts),
        ends={run_id: end for (run_id, _), end in ends.items()},
        problems=tuple(problems),
    )


def ended_runs(
    files: Mapping[str, bytes], *, host_count: int, sizes: Mapping[str, int] | None = None
) -> frozenset[str]:
    """Runs that ended in any attempt: each host's end is there, and its files have the bytes that it says.

    Checksums are compared where the contents are given; else the bytes in ``sizes`` have to agree.
    """
    return frozenset(run_id for run_id, _ in _ends(files, sizes or {}, host_count=host_count, problems=[]))


def _ends(
    files: Mapping[str, bytes],
    sizes: Mapping[str, int],
    *,
    host_count: int,
    problems: list[str],
    job_name: str | None = None,
) -> dict[tuple[str, str], RunEnd]:
    """Run and job → the end on all hosts. ``job_name`` of None: all jobs."""
    hosts: dict[tuple[str, str], list[HostEnd]] = {}
    for key, (run_id, folder, job, name) in _parts(files, _END_DEPTH):
        if folder == journal_format.ENDED and job_name in (None, job) and name.endswith(".json"):
            end = read_host_end(key, files, sizes, problems)
            if end is not None:
                hosts.setdefault((run_id, job), []).append(end)
    ends = {}
    for (run_id, job), found in sorted(hosts.items()):
        agreed = agree(found, host_count=host_count)
        if agreed is not None:
            ends[run_id, job] = agreed
        else:
            problems.append(f"{run_id} in {job}: {len(found)} of {host_count} hosts have an end")
    return ends


def _parts(files: Mapping[str, bytes], depth: int) -> Iterator[tuple[str, list[str]]]:
    """Keys with this number of names, in order."""
    for key in sorted(files):
        names = key.split("/")
        if len(names) == depth and all(names):
            yield key, names
