"""Every run with its outcome, and the last message of failed runs."""

from collections.abc import Sequence

from traindyno.core.costs.projection import paid_usd
from traindyno.core.costs.quantity_text import number_text, place_text, seconds_text, usd_text
from traindyno.core.jobs.outcome import Outcome, outcome_text
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.s3_keys import saved_model_key
from traindyno.core.serving.deployment import SERVING_INSTANCE
from traindyno.core.verdict.cell_runs import is_measured
from traindyno.core.verdict.report_data import Report
from traindyno.report.markup import Markup, breakable, columns, draw_table, element, join

COLUMNS = columns(
    "Run",
    "Outcome",
    "# Attempts",
    "# Warm-up",
    "# Steady",
    "# Samples/s",
    "# Step, median",
    "# Step, p99",
    "# Loss, last",
    "# Billed",
    "# Cost",
    explained={
        "Warm-up": "steps before the steady window",
        "Steady": "steps in the steady window",
        "Billed": "wall time of each instance",
    },
)


TONES = {Outcome.COMPLETED: "good", Outcome.OUTPACED: ""}


def draw_runs(report: Report) -> Markup:
    alike: dict[tuple[object, ...], list[RunResult]] = {}
    for result in report.results:
        if result.outcome not in TONES:
            key = (result.run.cell.cell_id, result.outcome, result.message, result.log_tail)
            alike.setdefault(key, []).append(result)
    return element(
        "section",
        element("h2", "Runs"),
        draw_table(
            COLUMNS,
            [_row(result) for result in report.results],
            caption="One run of one cell each.",
        ),
        *(_failure(trials) for trials in alike.values()),
        _problems([result for result in report.results if result.outcome is Outcome.COMPLETED]),
        _batch_hint(report),
        id="runs",
    )


def _batch_hint(report: Report) -> Markup | None:
    saved = [
        result
        for result in report.results
        if result.outcome is Outcome.COMPLETED and result.attempts
    ]
    if not saved or not report.suite.measurement.save_model:
        return None
    run = saved[-1].run
    job_name = saved[-1].attempts[-1].job_name
    is_kept = report.suite.limits.chain_jobs
    key = saved_model_key(run.execution_id, run.run_id, job_name, is_kept=is_kept)
    uri = f"s3://BUCKET/{key}"
    call = (
        f'Model(model_data="{uri}", …).transformer(1, "{SERVING_INSTANCE}", '
        '…).transform("s3://…/requests/", …)'
    )
    return element(
        "p", "A batch transform with the SageMaker SDK (docs/serving.md): ", element("code", call)
    )


def _row(result: RunResult) -> list[str | None]:
    measured = result.measured
    throughput = measured.throughput if measured else None
    rate = throughput if is_measured(result) else None
    return [
        join(
            breakable(f"{result.run.cell.label}, {result.run.name}"),
            element("small", _run_text(result)),
        ),
        join(
            element("span", _outcome(result), class_=f"outcome {TONES.get(result.outcome, 'bad')}"),
            element("span", "simulated", class_="badge") if result.is_simulated else None,
        ),
        str(len(result.attempts)),
        str(measured.steady_state.warmup_steps) if measured else "–",
        str(throughput.steps) if throughput else "–",
        number_text(rate.samples_per_second) if rate else "–",
        seconds_text(rate.step_times.p50_seconds) if rate else "–",
        seconds_text(rate.step_times.p99_seconds) if rate else "–",
        number_text(measured.loss.last) if measured and measured.loss.last is not None else "–",
        seconds_text(result.billable_seconds),
        usd_text(paid_usd(result)),
    ]


def _run_text(result: RunResult) -> str:
    """The run's id, its seed, and its place in the last job if it shared one."""
    seed = "" if result.run.seed is None else f", seed {result.run.seed}"
    unknown = " not shown by the script" if seed and result.seed is None else ""
    last = result.attempts[-1] if result.attempts else None
    place = place_text(last.share.place, last.share.runs) if last and last.share else None
    shared = f", {place} in job {last.job_name}" if last and place else ""
    return f"{result.run.run_id}{seed}{unknown}{shared}"


def _outcome(result: RunResult) -> str:
    text = outcome_text(result.outcome, result.message)
    if result.bound:
        return f"{text}: {result.bound.text}"
    return f"{text} at the target" if result.measured and result.measured.ended_at_target else text


def _failure(alike: Sequence[RunResult]) -> Markup:
    first = alike[0]
    names = ", ".join(result.run.name for result in alike)
    return element(
        "article",
        element("h3", f"{first.run.cell.label}, {names}: {_outcome(first)}"),
        element("p", first.message or "The run has no message."),
        element("pre", "\n".join(first.log_tail), tabindex=0) if first.log_tail else None,
        class_="failure",
    )


def _problems(completed: Sequence[RunResult]) -> Markup | None:
    items = [
        element("li", f"{result.run.run_id}: {text}")
        for result in completed
        for text in dict.fromkeys(filter(None, (result.message, *result.step_log_problems)))
    ]
    if not items:
        return None
    return element(
        "details",
        element("summary", "What is doubtful about completed runs"),
        element("ul", *items),
    )
