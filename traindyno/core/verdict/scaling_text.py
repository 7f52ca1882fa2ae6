"""A scaling curve in sentences."""

from collections.abc import Iterator

from traindyno.core.costs.quantity_text import range_text, seconds_text, share_text, usd_text
from traindyno.core.verdict.scaling_fit import HeldOut, ScalingFit, ScalingPrediction


def describe_scaling(fit: ScalingFit) -> tuple[str, ...]:
    """The curve, its test, the next size, and the size from which another instance brings no gain."""
    return (*_curve(fit), *map(_held_out, fit.held_out), *map(_next_size, fit.next_sizes), *_limits(fit))


def _curve(fit: ScalingFit) -> Iterator[str]:
    terms = [
        f"{name.replace('communication', fit.communication)}: {seconds_text(value)}" for name, value in _present(fit)
    ]
    yield f"training time by number of instances N: {', '.join(terms)}; residual {share_text(fit.relative_residual)}"


def _present(fit: ScalingFit) -> list[tuple[str, float]]:
    return [(name, value) for name, value in fit.seconds_of_terms.items() if value]


def _held_out(held: HeldOut) -> str:
    return (
        f"without the largest size, the curve predicts {_predicted(held.predicted)}; measured:"
        f" {seconds_text(held.measured_seconds)} ({held.error * 100:+.1f} %)".replace("(-", "(−")
    )


def _next_size(prediction: ScalingPrediction) -> str:
    return f"predicted: {_predicted(prediction)}"


def _predicted(prediction: ScalingPrediction) -> str:
    interval = prediction.interval
    spread = f" ({range_text(seconds_text(interval.low), seconds_text(interval.high))})" if interval else ""
    workers = f" with {prediction.loader_workers} loader workers" if prediction.loader_workers else ""
    return f"{seconds_text(prediction.seconds)}{spread} on {prediction.instance_count} instances{workers}"


def _limits(fit: ScalingFit) -> Iterator[str]:
    if fit.fastest_instances is None:
        yield f"by the curve, each further instance saves time up to {fit.followed_to} instances"
    else:
        fastest = fit.fastest_instances
        yield f"by the curve, more than {fastest} instances save no time{_step(fit, fastest)}"
    priced = "a sample" if fit.step is None else f"a step of {fit.step.samples:,} samples"
    if fit.cheapest_instances is None:
        yield f"by the curve, further instances don't raise the cost of {priced} up to {fit.followed_to} instances"
    else:
        cheapest = fit.cheapest_instances
        yield f"by the curve, more than {cheapest} instances raise the cost of {priced}{_step(fit, cheapest)}"


def _step(fit: ScalingFit, instances: int) -> str:
    """What a step takes and costs on so many instances, where its work is the same on any number."""
    seconds, usd = fit.step_seconds(instances), fit.step_usd(instances)
    if seconds is None:
        return ""
    cost = f" and costs {usd_text(usd)}" if usd is not None else ""
    return f"; with {instances}, a step takes {seconds_text(seconds)}{cost}"
