"""The Python interface: suites, plans, executions and their results. The command line calls it; docs/python.md."""

from traindyno.api.executions import SuiteExecution, find_execution, plan, run
from traindyno.api.lab_target import Lab
from traindyno.api.notebook import Figure, FigureMissing, ReportPage
from traindyno.api.plans import PlannedSuite
from traindyno.api.reports import ExecutionFailed, ReportMissing
from traindyno.api.results import PandasMissing, ResultRow, Results
from traindyno.api.suite_loading import Suite
from traindyno.core.errors import SuiteInvalid, TraindynoError

__all__ = [
    "ExecutionFailed",
    "Figure",
    "FigureMissing",
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
    "plan",
    "run",
]
