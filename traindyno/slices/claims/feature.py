"""Does what a suite measured reproduce published figures?"""

from traindyno.lab.feature import Feature
from traindyno.slices.claims.lab import PART, claims_of, draw_claims
from traindyno.slices.claims.suite import CLAIMS_SHAPE, ClaimsSection, check_claims


class ClaimsFeature(Feature):
    name = PART
    section = ClaimsSection
    file_shape = CLAIMS_SHAPE
    check = staticmethod(check_claims)
    judge = staticmethod(claims_of)
    title = "Claims"
    before = "runs"
    draw = staticmethod(draw_claims)
    client = "claims.client"
