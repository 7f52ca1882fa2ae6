"""The parts that the pictures share: a white page with a title, scales, lines and texts."""

from collections.abc import Callable, Iterable
from html import escape

INK = "#1b1f27"
SOFT = "#5b6472"
FAINT = "#d9dde4"
ACCENT = "#0b6e6e"
WASH = "#e6f2f1"
WARM = "#c26a1b"

Place = Callable[[float], float]


def page(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
            ' font-family="sans-serif" font-size="14">',
            f"<title>{escape(title, quote=False)}</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def scale(low: float, high: float, begin: float, end: float) -> Place:
    """A linear map from values to positions."""
    return lambda value: begin + (value - low) / (high - low) * (end - begin)


def text(
    content: str, x: float, y: float, *, color: str = INK, anchor: str = "start", size: int = 14
) -> str:
    shown = escape(content, quote=False)
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}" '
        f'font-size="{size}">{shown}</text>'
    )


def line(
    points: Iterable[tuple[float, float]], *, color: str, width: float = 1.5, dashes: str = "none"
) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}" '
        f'stroke-dasharray="{dashes}"/>'
    )


def dot(x: float, y: float, *, color: str, radius: float = 1.8) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{color}"/>'


def band(left: float, right: float, top: float, bottom: float, *, color: str) -> str:
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
        f'height="{bottom - top:.1f}" fill="{color}"/>'
    )
