"""What a feature adds to a report and to the verdict in a terminal."""

from collections.abc import Iterator
from typing import ClassVar

from traindyno.core.suite.feature import SuiteFeature
from traindyno.core.verdict.report_data import Report
from traindyno.report.markup import Markup


class ReportFeature(SuiteFeature):
    """A feature with a section of its own in the report, which the list of sections names by
    ``title``.
    """

    title: ClassVar[str] = ""
    #: The report's own section that follows.
    before: ClassVar[str] = ""

    def draw(self, report: Report) -> Markup | None:
        """Its section of the page; None where it has nothing to show."""

    def verdict_lines(self, report: Report) -> Iterator[str]:
        """The lines that it adds to the verdict in a terminal."""
        yield from ()
