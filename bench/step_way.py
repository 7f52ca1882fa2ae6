"""Count the forms and the modules on a step's way from the training loop to the sentence: python -m
bench.step_way

``WAY`` names the forms in order, each made of the one before it. Neighbours that no code links are
an error, so that a form that goes, or comes between two, has to be written here. A module is on the
way if it defines a form, or has a function that makes or returns one.
"""

import ast
import re
import sys
from itertools import pairwise
from pathlib import Path

PRODUCT = Path(__file__).resolve().parents[1] / "traindyno"
WAY = (
    "step_line",  # the line of JSON, written from a LoggedStep and read as one
    "LoggedStep",
    "Steps",
    "ProcessLog",
    "Session",
    "StepTable",
    "StepTime",
    "Throughput",
    "MeasuredRun",
    "RunResult",
    "Trial",
    "Comparison",
    "Rival",
    "Recommendation",
    "Verdict",
    "VerdictText",
)
Definition = ast.ClassDef | ast.FunctionDef


def names_in(*nodes: ast.AST | None) -> set[str]:
    """Quoted ones too, as annotations have them."""
    parts = (part for node in nodes if node is not None for part in ast.walk(node))
    texts = (
        getattr(part, "id", getattr(part, "attr", getattr(part, "value", ""))) for part in parts
    )
    return {name for text in texts if isinstance(text, str) for name in re.findall(r"\w+", text)}


def modules_on_the_way(product: Path = PRODUCT, way: tuple[str, ...] = WAY) -> dict[str, set[str]]:
    """Form → the modules that define, make or return it.

    Raises LookupError for neighbours that nothing links: no class or function uses the one, or what
    returns it, and makes the other.
    """
    found = {form: set[str]() for form in way}
    uses = list[tuple[set[str], set[str]]]()
    returned = dict[str, set[str]]()
    for path in sorted(product.rglob("*.py")):
        tree = ast.parse(path.read_text())
        defined = [each for each in ast.walk(tree) if isinstance(each, Definition)]
        known = {each.name for each in defined}
        imports = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
        known |= {
            name.name
            for each in imports
            if (each.module or "").startswith(product.name)
            for name in each.names
        }
        for each in defined:
            returns = names_in(each.returns) if isinstance(each, ast.FunctionDef) else set()
            returned[each.name] = returned.get(each.name, set()) | returns
            calls = names_in(*(node.func for node in ast.walk(each) if isinstance(node, ast.Call)))
            made = {each.name} | returns | calls
            uses.append((names_in(each), made))
            for form in made & known & found.keys():
                found[form].add(path.relative_to(product.parent).as_posix())
    linked = [
        (names.union(*(returned.get(name, ()) for name in names)), made) for names, made in uses
    ]
    for one, other in pairwise(way):
        if not any(one in names and other in made for names, made in linked):
            raise LookupError(f"nothing makes {other} of {one}; expected neighbours of WAY")
    return found


def main() -> None:
    found = modules_on_the_way()
    for form, modules in found.items():
        sys.stdout.write(f"{form}: {', '.join(sorted(modules))}\n")
    sys.stdout.write(f"{len(found)} forms, {len(set().union(*found.values()))} modules\n")


if __name__ == "__main__":
    main()
