"""What the parent processes of a shared job wrote about its runs, as it is in the results bucket."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from traindyno.core.jobs.journal_format import ENDED, JOURNAL
from traindyno.core.s3_keys import checkpoints_prefix
from traindyno.store.results_bucket import ResultsBucket

# One after another, those of 16 hosts and 24 runs would take most of the time that the end of a job takes.
READS_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedJobFiles:
    """Keys are relative to the job's checkpoint prefix, and of all its attempts."""

    #: The journals, and how the runs ended.
    contents: Mapping[str, bytes]
    #: The bytes of each file, read or not.
    sizes: Mapping[str, int]


def read_shared_job_files(execution_id: str, job_id: str, bucket: ResultsBucket) -> SharedJobFiles:
    prefix = checkpoints_prefix(execution_id, job_id)
    sizes = {key.removeprefix(prefix): size for key, size in bucket.list_sizes(prefix)}
    keys = [key for key in sizes if _is_read(key)]
    with ThreadPoolExecutor(READS_AT_ONCE) as pool:
        texts = pool.map(lambda key: bucket.find(f"{prefix}{key}"), keys)
        contents = {key: text for key, text in zip(keys, texts, strict=True) if text is not None}
    return SharedJobFiles(contents=contents, sizes=sizes)


def _is_read(key: str) -> bool:
    first, second, *_ = f"{key}/".split("/")
    return first == JOURNAL or second == ENDED
