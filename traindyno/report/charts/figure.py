"""A picture with its title, its data for download, and views of which the reader chooses one,
without a script.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from traindyno.report.markup import Markup, PlotData, download_csv, element, join

MOST_VIEWS = 15  # the style sheet has a rule for each


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    name: str
    content: Markup


def draw_figure(
    title: str, picture: str, *, data: PlotData | None = None, note: str | None = None
) -> Markup:
    """A picture with its title and its numbers.

    ``note`` is small text beside the title.
    """
    caption = element(
        "figcaption",
        title,
        element("small", note) if note else None,
        download_csv(data) if data else None,
    )
    return element("figure", caption, picture)


def draw_views(name: str, views: Sequence[View]) -> Markup:
    """The first one is shown; radio buttons choose another. ``name`` is unique in the page."""
    if len(views) == 1:
        return views[0].content
    shown = views[:MOST_VIEWS]
    buttons = (
        join(
            element(
                "input",
                type="radio",
                name=name,
                id=f"{name}-{index}",
                checked="" if index == 0 else None,
            ),
            element("label", view.name, for_=f"{name}-{index}"),
        )
        for index, view in enumerate(shown)
    )
    panels = (element("div", view.content, class_="view") for view in shown)
    return element("div", *buttons, *panels, class_="views")
