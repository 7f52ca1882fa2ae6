"""The modules that an image's build imports, against what the jobs' code imports."""

import ast
import importlib.util
import runpy
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.infra.image_packages import IN_THE_IMAGE, read_additions, read_base
from tests.infra.synthesis import REPO_ROOT

CHECKED: tuple[str, ...] = runpy.run_path(str(REPO_ROOT / "images/check_modules.py"))["MODULES"]
# This module is part of the images only.
TOOLKIT = "sagemaker_pytorch_container.training"
INSTALLED_HERE = [each for each in CHECKED if each != TOOLKIT]
JOBS_CODE = ("training", "traindyno/core", "traindyno/callbacks/hf_trainer.py")
# The images have these of their own; each check_image.py imports torch.
OF_THE_BASE = {"torch", "numpy"}
SAY_WHAT_THE_JOBS_ADD = """
import importlib, sys
checked, lines = sys.argv[1].split(), sys.argv[2].splitlines()
for module in checked:
    importlib.import_module(module)
before = set(sys.modules)
for line in lines:
    exec(line)
roots = {line.split()[1].partition(".")[0] for line in lines}
new = set(sys.modules) - before
print("\\n".join(sorted(name for name in new if name.partition(".")[0] in roots)))
"""
SAY_WHAT_IS_LOADED = """
import importlib, sys
for module in sys.argv[1].split():
    importlib.import_module(module)
print("\\n".join({name.partition(".")[0] for name in sys.modules}))
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
                lines |= {f"import {each.name}" for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                lines |= {f"from {node.module} import {each.name}" for each in node.names}
    known = sys.stdlib_module_names | ours | OF_THE_BASE
    return {line for line in lines if line.split()[1].partition(".")[0] not in known}


def loaded_beside(checked: list[str]) -> list[str]:
    """Modules that the jobs' imports load after those that the build imports."""
    return said(SAY_WHAT_THE_JOBS_ADD, " ".join(checked), "\n".join(sorted(third_party_imports())))


def said(script: str, *arguments: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )
    return ran.stdout.split()


def test_build_imports_every_third_party_module_that_the_jobs_code_imports() -> None:
    imports = third_party_imports()
    assert "from transformers import PreTrainedModel" in imports
    assert TOOLKIT in CHECKED
    assert loaded_beside(INSTALLED_HERE) == []


def test_the_build_imports_the_models_that_jobs_train() -> None:
    """Transformers loads a model's module when a job makes the model, which no import statement
    shows.
    """
    for family in ("bert", "gpt2"):
        name = f"transformers.models.{family}.modeling_{family}"
        assert name in CHECKED
        assert importlib.util.find_spec(name)


def test_neuron_image_pins_each_loaded_package_that_uses_the_labs_additions() -> None:
    """Its base pins some of them itself, such as accelerate, which transformers imports."""
    additions, of_root = read_additions("neuron"), metadata.packages_distributions()
    loaded = {
        name
        for root in said(SAY_WHAT_IS_LOADED, " ".join(INSTALLED_HERE))
        for name in of_root.get(root, [])
    }
    using = {
        canonicalize_name(name)
        for name in loaded
        if any(canonicalize_name(each) in additions for each in required_by(name))
    }
    assert "transformers" in using
    assert using - OF_THE_BASE <= {*additions, *read_base("neuron")}


def required_by(package: str) -> list[str]:
    requirements = map(Requirement, metadata.requires(package) or [])
    return [
        each.name for each in requirements if not each.marker or each.marker.evaluate(IN_THE_IMAGE)
    ]
