"""What does the whole workload give with the cell that a verdict recommends?"""

from traindyno.lab.feature import Feature
from traindyno.slices.training.card import keep_card
from traindyno.slices.training.report import PART, draw_training, read_compared


class TrainingFeature(Feature):
    name = PART
    read_projected = staticmethod(read_compared)
    keep = staticmethod(keep_card)
    title = "Projected and actual"
    before = "cells"
    draw = staticmethod(draw_training)
    client = "training.client"
