"""Why a cell is slow, in sentences."""

from collections.abc import Iterator

from traindyno.core.costs.quantity_text import joined, share_text
from traindyno.core.measurement.step_parts import StepParts
from traindyno.core.slowness.step_shares import (
    COMPUTE,
    DATA,
    LEAST_NAMED_SHARE,
    CellSteps,
    Share,
    StepShares,
    data_share,
    divide_step,
    wait_share,
)

NAMES = {DATA: "loading data"}
# A process that waits for others computes in less of the time.
MOSTLY = 0.5


def describe_steps(label: str, steps: CellSteps) -> Iterator[str]:
    """Nothing where a step was not probed and does not wait for data."""
    parts, advice = steps.step_parts, steps.loader_advice
    if parts is None:
        return
    shares = divide_step(parts)
    if is_wait_named(parts):
        yield f"{share_of_step_text(wait_share(parts))} of a step of {label} waits for data, by its step log."
        if parts.computing_share is not None and parts.computing_share >= MOSTLY:
            share = share_text(min(1.0, parts.computing_share), digits=0)
            yield (
                f"In {share} of that wait the process computes: it loads the data itself, or does other work"
                " that is in no step and no phase of its log."
            )
    if shares is not None and (
        not shares.found and any(share.half_width > LEAST_NAMED_SHARE for share in shares.noise.values())
    ):
        yield f"The probes of {label} are too noisy to tell what its step consists of (± {_widest_text(shares)})."
    elif shares is not None:
        yield f"By its probes, a step of {label} is {_shares_text(shares)}."
        if shares.noise:  # what these parts take is in the rest
            names, verb = joined([*map(name_of, shares.noise)]), "is" if len(shares.noise) == 1 else "are"
            yield f"{names[0].upper()}{names[1:]} {verb} within the noise of the probes (± {_widest_text(shares)})."
    if advice is not None:
        bound = ", which is all that the vCPUs allow" if advice.is_bounded else ""
        saving = share_text(advice.saving, digits=0)
        workers = f"loader_workers: {advice.loader_workers}{bound}"
        yield f"By estimate, a step of {label} would take about {saving} less with {workers}."


def _shares_text(shares: StepShares) -> str:
    """``31 % (± 2 %) loading data, 20 % (± 2 %) optimizer and 49 % (± 3 %) the rest: compute and communication``."""
    found = [f"{share_of_step_text(share)} {name_of(part)}" for part, share in shares.found.items()]
    unknown = [name_of(part) for part, share in shares.parts.items() if share is None]
    rest = f"{share_of_step_text(shares.rest)} {joined([COMPUTE, *unknown])}"
    together = ", which can't be told apart" if unknown else ""
    return f"{joined([*found, rest])}{together}"


def _widest_text(shares: StepShares) -> str:
    return share_text(max(share.half_width for share in shares.noise.values()), digits=0)


def is_wait_named(parts: StepParts) -> bool:
    """Whether the log's wait for data matters, and no probe says what data costs: none was made, or they are too noisy
    to exclude that wait.
    """
    data, waiting = data_share(parts), wait_share(parts)
    is_told = parts.is_probed and data is not None and (data.is_found or data.value + data.half_width < waiting.value)
    return not is_told and waiting.is_found and waiting.value >= LEAST_NAMED_SHARE


def name_of(part: str) -> str:
    return NAMES.get(part, part)


def share_of_step_text(share: Share) -> str:
    return f"{share_text(share.value, digits=0)} (± {share_text(share.half_width, digits=0)})"
