"""The published times of ALBERT as a model of the time of one step, T(nodes, loader workers,
batch).

A step of ALBERT is compute, communication, and waiting for data:

    T = a + b·batch + c·nodes + (d + e·nodes)·batch/16·max(0, 1 - workers/12)

and with DDP instead of SMDDP f + g·(nodes - 1)/nodes more. The parameters are fitted to the
logarithms of the published times and ratios, by least squares.
"""

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from math import log

from scipy.optimize import least_squares

EXAMPLES = 640_000
DEVICES_PER_NODE = 8
# The post saw no further gain above this number of workers.
ENOUGH_WORKERS = 12
REFERENCE_BATCH = 16
# First table: nodes → seconds of training and steps, without loader workers, batch 16.
TRAIN_SECONDS = {2: (197.8595, 2500), 4: (117.7135, 1250), 8: (79.0686, 625), 16: (59.2767, 313)}
# Second table: batch → nodes → gain in throughput by 12 loader workers over none.
WORKER_GAINS = {
    16: {2: 0.1553, 4: 0.2398, 8: 0.4114, 16: 0.6037},
    32: {2: 0.2524, 4: 0.4089, 8: 0.6515, 16: 1.0216},
}
# Last table: nodes → gain in throughput by SMDDP over DDP, 12 loader workers, batch 16.
SMDDP_GAINS = {2: 0.1396, 4: 0.3307, 8: 0.3494, 16: 0.3164}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingModel:
    """Parameters in seconds: for a step, a sample, a node, and as the module's docstring says."""

    step: float
    sample: float
    node: float
    loading: float
    loading_node: float
    ddp: float
    ddp_ring: float

    def step_seconds(self, *, nodes: int, workers: int, batch: int, is_ddp: bool = False) -> float:
        unloaded = max(0.0, 1 - workers / ENOUGH_WORKERS)
        waiting = (self.loading + self.loading_node * nodes) * batch / REFERENCE_BATCH * unloaded
        reduction = self.ddp + self.ddp_ring * (nodes - 1) / nodes if is_ddp else 0.0
        return self.step + self.sample * batch + self.node * nodes + waiting + reduction


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """A published figure and the model's; times in seconds, gains as shares."""

    name: str
    published: float
    modelled: float

    @property
    def relative(self) -> float:
        """The relative error of times, and of the ratios behind gains."""
        is_gain = "gain" in self.name
        return (
            (1 + self.modelled) / (1 + self.published) - 1
            if is_gain
            else self.modelled / self.published - 1
        )


FIRST_GUESS = ScalingModel(
    step=0.04,
    sample=0.001,
    node=0.0035,
    loading=0.001,
    loading_node=0.004,
    ddp=-0.02,
    ddp_ring=0.06,
)


def fit_scaling() -> ScalingModel:
    """The same result at every call: the data are constants and the method is deterministic."""

    def errors(values: object) -> list[float]:
        return [log(1 + residual.relative) for residual in residuals(_model(values))]

    solution = least_squares(
        errors, astuple(FIRST_GUESS), x_scale=[abs(value) for value in astuple(FIRST_GUESS)]
    )
    return _model(solution.x)


def _model(values: object) -> ScalingModel:
    names = ("step", "sample", "node", "loading", "loading_node", "ddp", "ddp_ring")
    return ScalingModel(**dict(zip(names, map(float, values), strict=True)))  # type: ignore[call-overload]


def residuals(model: ScalingModel) -> Iterator[Residual]:
    """The residuals of all figures in the three tables."""
    for nodes, (seconds, steps) in TRAIN_SECONDS.items():
        modelled = model.step_seconds(nodes=nodes, workers=0, batch=16) * steps
        yield Residual(name=f"{nodes} nodes: training time", published=seconds, modelled=modelled)
    for batch, gains in WORKER_GAINS.items():
        for nodes, gain in gains.items():
            without = model.step_seconds(nodes=nodes, workers=0, batch=batch)
            modelled = without / model.step_seconds(nodes=nodes, workers=12, batch=batch) - 1
            yield Residual(
                name=f"{nodes} nodes, batch {batch}: gain by workers",
                published=gain,
                modelled=modelled,
            )
    for nodes, gain in SMDDP_GAINS.items():
        slow = model.step_seconds(nodes=nodes, workers=12, batch=16, is_ddp=True)
        modelled = slow / model.step_seconds(nodes=nodes, workers=12, batch=16) - 1
        yield Residual(name=f"{nodes} nodes: gain by SMDDP", published=gain, modelled=modelled)
