"""The documents of the results bucket, the files of a run's step logs, and the markers of
tokens.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

from cattrs.errors import BaseValidationError

from traindyno.aws.objects import Objects
from traindyno.core.documents.problems import problems_of
from traindyno.core.documents.versions import VersionUnknown
from traindyno.core.errors import TraindynoError
from traindyno.core.jobs.journal_format import ENDED, JOURNAL
from traindyno.core.run.tokens import TOKENS_MANIFEST, Tokens, describe_mismatch
from traindyno.core.s3_keys import ready_tokens_key, s3_uri, tokens_folder
from traindyno.core.suite.preparation import (
    TokensMarker,
    parse_tokens_marker,
    tokens_marker_document,
)

MOST_KEPT = 8
PART_BYTES = 2**22
MOST_PROBLEMS = 3
# What readers of documents raise if one is not as it was written.
DAMAGE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    BaseValidationError,
)
Document = TypeVar("Document")
# One after another, those of 16 hosts and 24 runs would take most of the time that the end of a job
# takes.
READS_AT_ONCE = 8
# Storage keeps prepared data for 90 days, and an execution may take 28 of them.
USABLE_SECONDS = 60 * 24 * 3600


class ObjectMissing(TraindynoError):
    """An object that the lab wrote is no longer in its bucket."""


class StoredDocumentDamaged(TraindynoError):
    """An object of the bucket is not the document that the lab wrote."""


class ResultsBucket(Objects):
    @cached_property
    def _kept(self) -> dict[str, Any]:
        return {}

    def read_json(self, key: str) -> Any:
        return self.read_as(key, lambda document: document)

    def read_as(self, key: str, parse: Callable[[Any], Document]) -> Document:
        """The document as ``parse`` reads it. Raises StoredDocumentDamaged, or VersionUnknown."""
        return self._parsed(key, self.read(key), parse)

    def find_as(self, key: str, parse: Callable[[Any], Document]) -> Document | None:
        content = self.find(key)
        return None if content is None else self._parsed(key, content, parse)

    def read_fixed(self, key: str, parse: Callable[[Any], Document]) -> Document:
        """Read a document that is written once.

        A warm function reads it once and keeps a few such documents.
        """
        if key not in self._kept:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = self.read_as(key, parse)
        kept: Document = self._kept[key]
        return kept

    def find_json(self, key: str) -> Any | None:
        return self.find_as(key, lambda document: document)

    def write_json(self, key: str, document: Any) -> None:
        self.write(key, json.dumps(document, allow_nan=False).encode(), "application/json")

    def read(self, key: str) -> bytes:
        content = self.find(key)
        if content is None:
            raise self._missing(key)
        return content

    def _missing(self, key: str) -> ObjectMissing:
        return ObjectMissing(
            f"s3://{self.name}/{key} does not exist: expected the object that the lab wrote"
        )

    def read_tail(self, key: str, byte_count: int) -> str:
        """The end of an object, empty if there is none; its first line may be truncated."""
        return (self.find(key, last_bytes=byte_count) or b"").decode(errors="replace")

    def _parsed(self, key: str, content: bytes, parse: Callable[[Any], Document]) -> Document:
        uri = f"s3://{self.name}/{key}"
        try:
            return parse(json.loads(content))
        except VersionUnknown as error:
            raise VersionUnknown(f"{uri}: {error}") from error
        except DAMAGE as error:
            problem = f"{type(error).__name__}: {error}"
            if isinstance(error, BaseValidationError):
                problem = "; ".join(
                    str(line) for line in islice(problems_of(error, ""), MOST_PROBLEMS)
                )
            raise StoredDocumentDamaged(
                f"{uri} is damaged: {problem}; expected the document that the lab wrote"
            ) from error

    def step_log_files(self, prefix: str) -> dict[str, Iterator[str]]:
        """File name → lines, of every process of every attempt (``step_logs_prefix``).

        A part is read when its lines are.
        """
        keys = [key for key in self.list_keys(prefix) if key.endswith(".jsonl")]
        return {key.removeprefix(prefix): self._lines(key) for key in keys}

    def _lines(self, key: str) -> Iterator[str]:
        rest = b""
        for part in self.read_parts(key):
            *lines, rest = (rest + part).split(b"\n")
            yield from (f"{line.decode(errors='replace')}\n" for line in lines)
            if len(rest) > PART_BYTES:  # no line of a log is as long; its reader refuses it
                yield rest.decode(errors="replace")
                rest = b""
        if rest:
            yield rest.decode(errors="replace")

    def read_parts(self, key: str) -> Iterator[bytes]:
        """The content of an object of any size. Raises ObjectMissing."""
        first_byte = 0
        part = None
        while part is None or len(part) == PART_BYTES:
            part = self.find_part(key, first_byte, PART_BYTES)
            if part is None:
                raise self._missing(key)
            yield part
            first_byte += len(part)


def read_shared_job_files(
    prefix: str, keys: Iterable[str], bucket: ResultsBucket
) -> dict[str, bytes]:
    """The journals, and how the runs ended, by their keys below the ``prefix`` of a job's
    checkpoints.
    """
    read = [key for key in keys if key.split("/")[0] == JOURNAL or ENDED in key.split("/")[1:2]]
    with ThreadPoolExecutor(READS_AT_ONCE) as pool:
        texts = pool.map(lambda key: bucket.find(f"{prefix}{key}"), read)
        return {key: text for key, text in zip(read, texts, strict=True) if text is not None}


class TokenCache:
    def __init__(self, bucket: ResultsBucket) -> None:
        self._bucket = bucket

    def find(self, key: str, *, oldest: float) -> Tokens | None:
        """None also if they were made before ``oldest``, an epoch time. Raises VersionUnknown."""
        marker = self._bucket.find_as(ready_tokens_key(key), parse_tokens_marker)
        return (
            Tokens(key=key, s3_uri=marker.s3_uri) if marker and marker.made_at >= oldest else None
        )

    def keep(self, key: str, job_name: str, *, made_at: float) -> str | None:
        """Mark the job's output as ready; returns the reason if it can't be used.

        Safe to repeat.
        """
        folder = tokens_folder(key, job_name)
        uri = s3_uri(self._bucket.name, folder)
        problem = describe_mismatch(self._bucket.find_json(f"{folder}{TOKENS_MANIFEST}"), key=key)
        if problem:
            return f"the job completed, but its output at {uri} can't be used: {problem}"
        document = tokens_marker_document(TokensMarker(s3_uri=uri, made_at=made_at))
        self._bucket.write_json(ready_tokens_key(key), document)
        return None
