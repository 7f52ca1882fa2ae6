"""Prices and quotas from a file, for planning without an account: what the person wrote, and nothing else."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any

from cattrs import Converter

from traindyno.core.document_converter import strict_converter
from traindyno.core.document_problems import problems_of
from traindyno.core.errors import DocumentInvalid, Problem
from traindyno.core.instance_types import close_instance_types, find_instance_type
from traindyno.core.prices import Price
from traindyno.core.quotas import Quota, QuotaReading
from traindyno.core.settings_points import WRONG_VALUE


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFile:
    """``usd_per_hour``: instance type → on-demand training price; ``as_of`` an ISO date."""

    region: str
    as_of: str
    usd_per_hour: Mapping[str, Decimal]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFile:
    """By the names of Service Quotas, such as ``ml.g5.xlarge for training job usage``."""

    applied: Mapping[str, int]
    in_use: Mapping[str, int] = field(default_factory=dict)


def read_price_file(document: Any, *, source: str) -> dict[str, Price]:
    """Raises DocumentInvalid with every problem of the file."""
    found: PriceFile = _read(document, PriceFile)
    problems = [problem for name, usd in found.usd_per_hour.items() for problem in _price_problems(name, usd)]
    if problems:
        raise DocumentInvalid(problems)
    return {
        name: Price(instance_type=name, region=found.region, usd_per_hour=usd, as_of=found.as_of, source=source)
        for name, usd in found.usd_per_hour.items()
    }


def read_quota_file(document: Any, needed: Iterable[Quota]) -> dict[str, QuotaReading]:
    """What the file doesn't name keeps AWS's default."""
    found: QuotaFile = _read(document, QuotaFile)
    return {
        quota.name: QuotaReading(
            quota=quota,
            applied=found.applied.get(quota.name),
            default=quota.default,
            in_use=found.in_use.get(quota.name),
        )
        for quota in needed
    }


def _price_problems(name: str, usd: Decimal) -> Iterable[Problem]:
    if find_instance_type(name) is None:
        hint = "".join(f" (did you mean {close}?)" for close in close_instance_types(name)[:1])
        yield Problem(path=f"usd_per_hour.{name}", message=f"expected a training instance type{hint}, got {name}")
    if usd <= 0:
        yield Problem(path=f"usd_per_hour.{name}", message=f"expected more than 0, got {usd}")


def _read(document: Any, kind: type) -> Any:
    try:
        return _converter().structure(document, kind)
    except WRONG_VALUE as error:
        raise DocumentInvalid(list(problems_of(error, "", {}))) from error


@cache
def _converter() -> Converter:
    return strict_converter(())
