"""Does the verdict hold at other prices?"""

from traindyno.lab.feature import Feature
from traindyno.slices.pricing.lab import PART, draw_pricing, price_options, verdict_lines


class PricingFeature(Feature):
    name = PART
    judge = staticmethod(price_options)
    title = "Prices"
    before = "batches"
    draw = staticmethod(draw_pricing)
    verdict_lines = staticmethod(verdict_lines)
    client = "pricing.client"
