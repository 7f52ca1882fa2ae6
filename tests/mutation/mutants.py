"""The small faults that can be put into a module: one changed operator, number or condition each."""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

SWAPPED_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
SWAPPED_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
SWAPPED_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
# A check of ours on our own code, not behaviour: zip(…, strict=True).
LEFT_OUT_KEYWORDS = {"strict"}


Path = tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One fault: ``path`` leads from the module's tree to the expression, which begins at ``line``."""

    line: int
    function: str
    before: str
    after: str
    path: Path


def find_mutants(source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of the source. Annotations, decorators and texts are left as they are."""
    return [
        Mutant(line=node.lineno, function=function, before=ast.unparse(node), after=ast.unparse(changed), path=path)
        for path, node, function in _expressions(ast.parse(source))
        for changed in _changes(node)
    ]


def mutated(source: str, mutant: Mutant) -> str:
    """The module with the fault, without its comments."""
    tree = ast.parse(source)
    parent: ast.AST = tree
    for field, index in mutant.path[:-1]:
        parent = _child(parent, field, index)
    field, index = mutant.path[-1]
    changed = ast.parse(mutant.after, mode="eval").body
    if index is None:
        setattr(parent, field, changed)
    else:
        getattr(parent, field)[index] = changed
    return ast.unparse(ast.fix_missing_locations(tree))


def _expressions(tree: ast.Module) -> Iterator[tuple[Path, ast.expr, str]]:
    """Each expression that runs, with the path of fields that leads to it and the name of what it is in."""
    open_: list[tuple[Path, ast.AST, str]] = [((), tree, "")]
    while open_:
        path, node, function = open_.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
        if isinstance(node, ast.expr) and path:
            yield path, node, function
        open_ += reversed([(path + step, child, function) for step, child in _children(node)])


def _children(node: ast.AST) -> Iterator[tuple[Path, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list", "type_params", "format_spec"}:
            continue
        if isinstance(value, ast.AST):
            yield ((field, None),), value
        elif isinstance(value, list):
            for index, child in enumerate(value):
                if isinstance(child, ast.AST) and not (
                    isinstance(child, ast.keyword) and child.arg in LEFT_OUT_KEYWORDS
                ):
                    yield ((field, index),), child


def _changes(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left=left, ops=[operator, *others], comparators=right):
            for swapped in SWAPPED_COMPARISONS[type(operator)]:
                yield ast.Compare(left=left, ops=[swapped(), *others], comparators=right)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in SWAPPED_ARITHMETIC:
            yield ast.BinOp(left=left, op=SWAPPED_ARITHMETIC[type(operator)](), right=right)
        case ast.BoolOp(op=operator, values=values):
            yield ast.BoolOp(op=ast.Or() if isinstance(operator, ast.And) else ast.And(), values=values)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield ast.IfExp(test=test, body=orelse, orelse=body)
        case ast.Call(func=ast.Name(id=name)) if name in SWAPPED_NAMES:
            changed = copy.deepcopy(node)
            changed.func = ast.Name(id=SWAPPED_NAMES[name], ctx=ast.Load())
            yield changed
        case ast.Constant(value=bool(value)):
            yield ast.Constant(value=not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value=value + 1)


def _child(node: ast.AST, field: str, index: int | None) -> ast.AST:
    value = getattr(node, field)
    child: ast.AST = value if index is None else value[index]
    return child
