"""A job without its secrets: a suite and its differences are read by many."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from traindyno.core.documents.extent import excess_of
from traindyno.core.suite.checks.job_limits_check import SDK_PREFIX
from traindyno.core.suite.checks.secrets_check import ADVICE, find_secrets
from traindyno.sagemaker.imported.program import JobNotImportable, is_built_in, job_name, toolkit_values

# Their entries have names, and a job can be asked for without one of them.
NAMED = ("Environment", "HyperParameters", "Tags")


def without_secrets(job: Mapping[str, Any], fields: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, str]]:
    """The job, and what it leaves out: path → reason, never a value.

    Raises JobNotImportable for what looks like a secret in another of ``fields``, or in what the training toolkit
    and our own program read: without it the job would be another.
    """
    name = job_name(job)
    refuse_secrets(name, find_secrets({each: job[each] for each in fields if each in job and each not in NAMED}))
    entries = _entries(job)
    refuse_excess(name, "HyperParameters", entries["HyperParameters"])
    # What is left out is listed by its name.
    refuse_secrets(name, find_secrets({section: list(given) for section, given in entries.items()}))
    found = {f"{section}.{each}": kind for section, given in entries.items() for each, kind in _secrets_of(given)}
    refuse_secrets(name, ((path, kind) for path, kind in found.items() if _is_needed(path, job)))
    clean = dict(job)
    for section in ("Environment", "HyperParameters"):
        given = job.get(section, {})
        clean[section] = {each: value for each, value in given.items() if f"{section}.{each}" not in found}
    clean["Tags"] = [tag for tag in job.get("Tags", ()) if f"Tags.{tag['Key']}" not in found]
    return clean, {path: f"this looks like {kind}; {ADVICE}" for path, kind in found.items()}


def _entries(job: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {
        "Environment": job.get("Environment", {}),
        "HyperParameters": toolkit_values(job),
        "Tags": {tag["Key"]: tag["Value"] for tag in job.get("Tags", ())},
    }


def refuse_secrets(name: str, found: Iterable[tuple[str, str]]) -> None:
    for path, kind in found:
        raise JobNotImportable(f"{name}: {path}: this looks like {kind} (not repeated here), expected none; {ADVICE}")


def refuse_excess(name: str, path: str, document: object) -> None:
    excess = excess_of(document)
    if excess is not None:
        raise JobNotImportable(f"{name}: {path}: {excess}")


def _secrets_of(entries: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and kind of each entry that is a secret, or has one inside."""
    for name, value in entries.items():
        for _, kind in find_secrets(value, name=name):
            yield name, kind
            break


def _is_needed(path: str, job: Mapping[str, Any]) -> bool:
    section, _, name = path.partition(".")
    return section == "HyperParameters" and (name.startswith(SDK_PREFIX) or is_built_in(job))
