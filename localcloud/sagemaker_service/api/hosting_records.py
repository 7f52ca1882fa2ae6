"""What the operations on models, endpoints and transform jobs share: new records, existing records, and tags."""

from collections.abc import Mapping
from typing import Any

from localcloud.sagemaker_service.api.operations import tag_list, tags_of
from localcloud.sagemaker_service.api_error import validation_error
from localcloud.sagemaker_service.clock import Clock
from localcloud.sagemaker_service.hosting.hosting import KINDS, HostingStore, Kind, Record


class HostingRecords:
    """``arn_prefix`` is the part of an ARN before the kind of resource."""

    def __init__(self, store: HostingStore, *, clock: Clock, arn_prefix: str) -> None:
        self.store = store
        self._clock = clock
        self._arn_prefix = arn_prefix

    @property
    def account_id(self) -> str:
        return self._arn_prefix.rstrip(":").rpartition(":")[2]

    def new(self, kind: type[Record], name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that every record has. Raises ApiError for a name that is taken."""
        if self.store.get(kind, name) is not None:
            raise validation_error(f"Cannot create already existing {self._described(kind, name)}.")
        return {
            "name": name,
            "arn": self._arn(kind, name),
            "request": {member: value for member, value in request.items() if member != "Tags"},
            "created_ms": self._clock.now_ms(),
            "tags": tags_of(request),
        }

    def existing(self, kind: type[Kind], name: str) -> Kind:
        record = self.store.get(kind, name)
        if record is None:
            raise validation_error(f"Could not find {self._described(kind, name)}.")
        return record

    def list_tags(self, arn: str) -> Mapping[str, Any] | None:
        """The answer of ListTags; None if no record has this ARN."""
        for kind, name in KINDS.items():
            if arn.startswith(f"{self._arn_prefix}{name}/"):
                for record in self.store.all(kind):
                    if record.arn == arn:
                        return tag_list(record.tags)
        return None

    def _arn(self, kind: type[Record], name: str) -> str:
        return f"{self._arn_prefix}{KINDS[kind]}/{name.lower()}"

    def _described(self, kind: type[Record], name: str) -> str:
        return f'{KINDS[kind].replace("-", " ")} "{self._arn(kind, name)}"'
