"""The manifest that lies beside prepared tokens: whose they are and how many."""

from collections.abc import Mapping
from typing import Any

TOKENS_MANIFEST = "traindyno-tokens.json"
VERSION = 1


def tokens_manifest(key: str, parts: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """``parts``: for train and evaluation, how many ``sequences`` and ``tokens`` there are."""
    return {"version": VERSION, "key": key, "parts": {name: dict(counts) for name, counts in parts.items()}}


def describe_mismatch(manifest: Mapping[str, Any] | None, *, key: str) -> str | None:
    """Why these are not the tokens of this key; None if they are."""
    if manifest is None:
        return f"it holds no {TOKENS_MANIFEST}; expected tokens of key {key}"
    if manifest.get("key") != key or manifest.get("version") != VERSION:
        found = f"version {manifest.get('version')}, key {manifest.get('key')}"
        return f"its {TOKENS_MANIFEST} says {found}; expected version {VERSION}, key {key}"
    return None
