"""What a use case names of the lab's services, and what a function imports and makes of them."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from traindyno.aws import clients
from traindyno.lab.environment import BucketEnvironment
from traindyno.lab.services import open_services

REPO_ROOT = Path(__file__).resolve().parents[3]
USE_CASES = sorted(
    path for path in (REPO_ROOT / "traindyno/lab").rglob("*.py") if "Protocol" in path.read_text()
)


@pytest.mark.parametrize("path", USE_CASES, ids=lambda path: path.stem)
def test_a_use_case_names_the_services_of_its_module_and_no_others(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert set(_used(tree)) == set(_named(tree))


def _named(tree: ast.Module) -> Iterator[str]:
    """The members of the module's protocols."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(
            ast.unparse(base) == "Protocol" for base in node.bases
        ):
            yield from (
                statement.target.id
                for statement in node.body
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
            )


def _used(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(
                value=ast.Name(id="services") | ast.Attribute(attr="services"), attr=name
            ):
                yield name


def test_a_function_imports_the_adapters_of_its_use_case_only() -> None:
    code = (
        "import sys, lambdas.plan_round.handler;print(*sorted(name for name in sys.modules if "
        "name.startswith(('traindyno.aws.', 'traindyno.store.'))))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=REPO_ROOT, capture_output=True, text=True, check=True
    )
    modules = {name.removeprefix("traindyno.") for name in answer.stdout.split()}
    named = {"store.results", "store.results_bucket"}
    opened = {"aws.clients", "aws.client_errors", "aws.objects", "aws.table", "store.items"}
    assert modules <= named | opened


def test_a_service_is_made_once_at_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    for name in ("table", "s3", "sagemaker", "sagemaker_runtime", "stepfunctions", "logs"):
        monkeypatch.setattr(clients, name, lambda *_, name=name: made.append(name))
    services = open_services(BucketEnvironment(lab="lab", table="rows", bucket="results"))
    assert made == ["table", "s3"]
    assert services.jobs is services.jobs
    assert made == ["table", "s3", "sagemaker"]
