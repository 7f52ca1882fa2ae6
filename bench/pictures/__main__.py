"""``python -m bench.pictures`` draws the pictures of docs/method.md again."""

from pathlib import Path

from bench.pictures import decision, run

FOLDER = Path(__file__).parents[2] / "docs"
PICTURES = {"method-run.svg": run.draw, "method-decision.svg": decision.draw}


def main() -> None:
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
