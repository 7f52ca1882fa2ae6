"""A source's requirements.txt is installed with the real pip, without a network: the packages are
in the source.
"""

import io
import os
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from localcloud.sagemaker_service.host.process_environment import pip_environment
from localcloud.sagemaker_service.host.source_requirements import (
    RequirementsNotInstalled,
    install_requirements,
)
from localcloud.sagemaker_service.jobs.job import Engine, new_job
from tests.local.jobs import job_request
from tests.unit.localcloud.tiny_wheel import WHEEL, packed_wheel, tiny_wheel
from tests.unit.run_samples import known

TORCH = "2.13.0+cpu"


def install(
    tmp_path: Path,
    *,
    may_install: bool = True,
    environment: Mapping[str, str] | None = None,
    python: str = sys.executable,
) -> Path | None:
    def should_stop() -> bool:
        assert may_install, "pip was started although the packages are there"
        return False

    return install_requirements(
        tmp_path / "code",
        python=python,
        cache=tmp_path / "cache",
        log=tmp_path / "log.txt",
        environment=os.environ if environment is None else environment,
        should_stop=should_stop,
    )


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    return folder


def test_a_source_without_the_file_gets_no_packages(code: Path, tmp_path: Path) -> None:
    assert list(code.iterdir()) == []
    assert install(tmp_path, may_install=False) is None


def test_packages_are_installed_once_for_each_content_unless_the_image_has_them(
    code: Path, tmp_path: Path
) -> None:
    (code / WHEEL).write_bytes(tiny_wheel(1))
    (code / "requirements.txt").write_text(f"--no-index\n./{WHEEL}\npytest\n")
    first = known(install(tmp_path))
    assert {path.name for path in first.glob("*.py")} == {"tinywheel.py"}
    assert not (first / "pytest").exists()
    assert install(tmp_path, may_install=False) == first
    (code / WHEEL).write_bytes(tiny_wheel(2))
    second = known(install(tmp_path))
    assert [(folder / "tinywheel.py").read_text() for folder in (first, second)] == [
        "VALUE = 1\n",
        "VALUE = 2\n",
    ]


def test_a_package_unknown_to_pip_is_an_error_with_pips_message_and_a_remedy(
    code: Path, tmp_path: Path
) -> None:
    (code / "requirements.txt").write_text("--no-index\nno-such-package-of-anybody\n")
    with pytest.raises(
        RequirementsNotInstalled, match=r"No matching distribution.*no-such-package.*PIP_FIND_LINKS"
    ):
        install(tmp_path)
    assert [path for path in (tmp_path / "cache").iterdir() if path.suffix != ".unfinished"] == []


def test_pip_gets_its_settings_and_the_environment_of_a_job_and_no_secret(
    code: Path, tmp_path: Path
) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / WHEEL).write_bytes(tiny_wheel(3))
    job = new_job(
        job_request("job", Environment={"WANTED": "tinywheel"}),
        arn="arn",
        engine=Engine.PROCESS,
        now_ms=0,
    )
    shell = {
        **os.environ,
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_INDEX": "1",
        "PRIVATE_TOKEN": "wallet",
    }
    environment = pip_environment(job, shell)
    assert "PRIVATE_TOKEN" not in environment
    assert environment["AWS_SECRET_ACCESS_KEY"] == "test"
    # pip replaces ${NAME} by the variable that it sees
    (code / "requirements.txt").write_text("${WANTED}\n")
    installed = known(install(tmp_path, environment=environment))
    assert (installed / "tinywheel.py").is_file()
    (code / "requirements.txt").write_text("no-package-of-${PRIVATE_TOKEN}\n")
    with pytest.raises(RequirementsNotInstalled) as caught:
        install(tmp_path, environment=environment)
    assert "wallet" not in str(caught.value)


def test_pip_ends_when_the_job_is_to_stop(code: Path, tmp_path: Path) -> None:
    (code / "requirements.txt").write_text("--no-index\nno-such-package-of-anybody\n")
    problem = install_requirements(
        code,
        python=sys.executable,
        cache=tmp_path,
        log=tmp_path / "log.txt",
        environment=os.environ,
        should_stop=lambda: True,
    )
    assert problem is None


@pytest.fixture
def python_with_torch(tmp_path: Path) -> str:
    """An environment with the metadata of torch; its pip is that of this one."""
    builder = venv.EnvBuilder(symlinks=True)
    builder.create(tmp_path / "environment")
    (packages,) = tmp_path.glob("environment/lib/python*/site-packages")
    zipfile.ZipFile(io.BytesIO(packed_wheel("torch", TORCH))).extractall(packages)
    (packages / "this.pth").write_text(sysconfig.get_path("purelib"))
    return str(tmp_path / "environment/bin/python")


def wheels_of_torchvision(code: Path) -> dict[str, str]:
    """Two versions, each for a version of torch, and the environment in which pip sees no other
    packages.
    """
    for name, version, requires in (
        ("torchvision", "0.28.0", "torch==2.13.0"),
        ("torchvision", "0.29.0", "torch==2.14.0"),
        ("torch", "2.14.0", ""),
    ):
        wheel = packed_wheel(name, version, requires=requires)
        (code / f"{name}-{version}-py3-none-any.whl").write_bytes(wheel)
    own = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return {**own, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(code)}


@pytest.mark.parametrize(
    ("wanted", "installed"),
    [
        ("torch>=2.0\ntorchvision", {"torchvision-0.28.0"}),
        ("torch==2.14.0\ntorchvision", {"torch-2.14.0", "torchvision-0.29.0"}),
    ],
)
def test_torch_stays_the_environments_unless_the_file_excludes_its_version(
    code: Path, tmp_path: Path, python_with_torch: str, wanted: str, installed: set[str]
) -> None:
    environment = wheels_of_torchvision(code)
    (code / "requirements.txt").write_text(wanted)
    folder = known(install(tmp_path, environment=environment, python=python_with_torch))
    assert {path.stem for path in folder.glob("*.dist-info")} == installed
    assert not list(folder.glob("*.txt"))


def test_the_torch_of_the_environment_is_left_after_a_failure_of_pip(
    code: Path, tmp_path: Path, python_with_torch: str
) -> None:
    """pip goes back to old versions of a package in search of one that fits the environment's
    torch.
    """
    environment = wheels_of_torchvision(code)
    wheel = packed_wheel("adapted", "2.0", requires="torch==2.14.0")
    (code / "adapted-2.0-py3-none-any.whl").write_bytes(wheel)
    sources = {
        "pyproject.toml": (
            "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
        ),
        "backend.py": "raise SystemExit('this version is too old')\n",
    }
    with tarfile.open(code / "adapted-1.0.tar.gz", "w:gz") as archive:
        for name, text in sources.items():
            member = tarfile.TarInfo(f"adapted-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    (code / "requirements.txt").write_text("adapted")
    folder = known(install(tmp_path, environment=environment, python=python_with_torch))
    assert {path.stem for path in folder.glob("*.dist-info")} == {"adapted-2.0", "torch-2.14.0"}
    log = (tmp_path / "log.txt").read_text()
    assert "ResolutionImpossible" not in log
    assert (
        f"pip can't install requirements.txt with torch=={TORCH} of the image, and now tries "
        "without it"
    ) in log
