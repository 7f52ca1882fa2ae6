"""Which operations a function's code can send, by reading it: from the handler through our modules
to boto3's clients.

A call is followed by the name of what it is called on (``services.jobs.stop``: ``jobs`` is a
property of the type ``TrainingJobs``), so the result may hold more than the function ever sends;
``unsent.py`` says why.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import botocore.session
from botocore import xform_name

REPO_ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("lambdas", "traindyno/lab", "traindyno/store", "traindyno/aws")
# The types of clients, with their services.
CLIENTS = {
    "Boto3Table": "dynamodb",
    "CloudFormationClient": "cloudformation",
    "CodeBuildClient": "codebuild",
    "EventBridgeClient": "events",
    "ListingClient": "s3",
    "LogsClient": "logs",
    "ParametersClient": "ssm",
    "PricingClient": "pricing",
    "S3Client": "s3",
    "SFNClient": "stepfunctions",
    "SNSClient": "sns",
    "SageMakerClient": "sagemaker",
    "ServiceQuotasClient": "service-quotas",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Place:
    """A function or method; ``owner`` is its class, or "" for a module's function."""

    module: str
    owner: str
    name: str


class Source:
    """The modules of our functions, with what is defined in them."""

    def __init__(self) -> None:
        self.bodies: dict[Place, Function] = {}
        self.imports: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
        self.homes: dict[str, list[str]] = defaultdict(list)
        self.bases: dict[str, set[str]] = defaultdict(set)
        self.types: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        trees = {module: ast.parse(path.read_text()) for module, path in _modules()}
        for module, tree in trees.items():
            self._read_definitions(module, tree)
        for module, tree in trees.items():
            for node in ast.walk(tree):
                self._read_types(module, node)

    def _read_definitions(self, module: str, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self.imports[module][alias.asname or alias.name] = (
                        node.module or "",
                        alias.name,
                    )
        for node in tree.body:
            if isinstance(node, Function):
                self.bodies[Place(module, "", node.name)] = node
            elif isinstance(node, ast.ClassDef):
                self.homes[node.name].append(module)
                for base in node.bases:
                    self.bases[node.name] |= _names(base)
                for member in node.body:
                    if isinstance(member, Function):
                        self.bodies[Place(module, node.name, member.name)] = member

    def _read_types(self, module: str, node: ast.AST) -> None:
        """What names of variables, parameters, attributes and functions say about types."""
        name: str | None
        match node:
            case (
                ast.FunctionDef(name=name, returns=stated) | ast.arg(arg=name, annotation=stated)
            ) if stated:
                names = _names(stated)
            case ast.AnnAssign(target=target, annotation=stated):
                name = _last_name(target)
                names = _names(stated)
            case ast.Assign(targets=[target], value=ast.Call(func=ast.Name(id=made))):
                name = _last_name(target)
                names = {made}
            case _:
                return
        if name:
            self.types[module][name.lstrip("_")] |= {
                type_name for type_name in names if type_name in self.homes or type_name in CLIENTS
            }

    def types_of(self, module: str, receiver: ast.expr) -> set[str]:
        name = (_last_name(receiver) or "").lstrip("_")
        here = self.types[module].get(name)
        return here or {
            type_name for types in self.types.values() for type_name in types.get(name, ())
        }

    def methods(self, type_name: str, name: str) -> Iterator[Place]:
        """Methods of the class, of those that it extends, and of those that extend it."""
        extending = {extension for extension, bases in self.bases.items() if type_name in bases}
        for owner in {type_name, *self.bases[type_name], *extending}:
            for module in self.homes[owner]:
                yield Place(module, owner, name)


def operations_of(function: str) -> frozenset[str]:
    """Operations such as ``s3:GetObject``, with botocore's service name.

    ``function`` is a folder in ``lambdas``.
    """
    source = _source()
    operations: set[str] = set()
    open_places = [Place(f"lambdas.{function}.handler", "", "handle")]
    seen = set[Place]()
    while open_places:
        place = open_places.pop()
        if place in seen or place not in source.bodies:
            continue
        seen.add(place)
        for node in ast.walk(source.bodies[place]):
            open_places += _leads_to(source, place, node)
            operations |= sent_in(place.module, node)
    return frozenset(operations)


def _leads_to(source: Source, place: Place, node: ast.AST) -> Iterator[Place]:
    match node:
        case ast.Name(id=name):
            module, name = source.imports[place.module].get(name, (place.module, name))
            yield Place(module, "", name)
            yield Place(module, name, "__init__")
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            yield from source.methods(place.owner, name)
        case ast.Attribute(value=receiver, attr=name):
            for type_name in source.types_of(place.module, receiver):
                yield from source.methods(type_name, name)


def sent_in(module: str, node: ast.AST) -> set[str]:
    """The operations that a client's method at this place in a module sends."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=receiver, attr="get_paginator"),
            args=[ast.Constant(value=str(name))],
        ):
            pass
        case ast.Attribute(value=receiver, attr=name):
            pass
        case _:
            return set()
    if isinstance(receiver, ast.Attribute) and _last_name(receiver.value) == "meta":
        receiver = receiver.value.value  # type: ignore[attr-defined]  # the client of a table
    services = {
        CLIENTS[type_name]
        for type_name in _source().types_of(module, receiver)
        if type_name in CLIENTS
    }
    return {
        f"{service}:{operation}" for service in services for operation in _operations(service, name)
    }


def _operations(service: str, method: str) -> tuple[str, ...]:
    return tuple(filter(None, [methods_of(service).get(method)]))


@cache
def methods_of(service: str) -> Mapping[str, str]:
    """Operations by the names of boto3's methods."""
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(name): name for name in model.operation_names}


@cache
def _source() -> Source:
    return Source()


def _modules() -> Iterator[tuple[str, Path]]:
    for folder in FOLDERS:
        for path in sorted((REPO_ROOT / folder).rglob("*.py")):
            yield ".".join(path.relative_to(REPO_ROOT).with_suffix("").parts), path


def _last_name(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=called):
            return _last_name(called)
    return None


def _names(annotation: ast.expr) -> set[str]:
    """Every name in it, quoted ones too."""
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    for node in ast.walk(annotation):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= _names(ast.parse(node.value, mode="eval").body)
    return names
