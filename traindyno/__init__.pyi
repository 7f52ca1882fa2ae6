from traindyno.api import Decisions as Decisions
from traindyno.api import ExecutionFailed as ExecutionFailed
from traindyno.api import Figure as Figure
from traindyno.api import FigureMissing as FigureMissing
from traindyno.api import ImportedSuite as ImportedSuite
from traindyno.api import JobNotImportable as JobNotImportable
from traindyno.api import Lab as Lab
from traindyno.api import PandasMissing as PandasMissing
from traindyno.api import PlannedSuite as PlannedSuite
from traindyno.api import ReportMissing as ReportMissing
from traindyno.api import ReportPage as ReportPage
from traindyno.api import ResultRow as ResultRow
from traindyno.api import Results as Results
from traindyno.api import Suite as Suite
from traindyno.api import SuiteExecution as SuiteExecution
from traindyno.api import SuiteInvalid as SuiteInvalid
from traindyno.api import TraindynoError as TraindynoError
from traindyno.api import find_execution as find_execution
from traindyno.api import from_model_trainer as from_model_trainer
from traindyno.api import plan as plan
from traindyno.api import run as run

__version__: str
