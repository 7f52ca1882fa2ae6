"""A source's requirements.txt is installed with the real pip, without a network: the packages are in the source."""

import sys
from pathlib import Path

import pytest

from localcloud.sagemaker_service.host.source_requirements import RequirementsNotInstalled, install_requirements
from tests.unit.localcloud.tiny_wheel import WHEEL, tiny_wheel


def install(tmp_path: Path, *, may_install: bool = True) -> Path | None:
    def should_stop() -> bool:
        assert may_install, "pip was started although the packages are there"
        return False

    return install_requirements(
        tmp_path / "code",
        python=sys.executable,
        cache=tmp_path / "cache",
        log=tmp_path / "log.txt",
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


def test_packages_are_installed_once_for_each_content_unless_the_image_has_them(code: Path, tmp_path: Path) -> None:
    (code / WHEEL).write_bytes(tiny_wheel(1))
    (code / "requirements.txt").write_text(f"--no-index\n./{WHEEL}\npytest\n")
    first = install(tmp_path)
    assert first is not None
    assert {path.name for path in first.glob("*.py")} == {"tinywheel.py"}
    assert not (first / "pytest").exists()
    assert install(tmp_path, may_install=False) == first
    (code / WHEEL).write_bytes(tiny_wheel(2))
    second = install(tmp_path)
    assert second is not None
    assert [(folder / "tinywheel.py").read_text() for folder in (first, second)] == ["VALUE = 1\n", "VALUE = 2\n"]


def test_package_that_pip_cannot_find_is_an_error_with_pips_message_and_a_remedy(code: Path, tmp_path: Path) -> None:
    (code / "requirements.txt").write_text("--no-index\nno-such-package-of-anybody\n")
    with pytest.raises(RequirementsNotInstalled, match=r"No matching distribution.*no-such-package.*PIP_FIND_LINKS"):
        install(tmp_path)
    assert [path for path in (tmp_path / "cache").iterdir() if path.suffix != ".unfinished"] == []


def test_pip_ends_when_the_job_is_to_stop(code: Path, tmp_path: Path) -> None:
    (code / "requirements.txt").write_text("--no-index\nno-such-package-of-anybody\n")
    found = install_requirements(
        code, python=sys.executable, cache=tmp_path, log=tmp_path / "log.txt", should_stop=lambda: True
    )
    assert found is None
