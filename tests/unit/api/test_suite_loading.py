"""A suite file and the claims file that it names become one document, which is all that travels."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.core.suite.test_suite_file import CLAIMS
from tests.unit.suites import small_document
from traindyno.api.suite_loading import SuiteFileInvalid, load_suite
from traindyno.api.suite_text import SuiteUnreadable
from traindyno.core.suite.checks.suite_check import parse_suite


def write(folder: Path, claims: Any, **changes: Any) -> Path:
    (folder / "published").mkdir()
    (folder / "published" / "post.yaml").write_text(yaml.safe_dump(claims))
    path = folder / "suite.yaml"
    path.write_text(yaml.safe_dump({**small_document(**changes), "claims": "published/post.yaml"}, sort_keys=False))
    return path


def test_the_claims_file_stands_in_the_document_that_travels(tmp_path: Path) -> None:
    loaded = load_suite(write(tmp_path, CLAIMS))
    assert loaded.document["claims"] == CLAIMS
    assert parse_suite(loaded.document) == loaded.suite


def test_problems_of_a_claims_file_are_told_with_those_of_the_suite(tmp_path: Path) -> None:
    path = write(tmp_path, {**CLAIMS, "titel": "x"}, measurement={"trials": 0})
    line = path.read_text().splitlines().index("claims: published/post.yaml") + 1
    with pytest.raises(SuiteFileInvalid) as caught:
        load_suite(path)
    told = str(caught.value)
    assert "measurement.trials" in told
    assert f"suite.yaml:{line}: claims.titel: unknown field" in told


@pytest.mark.parametrize("named", ["/dev/zero", ".", "no\0where.yaml"])
def test_a_claims_path_that_is_no_file_is_refused(tmp_path: Path, named: str) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(yaml.safe_dump({**small_document(), "claims": named}, sort_keys=False))
    with pytest.raises((SuiteFileInvalid, SuiteUnreadable), match=r"suite\.yaml:\d+: "):
        load_suite(path)


def test_a_claims_file_that_is_missing_is_named_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, CLAIMS)
    (tmp_path / "published" / "post.yaml").unlink()
    with pytest.raises(SuiteFileInvalid, match=r"suite\.yaml:\d+: claims: .*post\.yaml is no file of this machine"):
        load_suite(path)
