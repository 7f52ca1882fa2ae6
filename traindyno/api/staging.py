"""Upload the local files that a suite names (data, a model, a script's folder) to S3, once per
content.
"""

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindyno import bundle
from traindyno.api import sample_data
from traindyno.api.local_paths import PRETRAINED, expanded, find_data, find_local
from traindyno.aws.objects import Objects
from traindyno.core.costs.quantity_text import bytes_text, counted
from traindyno.core.s3_keys import code_key, data_prefix, is_s3_uri, s3_uri
from traindyno.core.suite.choices import Task

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# The bucket expires code and data after 90 days; an execution takes up to 28.
RENEWED_AFTER = timedelta(days=30)


def renew_staged(document: Mapping[str, Any], bucket: Objects) -> None:
    """Keep the uploads that a stored suite names until the end of its execution: its local files
    may be gone.
    """
    own = s3_uri(bucket.name, "")
    named = re.escape(own) + data_prefix("[0-9a-f]{64}")
    before = datetime.now(UTC) - RENEWED_AFTER
    for uri in sorted(set(re.findall(named, json.dumps(document)))):
        bucket.renew(uri.removeprefix(own), before=before.timestamp())


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingArea:
    """The upload's destination, of a suite that has passed ``check_startable``.

    Relative paths start at ``beside``, the suite file's folder.

    ``allowed`` travels although the rule of travelling_files.py leaves it out. Without ``sends`` it
    only computes the names, by which a plan finds earlier runs of the same work.
    """

    beside: Path
    s3: "S3Client"
    bucket: str
    tell: Callable[[str], None]
    sends: bool = True
    allowed: Collection[Path] = ()

    def stage_suite(self, document: dict[str, Any]) -> dict[str, Any]:
        """The suite document with every local path replaced by the S3 URI of its copy.

        Objects are named by their content, so an existing object is not uploaded again.
        """
        staged = deepcopy(document)
        workload = staged.get("workload", {})
        for section in ("dataset", *PRETRAINED):
            part = workload.get(section)
            is_loaded = section in PRETRAINED and workload.get("task") != Task.SCRIPT
            if isinstance(part, str):  # the short form of a model
                workload[section] = self._staged_path(part, is_pretrained=is_loaded)
            elif isinstance(part, dict) and isinstance(part.get("path"), str):
                part["path"] = self._staged_path(part["path"], is_pretrained=is_loaded)
            if isinstance(part, dict) and isinstance(part.get("chat_template"), str):
                part["chat_template"] = self._staged_path(part["chat_template"])
        channels = workload.get("channels")
        for name, path in channels.items() if isinstance(channels, dict) else ():
            channels[name] = self._staged_path(path) if isinstance(path, str) else path
        if isinstance(workload.get("source"), str) and not is_s3_uri(workload["source"]):
            workload["source"] = self._staged_source(expanded(workload["source"], self.beside))
        return staged

    def _staged_path(self, path: str, *, is_pretrained: bool = False) -> str:
        if sample_data.is_sample(path):
            with tempfile.TemporaryDirectory() as folder:
                return self._staged_files(sample_data.write_sample(path, Path(folder)))
        local = find_local(path, self.beside)
        return path if local is None else self._staged_files(local, is_pretrained=is_pretrained)

    def _staged_files(self, local: Path, *, is_pretrained: bool = False) -> str:
        files = find_data(local, self.allowed, is_pretrained=is_pretrained).files
        digest = hashlib.sha256()
        for name, path in files.items():
            with path.open("rb") as file:
                digest.update(name.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
        prefix = data_prefix(digest.hexdigest())
        present = self._keys(prefix) if self.sends else set()
        missing = {
            name: path
            for name, path in files.items()
            if self.sends and f"{prefix}{name}" not in present
        }
        if missing:
            size = sum(path.stat().st_size for path in missing.values())
            self.tell(
                f"staging {counted(len(missing), 'file')} ({bytes_text(size)}) to "
                f"s3://{self.bucket}/{prefix}"
            )
        for name, path in missing.items():
            self.s3.upload_file(str(path), self.bucket, f"{prefix}{name}")
        return s3_uri(self.bucket, prefix)

    def _staged_source(self, folder: Path) -> str:
        archive = bundle.pack(bundle.script_files(folder, allowed=self.allowed))
        key = code_key(hashlib.sha256(archive).hexdigest())
        if self.sends and key not in self._keys(key):
            self.tell(
                f"uploading the source folder {folder} with Traindyno's callbacks "
                f"({bytes_text(len(archive))})"
            )
            self.s3.put_object(Bucket=self.bucket, Key=key, Body=archive)
        return s3_uri(self.bucket, key)

    def _keys(self, prefix: str) -> set[str]:
        """The keys of objects that exist until the end of the longest execution; older ones are
        uploaded again.
        """
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        contents = (content for page in pages for content in page.get("Contents", []))
        return {
            content["Key"]
            for content in contents
            if content["LastModified"] > datetime.now(UTC) - RENEWED_AFTER
        }
