"""A published figure worked out from the author's other numbers, as exactly as these are printed."""

from dataclasses import dataclass
from math import inf

from traindyno.core.costs.quantity_text import number_text
from traindyno.core.suite.arithmetic import evaluate
from traindyno.core.suite.claim import Claim, ClaimedBound, Derivation
from traindyno.core.suite.printed_precision import half_unit, rounding_reach

FLOAT_ERROR = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkedDerivation:
    """One derivation with its result. ``text``: the calculation with its numbers. ``from_claims``: the claims whose
    figures it uses; the claim contradicts them if it is not consistent.
    """

    text: str
    value: float
    is_consistent: bool
    from_claims: tuple[str, ...] = ()


def work_out(claim: Claim, derivation: Derivation) -> WorkedDerivation:
    """Consistent within the rounding of all printed numbers; a derivation's tolerance replaces that of the figure."""
    arithmetic = derivation.arithmetic
    value, reach = evaluate(arithmetic, claim.numbers), rounding_reach(arithmetic, claim.numbers)
    given = ", ".join(f"{name} = {number:g}" for name, number in claim.numbers.items() if name in arithmetic)
    low, high = _limits(claim, _own_margin(claim, derivation) + reach + abs(claim.published) * FLOAT_ERROR)
    between = f" (± {number_text(reach, digits=2)} by rounding)" if reach else ""
    return WorkedDerivation(
        text=f"{arithmetic} = {number_text(value, digits=5)}{between}{f' with {given}' if given else ''}",
        value=value,
        is_consistent=low <= value <= high,
        from_claims=derivation.from_claims,
    )


def _own_margin(claim: Claim, derivation: Derivation) -> float:
    if derivation.tolerance is None:
        return half_unit(claim.published)
    return abs(claim.published) * derivation.tolerance


def accepted(claim: Claim) -> tuple[float, float]:
    """The measured values that agree with the claim."""
    return _limits(claim, abs(claim.published) * claim.tolerance)


def _limits(claim: Claim, margin: float) -> tuple[float, float]:
    low = -inf if claim.bound is ClaimedBound.AT_MOST else claim.published - margin
    high = inf if claim.bound is ClaimedBound.AT_LEAST else claim.published + margin
    return low, high
