"""The modules that an image's build imports, against what the jobs' code imports."""

import ast
import importlib.util
import json
import runpy
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.infra.image_packages import IN_THE_IMAGE, read_additions, read_base
from tests.infra.synthesis import REPO_ROOT

CHECKED: tuple[str, ...] = runpy.run_path(str(REPO_ROOT / "images/check_modules.py"))["MODULES"]
# This module is part of the images only.
TOOLKIT = "sagemaker_pytorch_container.training"
INSTALLED_HERE = [module for module in CHECKED if module != TOOLKIT]
JOBS_CODE = ("training", "traindyno/core", "traindyno/callbacks/hf_trainer.py")
# The images have these of their own; each check_image.py imports torch.
OF_THE_BASE = {"torch", "numpy"}
SAY_WHAT_IS_LOADED = """
import importlib, json, sys
checked, lines = sys.argv[1].split(), sys.argv[2].splitlines()
for module in checked:
    importlib.import_module(module)
before = set(sys.modules)
for line in lines:
    exec(line)
roots = {line.split()[1].partition(".")[0] for line in lines}
new = set(sys.modules) - before
beside = [name for name in new if name.partition(".")[0] in roots]
print(json.dumps([sorted({name.partition(".")[0] for name in before}), sorted(beside)]))
"""


def files() -> Iterator[Path]:
    for part in JOBS_CODE:
        path = REPO_ROOT / part
        yield from path.rglob("*.py") if path.is_dir() else [path]


def third_party_imports() -> set[str]:
    """The lines at module level, one for each name."""
    ours = {"training", "traindyno"}
    lines = set[str]()
    for path in files():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import):
                lines |= {f"import {alias.name}" for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                lines |= {f"from {node.module} import {alias.name}" for alias in node.names}
    known = sys.stdlib_module_names | ours | OF_THE_BASE
    return {line for line in lines if line.split()[1].partition(".")[0] not in known}


@pytest.fixture(scope="module")
def loaded() -> list[list[str]]:
    """The packages that the build's imports load, and the modules that the jobs' imports load
    after those.
    """
    lines = "\n".join(sorted(third_party_imports()))
    ran = subprocess.run(
        [sys.executable, "-c", SAY_WHAT_IS_LOADED, " ".join(INSTALLED_HERE), lines],
        capture_output=True,
        text=True,
        check=True,
    )
    return list(json.loads(ran.stdout))


def test_build_imports_every_third_party_module_of_the_jobs_code(loaded: list[list[str]]) -> None:
    imports = third_party_imports()
    assert "from transformers import PreTrainedModel" in imports
    assert TOOLKIT in CHECKED
    assert loaded[1] == []


def test_the_build_imports_the_models_of_jobs() -> None:
    """Transformers loads a model's module when a job makes the model, which no import statement
    shows.
    """
    for family in ("bert", "gpt2"):
        name = f"transformers.models.{family}.modeling_{family}"
        assert name in CHECKED
        assert importlib.util.find_spec(name)


def test_neuron_image_pins_each_loaded_package_using_the_labs_additions(
    loaded: list[list[str]],
) -> None:
    """Its base pins some of them itself, such as accelerate, which transformers imports."""
    additions = read_additions("neuron")
    of_root = metadata.packages_distributions()
    packages = {name for root in loaded[0] for name in of_root.get(root, [])}
    using = {
        canonicalize_name(name)
        for name in packages
        if any(canonicalize_name(package) in additions for package in required_by(name))
    }
    assert "transformers" in using
    assert using - OF_THE_BASE <= {*additions, *read_base("neuron")}


def required_by(package: str) -> list[str]:
    requirements = map(Requirement, metadata.requires(package) or [])
    return [
        requirement.name
        for requirement in requirements
        if not requirement.marker or requirement.marker.evaluate(IN_THE_IMAGE)
    ]
