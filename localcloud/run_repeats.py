"""By how much equal runs scatter on this machine: what `traindyno doctor --noise` and local
executions measured, kept in the home. A job on this machine is told it, and assumes it in place of
what is assumed of any machine.
"""

import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import log, sqrt
from statistics import variance

from localcloud.home import REPO_ROOT, Home
from traindyno.core.search.run_scatter import ACCELERATORS, KNOWN_DEGREES

DOCUMENT = "run_repeats"
#: Of ``doctor``: half a minute in all.
RUNS, RUN_SECONDS, DOCTOR = 5, 3.0, "doctor"
#: The latest measurements count.
MOST_KEPT = 20
#: Prints the mean seconds of a step of a small training with one thread, without its first steps.
PROGRAM = """
import sys, time, torch
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)])
inputs, ends = torch.randn(64, 256), [time.monotonic()]
while ends[-1] - ends[0] < float(sys.argv[1]):
    model(inputs).square().mean().backward()
    model.zero_grad()
    ends.append(time.monotonic())
counted = ends[len(ends) // 5 :]
print((counted[-1] - counted[0]) / (len(counted) - 1))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """``squares``: of the deviations of the logarithms of equal runs' times from their mean."""

    degrees: int
    squares: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRepeats:
    """By execution, or ``DOCTOR``; the latest one last."""

    measured: Mapping[str, Repeats] = field(default_factory=dict)


def repeats_of(groups: Iterable[Sequence[float]]) -> Repeats:
    """``groups``: the times, or rates, of equal runs."""
    logs = [[log(value) for value in group] for group in groups if len(group) > 1]
    return Repeats(
        degrees=sum(len(each) - 1 for each in logs),
        squares=sum((len(each) - 1) * variance(each) for each in logs),
    )


def keep(home: Home, name: str, repeats: Repeats) -> None:
    if not repeats.degrees:
        return
    before = home.read_as(DOCUMENT, KeptRepeats) or KeptRepeats()
    others = {key: each for key, each in before.measured.items() if key != name}
    first = max(len(others) + 1 - MOST_KEPT, 0)
    latest = dict(islice(others.items(), first, None))
    home.write(DOCUMENT, KeptRepeats(measured={**latest, name: repeats}))


def measured_share(home: Home) -> float | None:
    """The standard deviation of single runs, as a share of their time; None while too little is
    known to replace what is assumed.
    """
    kept = home.read_as(DOCUMENT, KeptRepeats) or KeptRepeats()
    degrees = sum(each.degrees for each in kept.measured.values())
    if degrees < KNOWN_DEGREES:
        return None
    squares = sum(each.squares for each in kept.measured.values())
    return max(sqrt(squares / degrees), ACCELERATORS)


def measure(
    *, tell: Callable[[str], None], runs: int = RUNS, seconds: float = RUN_SECONDS
) -> Repeats:
    """Raises CalledProcessError."""
    found = []
    for number in range(1, runs + 1):
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(seconds)],
            cwd=REPO_ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found.append(float(ran.stdout))
        tell(f"equal run {number} of {runs}: {1000 * found[-1]:.3g} ms a step")
    return repeats_of([found])
