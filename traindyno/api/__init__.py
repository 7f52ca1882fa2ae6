"""The Python interface: suites, plans, executions and their results. The command line calls it; docs/python.md."""

from traindyno.api.executions import SuiteExecution, find_execution, plan, run
from traindyno.api.lab_target import Lab
from traindyno.api.notebook import Figure, FigureMissing, ReportPage
from traindyno.api.plans import PlannedSuite
from traindyno.api.reports import ExecutionFailed, ReportMissing
from traindyno.api.results import PandasMissing, ResultRow, Results
from traindyno.api.suite_loading import Suite
from traindyno.core.errors import SuiteInvalid, TraindynoError
from traindyno.sagemaker.imported.model_trainer import from_model_trainer
from traindyno.sagemaker.imported.program import JobNotImportable
from traindyno.sagemaker.imported.suite_of_job import Decisions, ImportedSuite

__all__ = [
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
]
