"""The finding about a configuration's memory: the estimate or why there is none, and the changes that make it fit."""

from traindyno.core.errors import TraindynoError
from traindyno.core.planning.memory import MemoryEstimate, MemoryFinding, find_remedies, fits, why_not_estimated
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.workload import Workload
from training.memory.estimate import EstimateKey, estimate_key, estimate_memory
from training.models.flops import NOT_COUNTED


class Findings:
    """The findings of one workload; each configuration is estimated once."""

    def __init__(self, workload: Workload, *, model_path: str | None) -> None:
        self._workload = workload
        self._model_path = model_path
        self._known: dict[EstimateKey, MemoryEstimate | str] = {}

    def find(self, settings: Settings) -> MemoryFinding:
        found = self._estimate(settings)
        if isinstance(found, str):
            return MemoryFinding(why_unknown=found)
        if fits(found, settings.instance):
            return MemoryFinding(estimate=found)
        return MemoryFinding(estimate=found, remedies=find_remedies(settings, self._estimate_or_none))

    def _estimate_or_none(self, settings: Settings) -> MemoryEstimate | None:
        found = self._estimate(settings)
        return None if isinstance(found, str) else found

    def _estimate(self, settings: Settings) -> MemoryEstimate | str:
        """The estimate, or why there is none."""
        why_none = why_not_estimated(self._workload, settings)
        if why_none:
            return why_none
        key = estimate_key(settings)
        if key not in self._known:
            self._known[key] = self._estimated(settings)
        return self._known[key]

    def _estimated(self, settings: Settings) -> MemoryEstimate | str:
        try:
            return estimate_memory(self._workload, settings, model_path=self._model_path)
        except (TraindynoError, *NOT_COUNTED) as error:
            # The planner continues without this estimate; the run itself may still show the memory that it needs.
            return f"the estimate failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
