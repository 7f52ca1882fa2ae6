"""Loss curves, and whether cells with the same work have the same losses."""

from traindyno.core.verdict.cautions import describe_parity
from traindyno.core.verdict.report_data import Report
from traindyno.report.loss_chart import draw_losses
from traindyno.report.markup import Markup, element


def draw_loss(report: Report) -> Markup | None:
    cells = []
    for cell in report.cells:
        mine = [each for each in report.results if each.run.cell.cell_id == cell.cell_id and each.measured]
        curves = [each.measured.loss for each in mine if each.measured and each.measured.loss.finite_points]
        if curves:
            cells.append((cell.label, curves))
    if not cells:
        return None
    title = "Training loss"
    return element(
        "section",
        element("h2", "Loss"),
        element("figure", element("figcaption", title), draw_losses(cells, title=title)),
        element("ul", *(element("li", describe_parity(report.verdict, parity)) for parity in report.verdict.parities))
        if report.verdict.parities
        else None,
        id="loss",
    )
