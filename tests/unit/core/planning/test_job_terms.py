"""What a job may use, and what one attempt of it costs at most."""

from decimal import Decimal

from tests.unit.suites import small_suite
from traindyno.core.planning.job_terms import JobTerms, job_terms
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.suite.preparation import preparation_seconds
from traindyno.core.suite.runs import trial_runs

# With 480 s for the image, 120 s to stop, 300 s to upload and 60 s of margin, half an hour.
LIMITS = {"max_usd": 50, "max_hours": 4, "max_job_seconds": 840}


def test_a_run_has_the_suites_limits_and_its_instances() -> None:
    suite = small_suite(limits=LIMITS, matrix={"instance_count": [3]}, baseline={})
    (run,) = trial_runs("execution-1", suite.cells, [1])
    terms = job_terms(run, suite)
    assert terms == JobTerms(instance_type="ml.g5.xlarge", instance_count=3, max_job_seconds=840)
    assert terms.longest_seconds == 1800
    # 1,800 s x 3 instances at $1.50 an hour
    assert terms.worst_case_usd(Decimal("1.50")) == Decimal("2.25")


def test_a_preparation_has_one_instance_of_its_own() -> None:
    suite = small_suite()
    owner = DataPreparation(execution_id="e", key="0" * 64, packing=True, instance="ml.m5.xlarge")
    terms = job_terms(owner, suite)
    assert (terms.instance_type, terms.instance_count) == ("ml.m5.xlarge", 1)
    assert terms.max_job_seconds == preparation_seconds(suite)
    assert terms.longest_seconds == preparation_seconds(suite) + 480 + 480
