"""Records of models, endpoint configurations, endpoints and transform jobs, and their store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from localcloud.sagemaker_service.jobs.job_store import CONVERTER, JobStore, NewEvent


class EndpointStatus(StrEnum):
    CREATING = "Creating"
    IN_SERVICE = "InService"
    FAILED = "Failed"
    DELETING = "Deleting"


class TransformStatus(StrEnum):
    IN_PROGRESS = "InProgress"
    COMPLETED = "Completed"
    FAILED = "Failed"
    STOPPING = "Stopping"
    STOPPED = "Stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """``request`` is the request that created the resource, without tags."""

    name: str
    arn: str
    request: Mapping[str, Any]
    created_ms: int
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedModel(Record):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointConfig(Record):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(Record):
    status: EndpointStatus
    modified_ms: int
    failure_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformJob(Record):
    status: TransformStatus
    modified_ms: int
    started_ms: int | None = None
    ended_ms: int | None = None
    failure_reason: str | None = None


# The resource part of each kind's ARN, which is also its kind in the store.
KINDS: Mapping[type[Record], str] = {
    HostedModel: "model",
    EndpointConfig: "endpoint-config",
    Endpoint: "endpoint",
    TransformJob: "transform-job",
}
Kind = TypeVar("Kind", bound=Record)


class HostingStore:
    def __init__(self, store: JobStore) -> None:
        self._store = store

    def get(self, kind: type[Kind], name: str) -> Kind | None:
        document = self._store.documents(KINDS[kind]).get(name)
        return None if document is None else CONVERTER.structure(document, kind)

    def all(self, kind: type[Kind]) -> list[Kind]:
        """All records of the kind, in the order of their creation."""
        found = [CONVERTER.structure(document, kind) for document in self._store.documents(KINDS[kind]).values()]
        return sorted(found, key=lambda record: record.created_ms)

    def put(self, record: Record, events: Sequence[NewEvent] = ()) -> None:
        """Writes the record and its events in one transaction."""
        document = CONVERTER.unstructure(record)
        self._store.write_document(KINDS[type(record)], record.name, document, events)

    def remove(self, record: Record) -> None:
        self._store.write_document(KINDS[type(record)], record.name, None)
