"""Why a cell is faster than another, in sentences."""

from collections.abc import Iterator

from traindyno.core.costs.quantity_text import joined, seconds_text
from traindyno.core.slowness.difference import PARTS, Difference
from traindyno.core.slowness.slowness_text import name_of

# A smaller share of the difference is not named as the rest.
LEAST_REST = 0.01


def describe_difference(first: str, second: str, difference: Difference | None) -> Iterator[str]:
    """Why the first needs less or more time than the second; nothing where no part of a step is known of both."""
    if difference is None or not difference.seconds:
        return
    found = sorted(difference.found.items(), key=lambda each: -abs(each[1].mean))
    terms = [f"{_signed(part.mean)} (± {seconds_text(part.half_width)}) for {name_of(name)}" for name, part in found]
    if terms and abs(difference.rest) >= LEAST_REST * abs(difference.seconds):
        terms.append(f"{_signed(difference.rest)} for the rest")
    why = f": {joined(terms)}" if terms else "; the probes don't show why"
    yield f"{first} needs {_signed(difference.seconds)} than {second}{why}."
    noise = [name_of(name) for name, part in difference.by_part.items() if not part.is_found and part.half_width > 0]
    if noise:
        yield f"Their differences in {joined(noise)} are within the noise."
    unknown = [name_of(name) for name in PARTS if name not in difference.by_part]
    if unknown:
        yield f"Their differences in {joined(unknown)} are unknown."


def _signed(seconds: float) -> str:
    return f"{seconds_text(abs(seconds))} {'less' if seconds < 0 else 'more'}"
