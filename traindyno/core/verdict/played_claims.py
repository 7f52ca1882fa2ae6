"""Claims whose figures simulated runs were given: to measure them again shows that they were played, no more."""

from collections.abc import Iterable, Sequence

from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.line import GIVEN_CLAIMS
from traindyno.core.suite.claim import Claim, ClaimedForm, ClaimedQuantity


def played_claims(claims: Sequence[Claim], results: Iterable[RunResult]) -> frozenset[str]:
    """The claims that the traces of ``results`` name, those that follow from these by their arithmetic alone, and those
    of the same measured value.
    """
    played = {name for result in results if result.is_simulated for name in _given(result)}
    while following := {each.claim_id for each in claims if _follows(each, claims, played)} - played:
        played |= following
    return frozenset(played)


def _given(result: RunResult) -> Iterable[str]:
    return result.environment.facts.get(GIVEN_CLAIMS, ()) if result.environment else ()


def _follows(claim: Claim, claims: Sequence[Claim], played: set[str]) -> bool:
    """Settings are known in any case, so that they alone don't make a figure a played one."""
    settings = {each.claim_id for each in claims if each.quantity is ClaimedQuantity.SETTING}
    sources = [set(derivation.from_claims) for derivation in claim.derivations]
    by_arithmetic = any(each & played and each <= played | settings for each in sources)
    known = [each for each in claims if each.quantity is claim.quantity and each.claim_id in played]
    is_same = any((each.form, each.cell, each.against) == (claim.form, claim.cell, claim.against) for each in known)
    return by_arithmetic or is_same or _has_both_sides(claim, known)


def _has_both_sides(claim: Claim, known: Sequence[Claim]) -> bool:
    values = [each.cell for each in known if each.form is ClaimedForm.VALUE]
    return claim.form is not ClaimedForm.VALUE and claim.cell in values and claim.against in values
