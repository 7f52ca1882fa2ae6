"""Seeded damage to suite files, to suite documents and to requests."""

import random
from copy import deepcopy
from typing import Any

TEXTS = [
    "",
    "\0",
    "\ud800",
    "é" * 300,
    "../../etc/passwd",
    "~nobody-here/x",
    "s3://",
    "s3://b/../k",
    "local.cpu",
    "NaN",
    "&a",
    "*a",
    "<<: *a",
    "!!int word",
    "!!python/name:os.system",
    "? [a, b] : c",
    "{" * 200,
    "[" * 3000,
    "0x" + "f" * 5000,
    "9" * 5000,
    "- - - -",
    ": :",
    "%YAML 9.9",
    "\t",
    "\x07",
    "1e999",
    "-0",
    "on",
    "null",
    "---",
]  # fmt: skip
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    10**30,
    10**5000,
    1e308,
    -1e-308,
    1e130,
    "1e130",
    "1" * 60,
    float("nan"),
    float("inf"),
    "",
    "\0",
    "\ud800",
    "x" * 3000,
    "local.cpu",
    "ml.p4d.24xlarge",
    "tensor",
    [],
    {},
    [[]],
    [{}],
    {"": ""},
    {"a": {"b": [1, "two"]}},
    ["a", 1],
    {"hours": "1e300"},
    {"path": "/x"},
]  # fmt: skip
MOST_CHANGES = 3


def damaged_text(text: str, source: random.Random) -> str:
    for _ in range(source.randint(1, MOST_CHANGES)):
        at, end = sorted(source.randrange(len(text) + 1) for _ in range(2))
        match source.randrange(5):
            case 0:
                text = text[:at] + text[at + source.randint(1, 20) :]
            case 1:
                text = text[:at] + source.choice(TEXTS) + text[at:]
            case 2:
                text = text[:at] + text[at : min(end, at + 200)] * source.randint(2, 9) + text[at:]
            case 3:
                text = text[:at] + chr(source.randrange(0x11000)) + text[at + 1 :]
            case _:
                lines = text.splitlines(keepends=True)
                source.shuffle(lines)
                text = "".join(lines)
    return text


def damaged_document(document: Any, source: random.Random) -> Any:
    damaged = deepcopy(document)
    for _ in range(source.randint(1, MOST_CHANGES)):
        _damage_one(source.choice(_containers(damaged)), source)
    return damaged


def _damage_one(container: Any, source: random.Random) -> None:
    keys = list(container) if isinstance(container, dict) else list(range(len(container)))
    value = deepcopy(source.choice(VALUES)) if source.random() < 0.9 else _deep(source.choice([90, 3000]))
    if not keys or source.random() < 0.1:
        if isinstance(container, dict):
            container[source.choice(["", "extra", "seed", "hyperparameters.x", "\0"])] = value
        else:
            container.append(value)
        return
    key = source.choice(keys)
    match source.randrange(4):
        case 0:
            del container[key]
        case 1 if isinstance(container[key], list) and container[key]:
            container[key] = container[key] * source.choice([2, 50, 2000])
        case _:
            container[key] = value


def _deep(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def _containers(document: Any) -> list[Any]:
    """All mappings and lists of the document, itself first."""
    found, waiting = [], [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            found.append(value)
            waiting += value.values() if isinstance(value, dict) else value
    return found
