"""The manifest beside prepared tokens: their key and their number."""

from collections.abc import Mapping
from typing import Any

from traindyno.core.documents.versions import Format, VersionUnknown

# Beside the tokens: the memory estimates of the suite's settings, if it asks for them.
MEMORY_FILE = "traindyno-memory.json"
TOKENS_MANIFEST = "traindyno-tokens.json"
MANIFEST = Format(name=TOKENS_MANIFEST, version=1)


def tokens_manifest(key: str, parts: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """``parts``: for train and evaluation, how many ``sequences`` and ``tokens`` there are."""
    return MANIFEST.mark({"key": key, "parts": {name: dict(counts) for name, counts in parts.items()}})


def describe_mismatch(manifest: Mapping[str, Any] | None, *, key: str) -> str | None:
    """Why these are not the tokens of this key; None if they are."""
    if manifest is None:
        return f"it holds no {TOKENS_MANIFEST}; expected tokens of key {key}"
    try:
        found = MANIFEST.read(manifest).get("key")
    except VersionUnknown as error:
        return str(error)
    return None if found == key else f"its {TOKENS_MANIFEST} has key {found}; expected key {key}"
