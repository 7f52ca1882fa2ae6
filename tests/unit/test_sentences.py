"""The files of sentences are compared test by test, and hold no section without its test."""

import re
from functools import partial
from pathlib import Path

import pytest

from tests import sentences


def test_difference_names_the_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "FOLDER", tmp_path)
    monkeypatch.delenv(sentences.IS_WRITTEN, raising=False)
    compare = partial(sentences.compare_sentences, sentences.TESTS / "unit" / "test_sample.py")
    assert "+- Use ddp." in compare("first", ["Use ddp."])
    monkeypatch.setenv(sentences.IS_WRITTEN, "1")
    assert compare("second", ["# no\nheading"]) == ""
    assert compare("first", ["Use ddp.", ""]) == ""
    monkeypatch.delenv(sentences.IS_WRITTEN)
    assert compare("second", ["# no\nheading"]) == ""
    assert compare("first", ["Use ddp.", ""]) == ""
    assert {"-- Use ddp.", "+- Use fsdp."} <= {*compare("first", ["Use fsdp.", ""]).splitlines()}


def test_each_section_has_its_test() -> None:
    files = [*sentences.FOLDER.rglob("*.txt")]
    modules = {
        file: sentences.TESTS / file.relative_to(sentences.FOLDER).with_suffix(".py")
        for file in files
    }
    assert len(files) > 30
    assert [str(module) for module in modules.values() if not module.exists()] == []
    assert [
        section
        for file, module in modules.items()
        for section in sentences.parse_sections(file.read_text(encoding="utf-8"))
        if not re.search(rf"def {section.partition('[')[0]}\(\s*snapshot\b", module.read_text())
    ] == []
