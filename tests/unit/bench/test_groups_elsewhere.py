"""A section that a machine can't measure is kept, and the line about the machine leaves out what it lacks."""

from pathlib import Path

import pytest

from bench import __main__ as bench
from bench import machine
from bench.figures import Figure, Section
from bench.groups import TITLES

KEPT = f"## {TITLES['gpu']}\n\n`python -m bench gpu` · commit abc · code 123\n\nmeasured on a GPU\n"


@pytest.mark.parametrize("is_measured", [False, True])
def test_section_is_kept_where_its_group_measures_nothing(
    is_measured: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "performance.md"
    page.write_text(KEPT)
    figures = (Figure(name="ours", value=1.0, unit="tokens/s"),) if is_measured else ()
    why = None if is_measured else "This machine has no GPU."
    section = Section(title=TITLES["gpu"], command="python -m bench gpu", figures=figures, why_unmeasured=why)
    monkeypatch.setattr(bench, "DOCUMENT", page)
    monkeypatch.setattr(bench, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(bench, "measure", lambda *_, **__: section)
    assert bench.run_group("gpu", is_quick=False, is_resumed=False)
    assert ("measured on a GPU" in page.read_text()) is not is_measured
    assert ("| ours |" in page.read_text()) is is_measured
    assert ("This machine has no GPU. gpu was not measured" in capsys.readouterr().err) is not is_measured


def test_section_without_figures_says_why() -> None:
    with pytest.raises(ValueError, match="expected figures or the reason why there are none"):
        Section(title=TITLES["gpu"], command="python -m bench gpu")


def test_origin_leaves_out_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that trains has no CDK."""
    monkeypatch.setattr(machine, "PACKAGES", ("boto3", "a-package-that-nobody-has"))
    told = machine.origin()
    assert "boto3 1." in told
    assert "a-package" not in told
