"""How many steps the probes of a run have."""

# Steps of one round of a probe: each has two rounds, in opposite order, so that a drift adds
# nothing to a difference.
MOST_STEPS = 10
LEAST_STEPS = 5
ROUNDS = 2
# Of the run's steps; a probe of a short run is as short.
SHARE_OF_RUN = 20
WARM_UP_STEPS = 2
MOST_PROBES = 4


def probe_steps(run_steps: int) -> int:
    """Steps of one probe in one round, after its warm-up."""
    return max(LEAST_STEPS, min(MOST_STEPS, run_steps // SHARE_OF_RUN))


def most_probe_steps(run_steps: int) -> int:
    """Steps of all probes together, if no loader warms up for longer."""
    return ROUNDS * MOST_PROBES * (WARM_UP_STEPS + probe_steps(run_steps))
