"""The time for which a job may be billed after its time limit."""

# SageMaker gives a stopped job two minutes after SIGTERM, ends it with SIGKILL, and bills them.
STOP_SECONDS = 120
# Between the limit and SIGTERM, between SIGKILL and the upload, and for rounding.
MARGIN_SECONDS = 60
DEFAULT_UPLOAD_SECONDS = 300
# The local SageMaker service reads the job's limits.max_upload_seconds here: the API has no such field.
UPLOAD_VARIABLE = "TRAINDYNO_MAX_UPLOAD_SECONDS"


def ending_seconds(max_upload_seconds: int) -> int:
    """From the time limit to the end of the upload, at most."""
    return STOP_SECONDS + max_upload_seconds + MARGIN_SECONDS


def upload_environment(max_upload_seconds: int) -> dict[str, str]:
    """Empty for the default, which the local service assumes too."""
    return {} if max_upload_seconds == DEFAULT_UPLOAD_SECONDS else {UPLOAD_VARIABLE: str(max_upload_seconds)}
