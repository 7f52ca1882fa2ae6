"""A job's tarball is all that its programs need, beside the packages of the image."""

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.training.jobs import run_job
from tests.training.run_documents import run_document, write_texts
from traindyno.bundle import pack, training_files
from training import compilers, strategies

PROBE = """
import importlib, sys
from pathlib import Path
folder = Path(sys.argv[1])
sys.path.insert(0, str(folder))
names = [".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("*.py")]
for name in names:
    importlib.import_module(name.removesuffix(".__init__"))
packages = ("traindyno", "training")
ours = [module for name, module in sys.modules.items() if name.split(".")[0] in packages]
elsewhere = [module for module in ours if not module.__file__.startswith(str(folder))]
print([module.__name__ for module in elsewhere], len(ours))
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    with tarfile.open(fileobj=io.BytesIO(pack(training_files()))) as archive:
        archive.extractall(folder)  # Python 3.11.2 has no filter; the archive is ours
    return folder


def test_every_module_imports_from_the_tarball_alone(unpacked: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-P", "-c", PROBE, str(unpacked)],
        capture_output=True,
        text=True,
        check=False,
        cwd=unpacked,
    )
    assert answer.returncode == 0, answer.stderr
    count = len([name for name in training_files() if name.endswith(".py")])
    assert answer.stdout.split() == [
        "[]",
        str(count - 3),
    ]  # the programs at the top belong to no package


def test_every_class_named_in_a_table_is_in_the_tarball() -> None:
    named = {
        text.partition(":")[0].replace(".", "/")
        for text in [*strategies.CLASSES.values(), *compilers.CLASSES.values()]
    }
    packed = {name.removesuffix(".py").removesuffix("/__init__") for name in training_files()}
    assert named - packed == set()


def test_a_run_needs_the_tarball_alone(unpacked: Path, tmp_path: Path) -> None:
    document = run_document(measurement={"evaluate": True, "save_model": True})
    environment = {
        "PYTHONPATH": "",
        "SM_HPS": json.dumps(document),
        "SM_CHANNEL_TRAIN": str(write_texts(tmp_path / "texts")),
    }
    end = run_job(tmp_path, unpacked / "traindyno_train.py", environment=environment)
    assert end.exit_code == 0, end.output
    assert len(end.of_kind("step")) == 10
    assert (tmp_path / "model" / "code" / "inference.py").is_file()
