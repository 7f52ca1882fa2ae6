"""Estimates that `init` made of a suite's cells, beside the measurements: for the report and
`traindyno list`.
"""

from collections.abc import Iterator, Sequence

from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.projected_actual import ProjectedActual
from traindyno.core.jobs.outcome import SUCCESSES, Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.planning.memory import usable_memory_bytes
from traindyno.core.s3_keys import suite_key
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import parse_section, read_stored_suite
from traindyno.core.verdict.report_data import Report
from traindyno.figures.estimates import Interval, mean_of
from traindyno.report.markup import Markup
from traindyno.report.projected_section import draw_projected
from traindyno.slices.estimates.suite import EstimatesSection
from traindyno.store.results import load_results
from traindyno.store.results_bucket import ResultsBucket

PART = "estimates"


def read_compared(bucket: ResultsBucket, execution_id: str) -> Iterator[ProjectedActual]:
    """Estimates and measurements of the suite's cells.

    There are none for a suite without estimates, or whose workload is no longer the estimated one.
    """
    suite = bucket.find_as(suite_key(execution_id), read_stored_suite)
    if suite is None:
        return
    kept = parse_section(suite.features, EstimatesSection).estimates
    if kept is None:
        return
    if (kept.examples, kept.sequence_length) != (
        suite.workload.examples,
        suite.workload.sequence_length,
    ):
        return
    results = load_results(bucket, execution_id)
    for cell in (suite_cell for suite_cell in suite.cells if suite_cell.cell_id in kept.cells):
        estimated = kept.cells[cell.cell_id]
        own = [result for result in results if result.run.cell.cell_id == cell.cell_id]
        for name, estimate, actual in (
            ("memory", estimated.memory_bytes, measured_bytes(own)),
            ("time", estimated.seconds, measured_seconds(own)),
            ("cost", estimated.usd, measured_usd(suite, own)),
        ):
            if estimate is not None and actual is not None:
                interval = Interval(low=estimate.low, high=estimate.high, confidence=0.9)
                mean = estimate.mean
                yield ProjectedActual(
                    quantity=name, projected=mean, interval=interval, actual=actual, cell=cell.label
                )


def measured_bytes(results: Sequence[RunResult]) -> float | None:
    """The largest peak of memory; the device's whole memory where a run was out of it."""
    peaks = [result.measured.peak_memory_bytes for result in results if result.measured]
    out = [
        result.run.cell.settings.instance
        for result in results
        if result.outcome is Outcome.OUT_OF_MEMORY
    ]
    full = map(usable_memory_bytes, out)
    return max((peak for peak in (*peaks, *full) if peak), default=None)


def measured_seconds(results: Sequence[RunResult]) -> float | None:
    """Time for all examples at the rate of the runs.

    It excludes starts and what a run does once, as the estimate does.
    """
    rates = [
        (result.examples, result.samples_per_second)
        for result in results
        if result.outcome in SUCCESSES
    ]
    return mean_of(examples / rate for examples, rate in rates if rate)


def measured_usd(suite: Suite, results: Sequence[RunResult]) -> float | None:
    """Cost at the price on demand, which the estimate uses."""
    seconds = measured_seconds(results)
    price = results[0].price.usd_per_instance_hour if results else None
    if seconds is None or price is None or suite.purchase is not Purchase.ON_DEMAND:
        return None
    return seconds * float(price) * results[0].run.cell.settings.instance_count / SECONDS_PER_HOUR


def draw_estimates(report: Report) -> Markup | None:
    caption = (
        "What init estimated before the first run, and what the runs measured: the peak of one "
        "device, and the time and cost of all examples at the measured rate, without the start of "
        "a job."
    )
    return draw_projected(report, PART, "Estimated and measured", caption, word="estimated")
