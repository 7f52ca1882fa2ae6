"""Damage to texts, to documents and to requests, as hypothesis draws it."""

import json
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

# What YAML, JSON, paths and numbers trip over.
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
]
TEXTS += [
    "&a",
    "*a",
    "<<: *a",
    "!!int word",
    "!!python/name:os.system",
    "? [a, b] : c",
    "{" * 200,
    "[" * 3000,
]
TEXTS += [
    "0x" + "f" * 5000,
    "9" * 5000,
    "1" * 60,
    "- - - -",
    ": :",
    "%YAML 9.9",
    "\t",
    "\x07",
    "1e999",
    "1e130",
    "-0",
]
TEXTS += ["NaN", "on", "null", "---", "x" * 3000, "ml.p4d.24xlarge", "tensor"]
NUMBERS = [0, -1, 1, 10**30, 10**4000, 1e308, -1e-308, 1e130, float("nan"), float("inf")]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=9),
    st.sampled_from([*TEXTS, *NUMBERS]),
)
FURTHER_KEYS = st.sampled_from(["", "extra", "seed", "hyperparameters.x", "\0"])
CHANGES = st.integers(1, 3)


def _deep(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
) | st.sampled_from([90, 3000]).map(_deep)


@st.composite
def damaged_texts(draw: st.DrawFn, text: str) -> str:
    for _ in range(draw(CHANGES)):
        at = draw(st.integers(0, len(text)))
        match draw(st.integers(0, 4)):
            case 0:
                text = text[:at] + text[at + draw(st.integers(1, 20)) :]
            case 1:
                text = text[:at] + draw(st.sampled_from(TEXTS)) + text[at:]
            case 2:
                text = (
                    text[:at]
                    + text[at : at + draw(st.integers(1, 200))] * draw(st.integers(2, 9))
                    + text[at:]
                )
            case 3:
                text = text[:at] + chr(draw(st.integers(0, 0x10FFF))) + text[at + 1 :]
            case _:
                lines = text.splitlines(keepends=True)
                draw(st.randoms(use_true_random=False)).shuffle(lines)
                text = "".join(lines)
    return text


@st.composite
def damaged_documents(draw: st.DrawFn, document: Any) -> Any:
    damaged = deepcopy(document)
    for _ in range(draw(CHANGES)):
        container = draw(st.sampled_from(_containers(damaged)))
        keys = list(container) if isinstance(container, dict) else list(range(len(container)))
        change = draw(st.sampled_from(["replace", "delete", "repeat", "add"] if keys else ["add"]))
        key = draw(st.sampled_from(keys)) if keys else None
        if change == "add" and isinstance(container, dict):
            container[draw(FURTHER_KEYS)] = draw(VALUES)
        elif change == "add":
            container.append(draw(VALUES))
        elif change == "delete":
            del container[key]
        elif change == "repeat" and isinstance(container[key], list):
            container[key] = container[key] * draw(st.sampled_from([2, 50, 2000]))
        else:
            container[key] = draw(VALUES)
    return damaged


def json_of(document: Any) -> str | None:
    """None where the document has no JSON: integers of more than 4300 digits, nesting beyond
    Python's stack.
    """
    try:
        return json.dumps(document)
    except (ValueError, RecursionError):
        return None


def _containers(document: Any) -> list[Any]:
    """All mappings and lists of the document, itself first."""
    containers = []
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            containers.append(value)
            waiting += value.values() if isinstance(value, dict) else value
    return containers
