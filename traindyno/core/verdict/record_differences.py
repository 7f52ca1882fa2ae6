"""What differs between two executions besides the measurements: the work, how it was run, and on what."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from traindyno.core.costs.money import exact_usd_text
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.line import PLACE, SHARED_JOB
from traindyno.core.suite.suite_file import suite_document
from traindyno.core.verdict.confounds import Difference
from traindyno.core.verdict.execution_record import ExecutionRecord

# These fields of a workload say how the work is done; two executions that differ in them can be compared.
MEANS = {"source", "entry_point", "image", "environment"}
RUNNING = ("measurement", "purchase", "warm_pool_seconds", "training_plans", "instance_preferences")
NONE = "none"
# Drawn anew in each execution
PLACE_FACT = f"{SHARED_JOB}.{PLACE}"


def work_differences(first: ExecutionRecord, second: ExecutionRecord) -> tuple[Difference, ...]:
    """If there is any, the two executions did not do the same work."""
    return tuple(_differences(*(_flat({"workload": _work(record)}) for record in (first, second))))


def running_differences(first: ExecutionRecord, second: ExecutionRecord) -> tuple[Difference, ...]:
    """How the suites were run: script, image, measurement, purchase."""
    return tuple(_differences(*(_flat(_running(record)) for record in (first, second))))


def environment_differences(first: Sequence[RunResult], second: Sequence[RunResult]) -> tuple[Difference, ...]:
    """Versions, devices, hosts, images and prices, as the runs reported them."""
    return tuple(_differences(_environment(first), _environment(second)))


def _work(record: ExecutionRecord) -> dict[str, Any]:
    workload = suite_document(record.suite)["workload"]
    return {name: value for name, value in workload.items() if name not in MEANS}


def _running(record: ExecutionRecord) -> dict[str, Any]:
    document = suite_document(record.suite)
    means = {name: value for name, value in document["workload"].items() if name in MEANS}
    return {"workload": means, **{name: document[name] for name in RUNNING if name in document}}


def _environment(results: Sequence[RunResult]) -> dict[str, str]:
    """All values that any run reported, by name."""
    values: dict[str, set[str]] = {}
    for result in results:
        for name, value in _facts(result):
            values.setdefault(name, set()).add(value)
    return {name: ", ".join(sorted(found)) for name, found in values.items()}


def _facts(result: RunResult) -> Iterator[tuple[str, str]]:
    if result.environment:
        facts = _flat(result.environment.facts)
        yield from ((name, value) for name, value in facts.items() if name != PLACE_FACT)
        yield "hosts", ", ".join(result.environment.hosts)
    images = {attempt.image_uri for attempt in result.attempts if attempt.image_uri}
    yield from (("image", image) for image in sorted(images))
    if result.price.usd_per_instance_hour is not None:
        price = f"{exact_usd_text(result.price.usd_per_instance_hour)}/h"
        yield f"price of {result.run.cell.settings.instance}", price


def _flat(document: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        elif value is not None:
            flat[f"{prefix}{name}"] = str(value)
    return flat


def _differences(first: Mapping[str, str], second: Mapping[str, str]) -> Iterator[Difference]:
    for name in dict.fromkeys((*first, *second)):
        values = first.get(name, NONE), second.get(name, NONE)
        if values[0] != values[1]:
            yield Difference(name=name, first=values[0], second=values[1])
