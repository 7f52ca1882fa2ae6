"""What nobody foresaw is one sentence, with the traceback in a file."""

from pathlib import Path

import pytest

from traindyno.cli import main
from traindyno.cli.commands.run_commands import FAILED


def test_an_unforeseen_error_is_a_sentence_and_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise KeyError("script")

    monkeypatch.setattr(main, "commands", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main.app()
    (file,) = tmp_path.iterdir()
    told = capsys.readouterr().err
    assert ended.value.code == FAILED
    assert "Traceback" not in told
    assert "a fault of traindyno (KeyError: 'script')" in told
    assert file.name in told
    assert "in fail" in file.read_text()
