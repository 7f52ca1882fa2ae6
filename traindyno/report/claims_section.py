"""Published figures, each with its finding and the calculation."""

from traindyno.core.costs.quantity_text import number_text
from traindyno.core.verdict.claims import ClaimFinding, ClaimJudgement
from traindyno.core.verdict.report_data import Report
from traindyno.report.markup import Markup, columns, draw_table, element, estimate_cell, join

COLUMNS = columns("Claim", "# Published", "# Measured", "Finding", "Why")
TONES = {ClaimFinding.REPRODUCED: "good", ClaimFinding.NOT_REPRODUCED: "bad", ClaimFinding.INCONSISTENT: "bad"}


def draw_claims(report: Report) -> Markup | None:
    if not report.claims:
        return None
    return element(
        "section",
        element("h2", "Published claims"),
        draw_table(
            COLUMNS, [_row(judgement) for judgement in report.claims], caption="Figures that this suite checks."
        ),
        id="claims",
    )


def _row(judgement: ClaimJudgement) -> list[str | None]:
    claim = judgement.claim
    return [
        join(claim.text, element("small", claim.source)),
        number_text(claim.published, digits=4),
        estimate_cell(judgement.measured, number_text),
        element(
            "span", judgement.finding.value.replace("_", " "), class_=f"outcome {TONES.get(judgement.finding, '')}"
        ),
        join(judgement.reason, element("small", claim.notes) if claim.notes else None),
    ]
