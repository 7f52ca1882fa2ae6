"""The documents of the results bucket, and the files of a run's step logs."""

import json
from collections.abc import Iterator
from typing import Any

from traindyno.aws.objects import Objects
from traindyno.core.errors import TraindynoError
from traindyno.core.s3_keys import checkpoints_prefix, s3_uri

FIXED_DOCUMENTS = 8


class ObjectMissing(TraindynoError):
    """An object that the lab wrote is no longer in its bucket."""


class ResultsBucket:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._fixed: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return self._objects.bucket

    def read_json(self, key: str) -> Any:
        return json.loads(self.read(key))

    def read_fixed_json(self, key: str) -> Any:
        """Read a document that is written once: a warm function reads it once and keeps a few such documents."""
        if key not in self._fixed:
            if len(self._fixed) >= FIXED_DOCUMENTS:
                self._fixed.clear()
            self._fixed[key] = self.read_json(key)
        return self._fixed[key]

    def find_json(self, key: str) -> Any | None:
        content = self._objects.find(key)
        return None if content is None else json.loads(content)

    def write_json(self, key: str, document: Any) -> None:
        self.write(key, json.dumps(document, allow_nan=False).encode(), "application/json")

    def read(self, key: str) -> bytes:
        content = self._objects.find(key)
        if content is None:
            raise ObjectMissing(f"expected s3://{self.name}/{key}, found no such object")
        return content

    def read_tail(self, key: str, byte_count: int) -> str:
        """The end of an object, empty if there is none; its first line may be truncated."""
        return (self._objects.find(key, last_bytes=byte_count) or b"").decode(errors="replace")

    def write(self, key: str, content: bytes, content_type: str) -> None:
        self._objects.write(key, content, content_type)

    def copy(self, source_s3_uri: str, key: str) -> str:
        """The URI of the copy."""
        self._objects.copy(source_s3_uri, key)
        return s3_uri(self.name, key)

    def copy_large(self, key: str, target_key: str) -> bool:
        """Copy within the bucket; False if there is no such object."""
        return self._objects.copy_large(key, target_key)

    def delete(self, key: str) -> None:
        self._objects.delete(key)

    def list_keys(self, prefix: str) -> Iterator[str]:
        return self._objects.list_keys(prefix)

    def step_log_files(self, execution_id: str, run_id: str) -> dict[str, list[str]]:
        """File name → lines, of every process of every attempt of the run."""
        prefix = f"{checkpoints_prefix(execution_id, run_id)}step_log/"
        keys = [key for key in self.list_keys(prefix) if key.endswith(".jsonl")]
        return {
            key.removeprefix(prefix): self.read(key).decode(errors="replace").splitlines(keepends=True) for key in keys
        }
