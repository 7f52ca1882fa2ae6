"""What is written about prepared tokens: the manifest beside them, and the marker at a place that their key names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traindyno.core.documents.stored import from_document, to_document
from traindyno.core.documents.versions import Format, VersionUnknown

# It lies beside the tokens, with the memory estimates of the suite's settings, if the suite asks for them.
MEMORY_FILE = "traindyno-memory.json"
TOKENS_MANIFEST = "traindyno-tokens.json"
MANIFEST = Format(name=TOKENS_MANIFEST, version=1)
TOKENS_MARKER = Format(name="tokens marker", version=1)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensMarker:
    """Where the tokens are. ``made_at``: epoch seconds.

    Markers also have the key, the job and the manifest, for people.
    """

    s3_uri: str
    made_at: float


def tokens_marker_document(
    marker: TokensMarker, *, key: str, job_name: str, manifest: Mapping[str, Any] | None
) -> dict[str, Any]:
    described = {"key": key, "job_name": job_name, "manifest": manifest}
    return TOKENS_MARKER.mark({**to_document(marker), **described})


def parse_tokens_marker(document: Mapping[str, Any]) -> TokensMarker:
    """Raises VersionUnknown."""
    return from_document(TOKENS_MARKER.read(document), TokensMarker)
