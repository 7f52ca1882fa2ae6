"""The scatter of equal runs on this machine, which the home keeps.

`traindyno doctor --noise` and local executions measure it. A job on this machine is told it, and
assumes it in place of the scatter that is assumed of any machine.
"""

import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import log, sqrt
from statistics import variance

from localcloud.home import REPO_ROOT, Home
from traindyno.figures.in_job.run_scatter import ACCELERATORS, KNOWN_DEGREES

DOCUMENT = "run_repeats"
#: Runs of ``doctor``, which take half a minute together.
RUNS = 5
RUN_SECONDS = 3.0
DOCTOR = "doctor"
#: A shorter run shows what else the machine did in it, not how runs of a suite differ, in
#: which a race has steps of 2 s.
LEAST_SECONDS = 1.0
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
class KeptRepeats:
    """The times, or rates, of each group of equal runs, by their execution or ``DOCTOR``.

    The latest execution is the last.
    """

    measured: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)


def scatter_in(groups: Iterable[Sequence[float]]) -> float | None:
    """The standard deviation of single runs, as a share of their time; None while too little is
    known to replace what is assumed.
    """
    logs = [[log(value) for value in group] for group in groups if len(group) > 1]
    degrees = sum(len(group_logs) - 1 for group_logs in logs)
    squares = sum((len(group_logs) - 1) * variance(group_logs) for group_logs in logs)
    return sqrt(squares / degrees) if degrees >= KNOWN_DEGREES else None


def keep(home: Home, name: str, groups: Iterable[Sequence[float]]) -> None:
    equal = tuple(tuple(group) for group in groups if len(group) > 1)
    if equal:
        before = home.read_as(DOCUMENT, KeptRepeats) or KeptRepeats()
        others = [(key, times) for key, times in before.measured.items() if key != name]
        home.write(DOCUMENT, KeptRepeats(measured=dict([*others, (name, equal)][-MOST_KEPT:])))


def measured_share(home: Home) -> float | None:
    kept = home.read_as(DOCUMENT, KeptRepeats) or KeptRepeats()
    scatter = scatter_in(chain.from_iterable(kept.measured.values()))
    return None if scatter is None else max(scatter, ACCELERATORS)


def measure(
    *, tell: Callable[[str], None], runs: int = RUNS, seconds: float = RUN_SECONDS
) -> list[float]:
    """The seconds of a step of each run; raises CalledProcessError."""
    step_times = []
    for number in range(1, runs + 1):
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(seconds)],
            cwd=REPO_ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        step_times.append(float(ran.stdout))
        tell(f"equal run {number} of {runs}: {1000 * step_times[-1]:.3g} ms a step")
    return step_times
