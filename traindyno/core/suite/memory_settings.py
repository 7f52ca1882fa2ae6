"""The settings that determine the memory of a cell's job: those that change a tensor's size."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from traindyno.core.suite.settings import Settings, setting_descriptions
from traindyno.core.suite.suite import Cell
from traindyno.core.suite.suite_file import suite_converter

WITHOUT_EFFECT = tuple(name for name, description in setting_descriptions().items() if not description.changes_memory)
# A hyperparameter takes 2,500 characters, and a job 100 of them.
PART_CHARACTERS = 2300
PART = "memory_"


def memory_settings(settings: Settings) -> Settings:
    """The same for all settings that need the same memory on the same number of devices."""
    plain = Settings(instance=settings.instance)
    return replace(settings, **{name: getattr(plain, name) for name in WITHOUT_EFFECT})


def distinct_settings(cells: Iterable[Cell]) -> tuple[Settings, ...]:
    """The configurations to estimate for the cells, each once."""
    return tuple(dict.fromkeys(memory_settings(cell.settings) for cell in cells))


def settings_digest(settings: Iterable[Settings]) -> str:
    """64 hexadecimal digits of the configurations to estimate."""
    documents = [_short(each) for each in settings]
    return hashlib.sha256(json.dumps(documents, sort_keys=True).encode()).hexdigest()


def memory_parts(settings: Iterable[Settings]) -> dict[str, list[dict[str, Any]]]:
    """The settings as hyperparameters of a job: several lists, each short enough for one hyperparameter."""
    parts: list[list[dict[str, Any]]] = []
    for document in map(_short, settings):
        if not parts or len(json.dumps([*parts[-1], document])) > PART_CHARACTERS:
            parts.append([])
        parts[-1].append(document)
    return {f"{PART}{number}": part for number, part in enumerate(parts)}


def parse_memory_parts(document: Mapping[str, Any]) -> Iterator[Settings]:
    """The settings in a job's hyperparameters; empty if no estimate is requested."""
    names = sorted((name for name in document if name.startswith(PART)), key=lambda name: int(name.removeprefix(PART)))
    for name in names:
        for each in document[name]:
            yield suite_converter().structure(each, Settings)


def _short(settings: Settings) -> dict[str, Any]:
    """The settings that differ from their defaults."""
    document = suite_converter().unstructure(settings)
    plain = suite_converter().unstructure(Settings(instance=settings.instance))
    return {name: value for name, value in document.items() if name == "instance" or value != plain[name]}
