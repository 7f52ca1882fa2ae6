"""Training jobs write below their own prefixes; what decides about money, runs and verdicts has its
keys elsewhere.
"""

from traindyno.core import s3_keys

WRITTEN_BY_JOBS = (s3_keys.RUNS_PREFIX, s3_keys.PREPARED_PREFIX)


def test_no_deciding_document_has_a_key_writable_by_a_job() -> None:
    deciding = [
        s3_keys.suite_key("e"),
        s3_keys.plan_key("e"),
        s3_keys.lane_key("e", 1, "lane", wave=1),
        s3_keys.result_key("e", "r"),
        s3_keys.preparation_key("e", "r"),
        s3_keys.verdict_key("e"),
        s3_keys.report_data_key("e"),
        s3_keys.ready_tokens_key("k"),
        s3_keys.code_key("0" * 64),
        s3_keys.job_document_key("e", "j"),
    ]
    assert not [key for key in deciding if key.startswith(WRITTEN_BY_JOBS)]


def test_a_job_writes_below_its_own_run_or_its_own_tokens() -> None:
    own = "runs/e/r/"
    assert s3_keys.checkpoints_prefix("e", "r").startswith(own)
    assert s3_keys.output_prefix("e", "r").startswith(own)
    assert s3_keys.step_log_prefix("e", "r", "job").startswith(own)
    assert s3_keys.shared_run_prefix("e", "j", "r").startswith("runs/e/j/")
    assert s3_keys.tokens_folder("k", "job").startswith("prepared/k/")
