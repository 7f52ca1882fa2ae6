"""All reasons why a valid suite can't run: unknown prices, costs over a cap, instances over a
quota.

The reason of a quota has a second line: how to request more.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from difflib import get_close_matches

from traindyno.core.costs.prices import SECONDS_PER_HOUR, Price, PriceList
from traindyno.core.costs.quantity_text import exact_usd_text, time_limit_text
from traindyno.core.documents.problems import shown
from traindyno.core.instances.instance_types import LOCAL_PREFIX, instance_types
from traindyno.core.planning.job_terms import JobTerms, run_terms
from traindyno.core.planning.jobs import why_alone, words_for_shells
from traindyno.core.planning.lanes import Lane
from traindyno.core.planning.quotas import (
    QuotaReading,
    QuotaReadings,
    account_quota,
    instance_quota,
    is_host_shared,
    job_size_quota,
    run_time_quota,
)
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.suite import Limits, Suite


def refuse_prices(suite: Suite, lanes: Sequence[Lane], prices: PriceList) -> Iterator[str]:
    for lane in lanes:
        terms = run_terms(lane.largest, suite)
        if lane.instance_type not in prices:
            yield _no_price_text(lane.instance_type)
            continue
        what = f"one job on {terms.instance_count} x {lane.instance_type}"
        yield from refuse_cost(
            what, terms, prices[lane.instance_type], suite.limits, shorten="limits.max_job_seconds"
        )


def _no_price_text(instance_type: str) -> str:
    if instance_type.startswith(LOCAL_PREFIX):
        return (
            f"{instance_type} is this machine, which only its local cloud has a price for: add "
            "--local"
        )
    return (
        f"the price of {instance_type} is unknown, so limits.max_usd can't be enforced: choose a "
        "type that the region has a price for; in the local cloud, give one with traindyno local "
        "up --prices FILE"
    )


def refuse_cost(
    what: str, terms: JobTerms, price: Price, limits: Limits, *, shorten: str
) -> Iterator[str]:
    """Refuse a job that costs more than the limit.

    Args:
        what: Name of one job.
        terms: Terms of the job.
        price: Price of its instance.
        limits: Limits of the suite.
        shorten: Name of the field with its time limit.
    """
    usd = terms.worst_case_usd(price.usd_per_hour)
    if usd > limits.max_usd:
        yield (
            f"{what} may cost {exact_usd_text(usd)} at {exact_usd_text(price.usd_per_hour)} per "
            f"instance hour ({terms.longest_text}), over limits.max_usd "
            f"{exact_usd_text(limits.max_usd)}: raise it, or lower {shorten}"
        )


def refuse_hours(what: str, seconds: int, limits: Limits, *, shorten: str) -> Iterator[str]:
    if Decimal(seconds) / SECONDS_PER_HOUR > limits.max_hours:
        yield (
            f"{what} may take {seconds} s, over {time_limit_text(limits.max_hours)}: raise it, or "
            f"lower {shorten}"
        )


def refuse_searches(suite: Suite) -> Iterator[str]:
    """The parent of a shared job probes batches: a run that can have none is refused."""
    for cell in suite.cells:
        reason = why_alone(cell, suite) if cell.settings.batch_search else None
        if reason is not None:
            yield (
                f"cell {cell.label} ({cell.cell_id}) searches its batch in a shared job, and "
                f"can't share one: {reason}"
            )


def refuse_arguments(suite: Suite) -> Iterator[str]:
    """Refuse arguments that a shell would change, for scripts that SageMaker's training toolkit
    starts: its version may use a shell.
    """
    refused: dict[str, None] = {}
    for cell in suite.cells:
        words = [*words_for_shells(cell, suite)]
        reason = why_alone(cell, suite) if words else None
        for name, word, read in words if reason else ():
            section = "matrix" if name in cell.hyperparameters else "workload"
            refused[
                f"{section}.hyperparameters.{name}: got {shown(word)}: the run has a job of its "
                f"own ({reason}), where SageMaker's training toolkit may give a script's arguments "
                f"to a shell without quotes, which would read {read}. Expected one word without "
                "spaces, quotes and ;&|<>()$*?[]"
            ] = None
    yield from refused


def refuse_quotas(suite: Suite, lanes: Sequence[Lane], quotas: QuotaReadings) -> Iterator[str]:
    remote = [lane for lane in lanes if not is_host_shared(lane.instance_type)]
    for lane in remote:
        largest = lane.largest.instance_count
        what = f"a run on {largest} x {lane.instance_type}"
        yield from refuse_instances(lane.instance_type, suite.purchase, largest, what, quotas)
        yield from refuse_quota(quotas.get(job_size_quota(suite.purchase).name), largest, what)
    if remote:
        largest = max(lane.largest.instance_count for lane in remote)
        yield from refuse_quota(
            quotas.get(account_quota(suite.purchase).name), largest, f"a run on {largest} instances"
        )
        seconds = suite.limits.max_job_seconds
        yield from refuse_quota(
            quotas.get(run_time_quota().name), seconds, f"limits.max_job_seconds {seconds}"
        )


def refuse_instances(
    instance_type: str, purchase: Purchase, count: int, what: str, quotas: QuotaReadings
) -> Iterator[str]:
    """Refuse ``what`` if the quota allows fewer than ``count`` instances of the type."""
    quota = instance_quota(instance_type, purchase)
    if quota.name in quotas and quotas[quota.name].is_not_listed:
        listed = [
            known for known in instance_types() if instance_quota(known, Purchase.ON_DEMAND).code
        ]
        meant = get_close_matches(instance_type, listed, n=1)
        yield (
            f'Service Quotas lists no quota "{quota.name}" for this region, '
            "so SageMaker training does not offer"
            f" {instance_type} here: expected an instance type that it "
            f"lists{f', such as {meant[0]}' if meant else ''}"
        )
    yield from refuse_quota(quotas.get(quota.name), count, what)


def refuse_quota(reading: QuotaReading | None, needed: int, what: str) -> Iterator[str]:
    if reading is None or reading.limit is None or reading.limit >= needed:
        return
    quota = reading.quota
    origin = "applied" if reading.applied is not None else "AWS's default"
    named = f'"{quota.name}" ({quota.code or "code unknown"})'
    problem = f"{what} needs {needed} of quota {named}, which is {reading.limit} ({origin})"
    yield f"{problem}\n  ask for it: {reading.how_to_ask(needed)}"
