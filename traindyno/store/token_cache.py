"""Tokens that were made before: a marker for each content key names the folder that holds them, and is written last."""

from traindyno.core.s3_keys import ready_tokens_key, s3_uri, tokens_folder
from traindyno.core.suite.preparation import (
    TOKENS_MANIFEST,
    TokensMarker,
    describe_mismatch,
    parse_tokens_marker,
    tokens_marker_document,
)
from traindyno.core.suite.suite import Tokens
from traindyno.store.results_bucket import ResultsBucket

# Storage keeps prepared data for 90 days, and an execution may take 28 of them.
USABLE_SECONDS = 60 * 24 * 3600


class TokenCache:
    def __init__(self, bucket: ResultsBucket) -> None:
        self._bucket = bucket

    def find(self, key: str, *, oldest: float) -> Tokens | None:
        """None also if they were made before ``oldest``, an epoch time. Raises VersionUnknown."""
        marker = self._bucket.find_as(ready_tokens_key(key), parse_tokens_marker)
        return Tokens(key=key, s3_uri=marker.s3_uri) if marker and marker.made_at >= oldest else None

    def keep(self, key: str, job_name: str, *, made_at: float) -> str | None:
        """Mark the job's output as ready; returns the reason if it can't be used. Safe to repeat."""
        folder = tokens_folder(key, job_name)
        uri = s3_uri(self._bucket.name, folder)
        manifest = self._bucket.find_json(f"{folder}{TOKENS_MANIFEST}")
        problem = describe_mismatch(manifest, key=key)
        if problem:
            return f"the job completed, but its output at {uri} can't be used: {problem}"
        marker = TokensMarker(s3_uri=uri, made_at=made_at)
        document = tokens_marker_document(marker, key=key, job_name=job_name, manifest=manifest)
        self._bucket.write_json(ready_tokens_key(key), document)
        return None
