import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from traindyno.cli.main import app, commands

TRAINIUM = Path(__file__).parents[3] / "suites/bert-trainium/claims.yaml"


def test_contradictions_are_shown_without_an_execution() -> None:
    done = CliRunner().invoke(commands, ["claims", str(TRAINIUM), "--format", "json"])
    assert done.exit_code == 0
    findings = {each["claim"]["claim_id"]: each["finding"] for each in json.loads(done.stdout)}
    assert findings["faster-time-to-train"] == "internally_inconsistent"
    assert findings["p4d-cost"] == "not_measured"


def test_a_wrong_file_is_refused_with_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "claims.yaml"
    file.write_text("title: x\nsource: y\nclaims:\n  - claim_id: a\n    form: gian\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["traindyno", "claims", str(file)])
    with pytest.raises(SystemExit) as left:
        app()
    assert left.value.code == 2
    assert f"{file}:5: claims[0].form: got" in capsys.readouterr().err


def test_without_an_execution_the_claims_are_counted_and_contradictions_listed() -> None:
    done = CliRunner().invoke(commands, ["claims", str(TRAINIUM)], env={"COLUMNS": "200"})
    text = " ".join(done.stdout.split())
    assert "39 claims; contradicting the source's other figures: 7" in text
    assert "findings: 7 internally inconsistent, 8 not measured, 24 not testable" in text
    assert "statements of another form than a number, such as versions, which are not judged: 1" in text
    assert "contradicting: trn1-price, trn1-billed-time, trn1-cost, faster-time-to-train, half-the-cost," in text
