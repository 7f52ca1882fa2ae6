"""Which first suite fits a model and its data?"""

from traindyno.lab.feature import Feature
from traindyno.slices.estimates.report import PART, draw_estimates, read_compared
from traindyno.slices.estimates.suite import EstimatesSection


class EstimatesFeature(Feature):
    name = PART
    section = EstimatesSection
    read_projected = staticmethod(read_compared)
    title = "Estimated and measured"
    before = "cells"
    draw = staticmethod(draw_estimates)
    client = "estimates.client"
