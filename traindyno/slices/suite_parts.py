"""What slices add to the suite file: their sections, and the rules about these."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from traindyno.core.errors import Problem
from traindyno.slices.claims.suite import CLAIMS_SHAPE, ClaimsSection, check_claims
from traindyno.slices.estimates.suite import EstimatesSection

# Section of which the suite may name a file → what the file holds.
LINKED_FILES: Mapping[str, str] = {
    "claims": CLAIMS_SHAPE,
}


@dataclass(frozen=True, kw_only=True)
class SliceSections(
    ClaimsSection,
    EstimatesSection,
):
    pass


CHECKS: Sequence[Callable[[SliceSections], Iterator[Problem]]] = [
    check_claims,
]
