"""A published figure, machine-readable: its value, and the cells that would show it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

from cattrs import Converter
from cattrs.errors import BaseValidationError

from traindyno.core.documents.converter import strict_converter
from traindyno.core.documents.field_description import described
from traindyno.core.documents.problems import FieldProblems, Unexpected, problems_of
from traindyno.core.documents.stored import JsonScalar
from traindyno.core.errors import DocumentInvalid, Problem

CLAIMS_SHAPE = "title, source and claims"


@dataclass(frozen=True, kw_only=True)
class ClaimsSection:
    claims: Mapping[str, Any] | None = described(
        None, "a claims file, relative to the suite file; the report judges its published figures"
    )


class ClaimsInvalid(DocumentInvalid):
    """The claims document is wrong."""


class ClaimedQuantity(StrEnum):
    """The quantity of a cell that the figure states; times and costs are of the suite's whole
    workload.

    ``seconds`` is wall clock, ``billable_seconds`` what SageMaker bills of each instance, and
    ``training_seconds`` the training loop alone. ``accuracy`` is a share. ``setting`` is a value
    that the authors chose.
    """

    SAMPLES_PER_SECOND = "samples_per_second"
    TOKENS_PER_SECOND = "tokens_per_second"
    STEPS_PER_SECOND = "steps_per_second"
    SECONDS = "seconds"
    TRAINING_SECONDS = "training_seconds"
    BILLABLE_SECONDS = "billable_seconds"
    USD = "usd"
    INSTANCE_HOURS = "instance_hours"
    ACCURACY = "accuracy"
    SETTING = "setting"


class ClaimedForm(StrEnum):
    """How the figure is made of one cell's quantity, or of two cells'."""

    VALUE = "value"
    RATIO = "ratio"
    GAIN = "gain"
    SAVING = "saving"
    SCALING_EFFICIENCY = "scaling_efficiency"


class ClaimedBound(StrEnum):
    """Whether the figure is the value itself or a limit: ``less than 10 minutes`` is ``at_most``
    10.
    """

    EXACTLY = "exactly"
    AT_MOST = "at_most"
    AT_LEAST = "at_least"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """The value that other figures of the source give instead.

    ``text`` has the calculation, and the ids of those claims.
    """

    value: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One published figure, and the cells that would show it.

    ``cell`` and ``against`` each name one cell by its settings, as ``exclude`` does.

    ``tolerance`` is a share of the published value (of its distance from 0 for a gain or a saving).
    ``sentence`` is the sentence or table row of the source that states the figure, word for word.
    ``untestable`` says why it can no longer be measured.
    """

    claim_id: str
    text: str
    source: str
    published: float
    quantity: ClaimedQuantity
    form: ClaimedForm
    tolerance: float
    cell: Mapping[str, JsonScalar] = field(default_factory=dict)
    against: Mapping[str, JsonScalar] = field(default_factory=dict)
    contradiction: Contradiction | None = None
    bound: ClaimedBound = ClaimedBound.EXACTLY
    sentence: str | None = None
    untestable: str | None = None
    notes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What the source states in another form than a number: a version, a picture.

    ``checked`` says against what it is checked, or why it can't be.
    """

    statement_id: str
    text: str
    source: str
    sentence: str
    checked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The published figures of one source.

    ``statements`` are part of the record of a source and are not judged.
    """

    title: str
    source: str
    claims: tuple[Claim, ...]
    statements: tuple[Statement, ...] = ()


def parse_claims(document: Mapping[str, Any]) -> Claims:
    """Read a claims document. Raises ClaimsInvalid with all problems."""
    try:
        source: Claims = _converter().structure(document, Claims)
    except (Unexpected, BaseValidationError, FieldProblems) as error:
        raise ClaimsInvalid(list(problems_of(error, ""))) from error
    problems = [
        problem
        for index, claim in enumerate(source.claims)
        for problem in _problems(claim, f"claims[{index}]")
    ]
    names = [claim.claim_id for claim in source.claims]
    problems += [
        Problem(path="claims", message=f"claim_id {name} occurs twice")
        for name in sorted(set(names))
        if names.count(name) > 1
    ]
    if problems:
        raise ClaimsInvalid(problems)
    return source


def _problems(claim: Claim, path: str) -> list[Problem]:
    problems = []
    if claim.form is not ClaimedForm.VALUE and not claim.against and not claim.untestable:
        problems.append(
            Problem(
                path=f"{path}.against",
                message=f"form {claim.form} compares two cells; name the second",
            )
        )
    if claim.quantity is ClaimedQuantity.SETTING and not claim.untestable:
        message = (
            "a setting is chosen and can't be measured, expected untestable with quantity setting"
        )
        problems.append(Problem(path=f"{path}.quantity", message=message))
    if claim.tolerance <= 0:
        problems.append(
            Problem(
                path=f"{path}.tolerance", message=f"got {claim.tolerance}, expected a share above 0"
            )
        )
    return problems


@cache
def _converter() -> Converter:
    return strict_converter([ClaimedQuantity, ClaimedForm, ClaimedBound])


def check_claims(section: ClaimsSection) -> Iterator[Problem]:
    if section.claims is None:
        return
    try:
        parse_claims(section.claims)
    except ClaimsInvalid as error:
        for problem in error.problems:
            yield Problem(
                path=f"claims.{problem.path}" if problem.path else "claims", message=problem.message
            )
