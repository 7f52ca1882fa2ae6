"""Rows that the store's tests share."""

from decimal import Decimal

from tests.unit.lab_in_memory import NOW, make_lab
from traindyno.store.attempts import AttemptRow

RUN = make_lab()[1][0]
ROW = AttemptRow(
    job_name="job-1",
    owner=RUN,
    number=1,
    is_last=False,
    token="t",
    submitted_at=NOW,
    instance_count=1,
    max_job_seconds=1800,
    usd_per_hour=Decimal("1.2"),
)
