from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.lab_in_memory import NOW
from tests.unit.serving_in_memory import DEPLOYMENT, NAME
from traindyno.cli.display.deployment_text import cost_line, deployments_table, lines_after, lines_before, row_document
from traindyno.cli.inputs.deployment_cost import costs_of
from traindyno.cli.output import Terminal
from traindyno.core.serving.deployment import Hosting
from traindyno.core.serving.latency import measure_latency
from traindyno.store.model_deployments import DeploymentRow, DeploymentStatus

ROW = DeploymentRow(
    deployment=DEPLOYMENT,
    status=DeploymentStatus.READY,
    created_at=NOW,
    token="secret-token",
    checked_samples=8,
    latency=measure_latency([0.018] * 100),
)


def before(deployment: object = DEPLOYMENT, earlier: DeploymentRow | None = None) -> str:
    return "\n".join(lines_before(deployment, earlier, NOW))  # type: ignore[arg-type]


def test_the_price_and_the_most_that_it_will_cost_are_said_before() -> None:
    text = before(replace(DEPLOYMENT, instance_count=2))
    # 2 × $0.204 × 24
    assert "on 2 × ml.c5.xlarge: $0.41 per hour, $9.79 per day (AWS Price List, 2026-11-21)" in text
    # for the hour until it expires, and the ten minutes in which the lab notices it and SageMaker deletes it
    assert "the lab deletes it within 10 min after 2026-09-21 15:13 UTC; it costs $0.48 at most" in text
    assert "unknown until the latency of this model is measured on this type" in text
    # 30 × 24 × $0.204
    kept = before(replace(DEPLOYMENT, expires_at=None))
    assert "it is kept, and billed, until traindyno undeploy: $146.88 in 30 days" in kept


def test_an_amount_and_the_limit_of_a_transform_job_are_said_before() -> None:
    # $0.204 pays for an hour, of which ten minutes are kept until it has ended
    limited = before(replace(DEPLOYMENT, expires_at=None, max_usd=Decimal("0.204")))
    assert "after 2026-09-21 15:03 UTC; it costs $0.20 at most (--max-usd $0.204)" in limited
    transform = before(replace(DEPLOYMENT, hosting=Hosting.TRANSFORM, instance_count=3))
    # 3 × $0.204 for an hour and ten minutes
    assert (
        "the lab stops it, if it has not ended, within 10 min after 2026-09-21 15:13 UTC; it costs $0.71" in transform
    )


def test_an_earlier_endpoint_of_the_same_cell_says_what_requests_will_cost() -> None:
    # 0.018 s × 1,000,000 = 5 h; 5 h × $0.204 = $1.02
    assert f"expected: $1.02 per million requests with one request at a time, from {NAME}" in before(earlier=ROW)


def test_unknown_price_of_an_endpoint_is_printed_as_unknown() -> None:
    unknown = replace(DEPLOYMENT, usd_per_hour=None)
    assert "the price per hour is unknown" in before(unknown)
    serverless = replace(unknown, hosting=Hosting.SERVERLESS, memory_mib=2048, instance_type=None)
    assert "on serverless, 2048 MiB: a serverless endpoint bills by the time of its requests" in before(serverless)
    assert "cost: unknown per hour, unknown per million" in "\n".join(
        lines_after(replace(ROW, deployment=unknown), NOW)
    )


def test_the_check_the_latency_and_the_costs_are_said_after() -> None:
    text = "\n".join(lines_after(ROW, NOW))
    assert "8 answers agree with the training job's own on its evaluation samples" in text
    assert "latency of 100 requests, with one request at a time: p50 18.0 ms, p90 18.0 ms, p99 18.0 ms" in text
    assert "cost: $0.20 per hour, $1.02 per million requests" in text
    assert "it has cost $0.00 so far, $0.24 at most: the lab ends it after 2026-09-21 15:13 UTC" in text
    done = replace(ROW, deployment=replace(DEPLOYMENT, hosting=Hosting.TRANSFORM), billed_seconds=600.0)
    # 600 s × $0.204 an hour
    text = "\n".join(lines_after(done, NOW))
    assert "has completed: 10 min of instances, cost $0.034" in text
    assert "8 answers agree" in text


def test_the_list_and_its_document_show_costs_and_no_token() -> None:
    console = Terminal(record=True, width=200)
    console.print(deployments_table([ROW], NOW + 1800))
    shown = console.export_text()
    assert NAME in shown
    assert "$0.10" in shown  # half an hour
    document = row_document(ROW, NOW + 1800)
    assert "token" not in document
    assert Decimal(document["cost"]["usd_per_million_requests"]) == pytest.approx(Decimal("1.02"))
    assert Decimal(document["cost"]["spent_usd"]) == Decimal("0.102")


def test_an_executions_receipt_names_what_its_endpoints_cost() -> None:
    removed = replace(
        ROW, created_at=NOW + 1, removed_at=NOW + 3601, status=DeploymentStatus.REMOVED, message="expired\nlast lines"
    )
    other = replace(ROW, deployment=replace(DEPLOYMENT, execution_id="another"))
    costs = costs_of("execution-1", [removed, ROW, other], NOW + 1800)
    assert [cost_line(cost) for cost in costs] == [
        f"in addition, endpoint {NAME} cost $0.10 so far at $0.20 per hour, ready, $0.24 at most: the lab ends it after"
        " 2026-09-21 15:13 UTC",
        f"in addition, endpoint {NAME} cost $0.20, removed: expired",
    ]
