"""Traindyno: the price-performance lab for model training. docs/python.md describes the names of
this package.
"""

__version__ = "0.1.0"

# Public name → its module, which comes with the first use: a container and a function import the
# package without them.
_API = {
    "AccountUnreachable": "aws.account",
    "CheckoutNeeded": "api.checkout",
    "CloudUnreachable": "api.progress",
    "Decisions": "slices.imported.suite_of_job",
    "ExecutionFailed": "api.reports",
    "ExecutionNameRefused": "aws.executions",
    "ExecutionUnknown": "aws.executions",
    "Figure": "api.notebook",
    "FigureMissing": "api.notebook",
    "ImportedSuite": "slices.imported.suite_of_job",
    "InputFileInvalid": "api.suite_text",
    "JobNotImportable": "slices.imported.job",
    "Lab": "api.lab_target",
    "LabChoiceRefused": "api.lab_target",
    "LabNotDeployed": "aws.deployment",
    "PandasMissing": "api.notebook",
    "PlannedSuite": "api.plans",
    "ReportMissing": "api.reports",
    "ReportPage": "api.notebook",
    "ReportUnwritable": "api.reports",
    "ResultRow": "api.notebook",
    "Results": "api.notebook",
    "SdkJobRefused": "sagemaker.sdk_jobs",
    "SourceRefused": "bundle",
    "StagingRefused": "api.local_paths",
    "StillRunning": "api.lab_target",
    "Suite": "api.suite_loading",
    "SuiteExecution": "api.executions",
    "SuiteInvalid": "core.errors",
    "SuiteRefused": "core.errors",
    "SuiteUnreadable": "api.suite_text",
    "TraindynoError": "core.errors",
    "TrialsInvalid": "api.trial_rows",
    "find_execution": "api.executions",
    "finding_text": "api.finding_text",
    "from_estimator": "slices.imported.estimator",
    "from_model_trainer": "slices.imported.model_trainer",
    "judge": "api.judging",
    "plan": "api.executions",
    "run": "api.executions",
}


def __getattr__(name: str) -> object:
    if name not in _API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  (only this use pays for it)

    return getattr(import_module(f"{__name__}.{_API[name]}"), name)


def __dir__() -> "list[str]":
    return sorted({*globals(), *_API})
