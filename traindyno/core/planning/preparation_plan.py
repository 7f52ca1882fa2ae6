"""The jobs before a suite's first run, one at a time: for each set of tokens, and for the copy of
the model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal

from traindyno.core.costs.prices import Price, PriceList
from traindyno.core.planning.job_terms import preparation_terms
from traindyno.core.planning.quotas import (
    QuotaReading,
    QuotaReadings,
    account_quota,
    instance_quota,
    is_host_shared,
)
from traindyno.core.planning.refusals import (
    refuse_cost,
    refuse_hours,
    refuse_instances,
    refuse_quota,
)
from traindyno.core.run.tokens import (
    LABEL,
    STAGE_LABEL,
    DataPreparation,
    TokenSet,
)
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.preparation import (
    needed_tokens,
    preparation_instance,
    preparation_seconds,
)
from traindyno.core.suite.suite import Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationPlan:
    """Plan of the preparations before the first run.

    ``one_attempt_usd`` and ``worst_case_usd`` include only the jobs whose result is not ready.
    """

    tokens: tuple[TokenSet, ...]
    instance_type: str
    max_seconds: int
    job_count: int
    quota: QuotaReading | None
    price: Price | None
    one_attempt_usd: Decimal | None
    worst_case_usd: Decimal | None

    @property
    def makes_tokens(self) -> bool:
        """Whether a job makes tokens, and does not only copy the model."""
        return any(not token_set.stages_model for token_set in self.tokens)

    @property
    def stages_model(self) -> bool:
        return any(token_set.stages_model for token_set in self.tokens)

    @property
    def label(self) -> str:
        parts = {LABEL: self.makes_tokens, STAGE_LABEL: self.stages_model}
        return " and ".join(name for name, is_part in parts.items() if is_part)


def plan_preparation(
    suite: Suite,
    *,
    prices: PriceList,
    quotas: QuotaReadings,
    tokens: Sequence[TokenSet] | None,
) -> PreparationPlan | None:
    """Plan the jobs before the first run; None if no job is needed.

    If ``tokens`` is None, everything that the cells need counts as not ready.
    """
    wanted = needed_tokens(suite) if tokens is None else tuple(tokens)
    if not wanted:
        return None
    instance = preparation_instance(suite)
    count = sum(not token_set.is_ready for token_set in wanted)
    price = prices.get(instance)
    once = (
        count * preparation_terms(instance, suite).worst_case_usd(price.usd_per_hour)
        if price
        else None
    )
    return PreparationPlan(
        tokens=wanted,
        instance_type=instance,
        max_seconds=preparation_seconds(suite),
        job_count=count,
        quota=quotas.get(instance_quota(instance, Purchase.ON_DEMAND).name),
        price=price,
        one_attempt_usd=Decimal(0) if count == 0 else once,
        worst_case_usd=Decimal(0) if count == 0 else once and once * suite.limits.max_attempts,
    )


def due_preparations(
    plan: PreparationPlan | None, execution_id: str
) -> tuple[DataPreparation, ...]:
    if plan is None:
        return ()
    names = [field.name for field in fields(TokenSet)]
    return tuple(
        DataPreparation(
            execution_id=execution_id,
            instance=plan.instance_type,
            **{name: getattr(token_set, name) for name in names},
        )
        for token_set in plan.tokens
        if not token_set.is_ready
    )


def planned_instances(suite: Suite) -> tuple[str, ...]:
    """Every instance type whose price the plan needs, each once."""
    types = [cell.settings.instance for cell in suite.cells]
    if needed_tokens(suite):
        types.append(preparation_instance(suite))
    return tuple(dict.fromkeys(types))


def refuse_preparation(
    suite: Suite, plan: PreparationPlan | None, quotas: QuotaReadings
) -> Iterator[str]:
    if plan is None or plan.job_count == 0:
        return
    work = "preparing the data"
    is_done = "data is to be prepared"
    if not plan.makes_tokens:
        work = "staging the model"
        is_done = "model is to be staged"
    what = f"{work} on {plan.instance_type}"
    terms = preparation_terms(plan.instance_type, suite)
    if plan.price is None:
        yield (
            f"the price of {plan.instance_type}, on which the {is_done}, is unknown, so"
            " limits.max_usd can't be kept: name another type as preparation.instance"
        )
    else:
        yield from refuse_cost(
            what, terms, plan.price, suite.limits, shorten="preparation.max_seconds"
        )
    yield from refuse_hours(what, plan.max_seconds, suite.limits, shorten="preparation.max_seconds")
    if not is_host_shared(plan.instance_type):
        yield from refuse_instances(plan.instance_type, Purchase.ON_DEMAND, 1, what, quotas)
        yield from refuse_quota(quotas.get(account_quota(Purchase.ON_DEMAND).name), 1, what)
