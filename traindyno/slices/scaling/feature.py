"""How do rate and cost grow with the number of instances?"""

from traindyno.lab.feature import Feature
from traindyno.slices.scaling.lab import draw_scaling


class ScalingFeature(Feature):
    name = "scaling"
    title = "Scaling"
    before = "batches"
    draw = staticmethod(draw_scaling)
