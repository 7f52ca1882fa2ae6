"""The marker of prepared tokens, at a place that their key names: where they are, and when they were made."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traindyno.core.documents.stored import from_document, to_document
from traindyno.core.documents.versions import Format

TOKENS_MARKER = Format(name="tokens marker", version=1, unmarked=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensMarker:
    """``made_at``: epoch seconds. Markers also have the key, the job and the manifest, for people."""

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
