"""The features, each in a folder of ``slices``: the programs import this list and pass it down."""

from collections.abc import Sequence

from traindyno.lab.feature import Feature
from traindyno.slices.claims.feature import ClaimsFeature
from traindyno.slices.estimates.feature import EstimatesFeature
from traindyno.slices.imported.feature import ImportedFeature
from traindyno.slices.pricing.feature import PricingFeature
from traindyno.slices.scaling.feature import ScalingFeature
from traindyno.slices.training.feature import TrainingFeature

FEATURES: Sequence[Feature] = [
    PricingFeature(),
    ScalingFeature(),
    ClaimsFeature(),
    ImportedFeature(),
    TrainingFeature(),
    EstimatesFeature(),
]
