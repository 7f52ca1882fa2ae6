"""HTML and SVG elements whose text is escaped unless it is markup already: log lines can hold anything.

Characters that a browser obeys, such as those that reverse the text after them, become visible escapes.
"""

from html import escape

from traindyno.core.documents.problems import visible


class Markup(str):
    """Text that is already escaped."""

    __slots__ = ()


EMPTY_ELEMENTS = frozenset({"meta", "br", "col", "rect", "line", "path", "circle", "polygon", "input", "wbr"})


def element(name: str, /, *children: str | int | None, **attributes: str | float | None) -> Markup:
    """``class_`` and ``for_`` lose their underscore, others inside a name become hyphens; None is left out."""
    opening = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(visible(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in EMPTY_ELEMENTS and not children:
        return Markup(f"<{name}{opening}/>")
    return Markup(f"<{name}{opening}>{join(*children)}</{name}>")


def join(*children: str | int | None) -> Markup:
    return Markup("".join(_text(child) for child in children if child is not None))


def _text(child: str | int) -> str:
    return child if isinstance(child, Markup) else escape(visible(str(child)), quote=False)
