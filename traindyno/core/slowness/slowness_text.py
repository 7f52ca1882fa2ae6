"""Why a cell is slow, and why another is faster, in sentences."""

from collections.abc import Iterator, Sequence

from traindyno.core.costs.quantity_text import seconds_text, share_text
from traindyno.core.measurement.step_parts import PartSeconds, StepParts
from traindyno.core.slowness.difference import COMMUNICATION, COMPUTE, OPTIMIZER, Difference
from traindyno.core.slowness.loader_advice import LEAST_NAMED_SHARE, LoaderAdvice


def describe_parts(label: str, parts: StepParts | None, advice: LoaderAdvice | None) -> Iterator[str]:
    """Nothing where a step was not probed and does not wait for data."""
    if parts is None:
        return
    wait = named_wait(parts)
    if wait is not None:
        yield f"{_text(parts, wait)} of a step of {label} waits for data{_advice_text(advice)}."
    if parts.is_probed:
        yield from _describe_probed(parts, "The rest of it" if wait else f"A step of {label}")


def _describe_probed(parts: StepParts, whole: str) -> Iterator[str]:
    """Nothing where no part is unknown and none takes time."""
    named = {COMMUNICATION: parts.communication, COMPUTE: parts.compute, OPTIMIZER: parts.optimizer}
    taking = [f"{_text(parts, part)} {name}" for name, part in named.items() if part is not None and part.mean > 0]
    unknown = _unknown_text([name for name, part in named.items() if part is None])
    if taking:
        yield f"{whole} is {', '.join(taking)}{unknown and '; '}{unknown}."
    elif unknown:
        yield f"Of {whole[0].lower()}{whole[1:]}, {unknown}."


def _unknown_text(names: Sequence[str]) -> str:
    *others, last = names or [""]
    return f"{', '.join(others)} and {last} can't be told apart" if others else f"{last} is unknown" if last else ""


def describe_difference(first: str, second: str, difference: Difference | None) -> Iterator[str]:
    """Why the first needs less or more time than the second; nothing where no part of a step is known."""
    if difference is None or not difference.by_part or not difference.seconds:
        return
    parts = {**difference.by_part, "unexplained": difference.unexplained}
    named = [
        f"{_signed(seconds)} {name}"
        for name, seconds in sorted(parts.items(), key=lambda each: -abs(each[1]))
        if abs(seconds) >= LEAST_NAMED_SHARE * abs(difference.seconds)
    ]
    relation = "less" if difference.seconds < 0 else "more"
    yield f"{first} needs {seconds_text(abs(difference.seconds))} {relation} than {second}: {', '.join(named)}."


def waits_for_data(parts: StepParts) -> bool:
    """Whether it does for a part of its steps that matters."""
    return named_wait(parts) is not None


def named_wait(parts: StepParts) -> PartSeconds | None:
    """What the loader costs, where it matters. Probes that are too noisy to tell don't hide what the log shows."""
    data, waiting = parts.data, parts.waiting
    is_open = not data.is_found and data.mean + data.half_width >= waiting.mean
    wait = waiting if is_open else data
    return wait if wait.is_found and parts.share(wait) >= LEAST_NAMED_SHARE else None


def part_text(parts: StepParts, part: PartSeconds | None) -> str:
    """For a table; a dash where it is unknown."""
    return "unknown" if part is None else _text(parts, part)


def _text(parts: StepParts, part: PartSeconds) -> str:
    width = part.half_width / parts.step.mean
    return f"{share_text(parts.share(part), digits=0)} (± {share_text(width, digits=0)})".replace("-", "−")


def _advice_text(advice: LoaderAdvice | None) -> str:
    if advice is None:
        return ""
    bound = ", which is all that the vCPUs allow," if advice.is_bounded else ""
    saving = share_text(advice.saving, digits=0)
    return f"; by estimate, loader_workers: {advice.loader_workers}{bound} would take about {saving} less"


def _signed(seconds: float) -> str:
    return f"{'−' if seconds < 0 else '+'}{seconds_text(abs(seconds))}"
