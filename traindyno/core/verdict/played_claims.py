"""Claims whose figures simulated runs were given: to measure them again shows that they were played, no more."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from traindyno.core.documents.stored import JsonScalar
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.line import GIVEN_CLAIMS
from traindyno.core.suite.claim import Claim, ClaimedForm, ClaimedQuantity
from traindyno.core.suite.suite import Cell
from traindyno.core.verdict.claimed_cells import matches

Side = frozenset[object]
Link = frozenset[Side]
UNIT: Side = frozenset()


def played_claims(claims: Sequence[Claim], cells: Sequence[Cell], results: Iterable[RunResult]) -> frozenset[str]:
    """The claims that the traces of ``results`` name, those that follow from these by their arithmetic alone, and those
    that played values and ratios of the same quantity determine.
    """
    played = {name for result in results if result.is_simulated for name in _given(result)}
    links = {claim.claim_id: _link(claim, cells) for claim in claims} if played else {}
    while following := {each.claim_id for each in claims if played and _follows(each, claims, links, played)} - played:
        played |= following
    return frozenset(played)


def _given(result: RunResult) -> Iterable[str]:
    return result.environment.facts.get(GIVEN_CLAIMS, ()) if result.environment else ()


def _link(claim: Claim, cells: Sequence[Cell]) -> Link:
    """A value joins its cell to the unit, and any other form joins two cells; empty where the claim names none."""
    is_value = claim.form is ClaimedForm.VALUE
    if not claim.cell or not (is_value or claim.against):
        return frozenset()
    return frozenset({_side(claim.cell, cells), UNIT if is_value else _side(claim.against, cells)})


def _side(wanted: Mapping[str, JsonScalar], cells: Sequence[Cell]) -> Side:
    """The cells, because one cell can be named in several ways; the names where none matches."""
    return frozenset(cell.cell_id for cell in cells if matches(cell, wanted)) or frozenset(wanted.items())


def _follows(claim: Claim, claims: Sequence[Claim], links: Mapping[str, Link], played: set[str]) -> bool:
    """Settings are known in any case, so that they alone don't make a figure a played one."""
    settings = {each.claim_id for each in claims if each.quantity is ClaimedQuantity.SETTING}
    sources = [set(derivation.from_claims) for derivation in claim.derivations]
    by_arithmetic = any(each & played and each <= played | settings for each in sources)
    known = [links[each.claim_id] for each in claims if each.quantity is claim.quantity and each.claim_id in played]
    return by_arithmetic or _is_determined(links[claim.claim_id], known)


def _is_determined(link: Link, known: Collection[Link]) -> bool:
    """Whether known values and ratios lead from one side to the other: of two values and their ratio, any two do."""
    reached = set(tuple(link)[:1])
    while further := {side for each in known if each & reached for side in each} - reached:
        reached |= further
    return bool(link) and link <= reached
