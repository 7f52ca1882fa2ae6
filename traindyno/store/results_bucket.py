"""The documents of the results bucket, and the files of a run's step logs."""

import json
from collections.abc import Iterator
from functools import cached_property
from io import BytesIO
from typing import Any

from traindyno.aws.objects import Objects
from traindyno.core.errors import TraindynoError
from traindyno.core.s3_keys import checkpoints_prefix

FIXED_DOCUMENTS = 8


class ObjectMissing(TraindynoError):
    """An object that the lab wrote is no longer in its bucket."""


class ResultsBucket(Objects):
    @cached_property
    def _fixed(self) -> dict[str, Any]:
        return {}

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
        content = self.find(key)
        return None if content is None else json.loads(content)

    def write_json(self, key: str, document: Any) -> None:
        self.write(key, json.dumps(document, allow_nan=False).encode(), "application/json")

    def read(self, key: str) -> bytes:
        content = self.find(key)
        if content is None:
            raise ObjectMissing(f"s3://{self.name}/{key} does not exist: expected the object that the lab wrote")
        return content

    def read_tail(self, key: str, byte_count: int) -> str:
        """The end of an object, empty if there is none; its first line may be truncated."""
        return (self.find(key, last_bytes=byte_count) or b"").decode(errors="replace")

    def step_log_files(self, execution_id: str, run_id: str) -> dict[str, Iterator[str]]:
        """File name → lines, of every process of every attempt of the run. A file is read when its lines are."""
        prefix = f"{checkpoints_prefix(execution_id, run_id)}step_log/"
        keys = [key for key in self.list_keys(prefix) if key.endswith(".jsonl")]
        return {key.removeprefix(prefix): self._lines(key) for key in keys}

    def _lines(self, key: str) -> Iterator[str]:
        for line in BytesIO(self.read(key)):
            yield line.decode(errors="replace")
