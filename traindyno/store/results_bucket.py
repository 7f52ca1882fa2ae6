"""The results bucket: documents by key, and the files of a run's step logs."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.core.s3_keys import checkpoints_prefix

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

FIXED_DOCUMENTS = 8


class ResultsBucket:
    def __init__(self, s3: "S3Client", name: str) -> None:
        self._s3 = s3
        self.name = name
        self._fixed: dict[str, Any] = {}

    def read_json(self, key: str) -> Any:
        return json.loads(self.read(key))

    def read_fixed_json(self, key: str) -> Any:
        """Of a document that is written once: a warm function reads it once. Few are kept at a time."""
        if key not in self._fixed:
            if len(self._fixed) >= FIXED_DOCUMENTS:
                self._fixed.clear()
            self._fixed[key] = self.read_json(key)
        return self._fixed[key]

    def find_json(self, key: str) -> Any | None:
        try:
            return self.read_json(key)
        except ClientError as error:
            if error_code(error) in {"NoSuchKey", "404"}:
                return None
            raise

    def write_json(self, key: str, document: Any) -> None:
        self.write(key, json.dumps(document, allow_nan=False).encode(), "application/json")

    def read(self, key: str) -> bytes:
        return self._s3.get_object(Bucket=self.name, Key=key)["Body"].read()

    def read_tail(self, key: str, byte_count: int) -> str:
        """The end of an object; its first line may be cut off."""
        found = self._s3.get_object(Bucket=self.name, Key=key, Range=f"bytes=-{byte_count}")
        return found["Body"].read().decode(errors="replace")

    def write(self, key: str, content: bytes, content_type: str) -> None:
        self._s3.put_object(Bucket=self.name, Key=key, Body=content, ContentType=content_type)

    def list_keys(self, prefix: str) -> Iterator[str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        return (item["Key"] for page in pages for item in page.get("Contents", []))

    def step_log_files(self, execution_id: str, run_id: str) -> dict[str, list[str]]:
        """Lines by file name, for every process of every attempt of the run."""
        prefix = f"{checkpoints_prefix(execution_id, run_id)}step_log/"
        keys = [key for key in self.list_keys(prefix) if key.endswith(".jsonl")]
        return {
            key.removeprefix(prefix): self.read(key).decode(errors="replace").splitlines(keepends=True) for key in keys
        }
