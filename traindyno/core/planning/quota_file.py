"""Quotas from a file, so that a suite can be planned without credentials."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from cattrs.errors import BaseValidationError

from traindyno.core.documents.converter import strict_converter
from traindyno.core.documents.problems import FieldProblems, Unexpected, problems_of, refusal, shown
from traindyno.core.errors import DocumentInvalid, Problem
from traindyno.core.planning.quotas import Quota, QuotaReading, UsageSource, known_quotas

SHAPE = "region and quotas"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenQuota:
    """If ``applied`` is None, AWS's default applies."""

    applied: int | None = None
    in_use: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFile:
    """``quotas``: the name in Service Quotas → the value, or a mapping with ``applied`` and ``in_use``."""

    region: str
    quotas: Mapping[str, GivenQuota]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenQuotas:
    region: str
    readings: Mapping[str, QuotaReading]

    def needed(self, quotas: Iterable[Quota]) -> dict[str, QuotaReading]:
        """Readings of these quotas only; one that the file does not name is unknown, AWS's default included."""
        return {quota.name: self.readings.get(quota.name) or _unknown(quota) for quota in quotas}


def _unknown(quota: Quota) -> QuotaReading:
    return QuotaReading(quota=quota, applied=None, default=None, in_use=None)


def parse_quotas(document: Mapping[str, Any]) -> GivenQuotas:
    """Quotas that the file does not name are unknown."""
    spelt = _spelt_out(document)
    problems = list(_problems(spelt))
    try:
        given: QuotaFile = strict_converter([]).structure(spelt, QuotaFile)
    except (Unexpected, BaseValidationError, FieldProblems) as error:
        raise DocumentInvalid([*problems_of(error, ""), *problems]) from error
    if problems:
        raise DocumentInvalid(problems)
    known = known_quotas()
    readings = {
        name: QuotaReading(
            quota=known[name],
            applied=each.applied,
            default=known[name].default,
            in_use=each.in_use,
            in_use_source=None if each.in_use is None else UsageSource.FILE,
        )
        for name, each in given.quotas.items()
    }
    return GivenQuotas(region=given.region, readings=readings)


def _spelt_out(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A plain number is the applied value."""
    quotas = document.get("quotas")
    if not isinstance(quotas, Mapping):
        return document
    spelt = {name: value if isinstance(value, Mapping) else {"applied": value} for name, value in quotas.items()}
    return {**document, "quotas": spelt}


def _problems(spelt: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of content; the converter reports problems of form."""
    quotas = spelt.get("quotas")
    for name, given in quotas.items() if isinstance(quotas, Mapping) else ():
        path = f"quotas.{name}"
        if name not in known_quotas():
            expected = 'a name of Service Quotas, such as "ml.p4d.24xlarge for training job usage"'
            meant = get_close_matches(str(name), known_quotas(), n=1)
            yield Problem(path=path, message=refusal(f"got {shown(name)}", expected, meant))
        for field, value in given.items():
            if isinstance(value, int) and value < 0:
                yield Problem(path=f"{path}.{field}", message=f"got {value}, expected 0 or more")
