"""A feature: what it adds to suites, reports, an execution that is judged, and the command line."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from traindyno.core.costs.projected_actual import ProjectedActual
from traindyno.core.verdict.comparison import ExecutionRecord
from traindyno.report.feature import ReportFeature
from traindyno.store.results_bucket import ResultsBucket


class Feature(ReportFeature):
    """Programs pass ``features.FEATURES`` down: nothing else knows which ones there are.

    A feature overrides what it has; the rest adds nothing.
    """

    #: The module below ``slices`` whose ``client()`` gives its part of the command line, which only
    #: the command line imports.
    client: ClassVar[str | None] = None

    def judge(self, record: ExecutionRecord) -> Sequence[Any]:
        """What it adds to the data of the execution's report."""
        return ()

    def read_projected(self, bucket: ResultsBucket, execution_id: str) -> Iterator[ProjectedActual]:
        """The projections that it kept of the execution or of its cells, with what came of them.

        They are data of the report too.
        """
        yield from ()

    def keep(self, bucket: ResultsBucket, execution_id: str) -> None:
        """Write what belongs beside the report into the bucket."""
