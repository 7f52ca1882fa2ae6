"""What the suites of a row come to, and whether that is within the limits that the method is held
to.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist, fmean, stdev

from tests.simulations.suites.play import Played
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.verdict import Finding
from traindyno.figures.estimates import Interval

TOLERANCE = 0.02
LEAST_DIFFERENCES = 3
MOST_WRONG = 0.05
MOST_UNDECIDED = 0.20
LEAST_COVERED = 0.90
LEAST_WITHIN = 0.95
ENOUGH_POWER = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the table of suites.

    ``most_wrong`` differs from 5 % where the page says why. No rule can keep the limits in
    ``excepted`` here.
    """

    name: str
    play: Callable[[str, int], Played]
    most_wrong: float = MOST_WRONG
    excepted: tuple[str, ...] = ()
    #: The suites of a row whose suites take long.
    share_of_suites: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Shares of the suites.

    ``wrong``: a worse cell was recommended, or an equal one was said to beat the others.

    ``covered``: of the intervals that were given for the recommended cell. ``power``: of a t test
    that knows the spread of the cells' means, with the same trials. ``nameable``: how often the
    best mean is within the tolerance, by it.
    """

    suites: int
    wrong: float
    superior: float
    undecided: float
    covered: float | None
    unknown: float
    predicted: float | None
    within: float
    regret: float
    power: float
    nameable: float

    def missed(self, row: Row) -> tuple[str, ...]:
        """The limits that the figures exceed by more than two standard errors of their number of
        suites.
        """
        return tuple(name for name in self._exceeded(row) if name not in row.excepted)

    def excused(self, row: Row) -> tuple[str, ...]:
        """Exceptions of the row that the figures need."""
        return tuple(name for name in self._exceeded(row) if name in row.excepted)

    def _exceeded(self, row: Row) -> Iterator[str]:
        if self.wrong > row.most_wrong + self._errors(row.most_wrong):
            yield "wrong"
        if self.power >= ENOUGH_POWER and self.undecided > MOST_UNDECIDED + self._errors(
            MOST_UNDECIDED
        ):
            yield "undecided"
        if self.covered is not None and self.covered < LEAST_COVERED - self._errors(LEAST_COVERED):
            yield "covered"
        if self.nameable >= LEAST_WITHIN and self.within < LEAST_WITHIN - self._errors(
            LEAST_WITHIN
        ):
            yield "regret"

    def _errors(self, share: float) -> float:
        return 2 * sqrt(share * (1 - share) / self.suites)


def measure(row: Row, suites: int) -> Figures:
    count = max(4, round(suites * row.share_of_suites))
    return summarise([row.play(row.name, number) for number in range(count)])


def summarise(played: Sequence[Played]) -> Figures:
    covered = [held for suite in played if (held := _is_covered(suite)) is not None]
    predicted = [held for suite in played if (held := _is_predicted(suite)) is not None]
    chances = list(_chances(played))
    return Figures(
        suites=len(played),
        wrong=fmean(map(is_wrong, played)),
        superior=fmean(suite.verdict.finding is Finding.RECOMMENDED for suite in played),
        undecided=fmean(not suite.verdict.finding.is_settled for suite in played),
        covered=fmean(covered) if covered else None,
        unknown=1 - len(covered) / len(played),
        predicted=fmean(predicted) if predicted else None,
        within=fmean(suite.regret <= TOLERANCE + 1e-9 for suite in played),
        regret=fmean(min(suite.regret, 1.0) for suite in played),
        power=max(0.0, 1 - sum(missed for missed, _ in chances)),
        nameable=max(0.0, 1 - sum(misled for _, misled in chances)),
    )


def is_wrong(played: Played) -> bool:
    if played.is_wrong is not None:
        return played.is_wrong
    finding = played.verdict.finding
    best = played.best
    if not finding.is_settled or best is None:
        return False
    others = [value for cell, value in enumerate(played.truth) if cell != best]
    if finding is Finding.RECOMMENDED and played.truth[best] >= min(others) * (1 - 1e-9):
        return True
    return played.regret > TOLERANCE + 1e-9


def _is_covered(played: Played) -> bool | None:
    """None without an interval.

    Where the cell ran on one draw of hosts, its figure is for these hosts.
    """
    estimate = played.verdict.estimate(played.verdict.metric)
    if estimate is None or estimate.interval is None or played.best is None:
        return None
    row = played.verdict.best
    is_for_its_hosts = row is not None and row.hosts.draws == 1 and played.on_its_hosts is not None
    truth = played.on_its_hosts if is_for_its_hosts else played.truth[played.best]
    return _holds(estimate.interval, truth or 0.0)


def _is_predicted(played: Played) -> bool | None:
    row: CellRow | None = played.verdict.best
    if (
        row is None
        or row.prediction is None
        or row.prediction.seconds is None
        or played.later is None
    ):
        return None
    return _holds(row.prediction.seconds, played.later)


def _holds(interval: Interval, value: float) -> bool:
    return interval.low <= value <= interval.high


def _chances(played: Sequence[Played]) -> Iterator[tuple[float, float]]:
    """For each other cell: that a t test which knows the spread does not find it worse, or better
    by less than the tolerance; and that its mean is the better one though it is worse by more than
    the tolerance.
    """
    truth = played[0].truth
    normal = NormalDist()
    best = min(range(len(truth)), key=truth.__getitem__)
    for other in range(len(truth)):
        pairs = [(suite.values[other], suite.values[best]) for suite in played]
        differences = [fmean(first) - fmean(second) for first, second in pairs if first and second]
        if other == best or len(differences) < LEAST_DIFFERENCES:
            continue
        spread = max(stdev(differences), 1e-9)
        lead = log(truth[other] / truth[best])
        missed = 1 - normal.cdf((lead + log(1 + TOLERANCE)) / spread - normal.inv_cdf(0.95))
        yield missed, normal.cdf(-lead / spread) if lead > log(1 + TOLERANCE) else 0.0
