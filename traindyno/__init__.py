"""Traindyno: the price-performance lab for model training. docs/python.md describes the names of this package."""

__version__ = "0.3.0"

# A container and a function import the package without them: api comes with the first use of a name.
_API = (
    "Decisions",
    "ExecutionFailed",
    "Figure",
    "FigureMissing",
    "ImportedSuite",
    "JobNotImportable",
    "Lab",
    "PandasMissing",
    "PlannedSuite",
    "ReportMissing",
    "ReportPage",
    "ResultRow",
    "Results",
    "Suite",
    "SuiteExecution",
    "SuiteInvalid",
    "TraindynoError",
    "find_execution",
    "from_model_trainer",
    "plan",
    "run",
)


def __getattr__(name: str) -> object:
    if name not in _API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  (only this use pays for it)

    return getattr(import_module(f"{__name__}.api"), name)
