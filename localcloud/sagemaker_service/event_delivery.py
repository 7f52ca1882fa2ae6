"""Delivers state change events to Lambda functions by the account's EventBridge rules.

EventBridge accepts no events of AWS's own sources from clients, on AWS and locally. So the rules
are read and applied here.
"""

import json
import logging
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from localcloud.environment import REGION
from localcloud.sagemaker_service.jobs.job_store import JobStore, StoredEvent
from localcloud.sagemaker_service.service_health import RETRY_SECONDS, Activity, Worker

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_s3 import S3Client

LOG = logging.getLogger(__name__)
RULES_KEPT_SECONDS = 5.0
LOOK_AGAIN_SECONDS = 0.25
LONGEST_RETRY_SECONDS = 30.0
DELIVERED_AT_ONCE = 8
LAMBDA_ARN_PART = ":lambda:"
# Its pattern, and the functions that are its targets
Rule = tuple[Mapping[str, Any], list[str]]
SETTINGS = Config(
    connect_timeout=5,
    read_timeout=60,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=32,
    s3={"addressing_style": "path"},
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)


class EventDelivery:
    """Delivers each event at least once: the store keeps it until every target has accepted it."""

    def __init__(
        self, *, store: JobStore, events: "EventBridgeClient", functions: Any, activity: Activity
    ) -> None:
        """Delivers to functions through ``functions``, boto3's client of Lambda."""
        self._store = store
        self._events = events
        self._functions = functions
        self._activity = activity
        self._rules: list[Rule] = []
        self._rules_read_at = float("-inf")
        self._pool = ThreadPoolExecutor(DELIVERED_AT_ONCE, thread_name_prefix="event")
        self._worker = Worker("event delivery", self._deliver_due, idle_seconds=LOOK_AGAIN_SECONDS)

    def start(self) -> None:
        # Their times were counted by the clock of another process, perhaps before the machine
        # started.
        self._store.make_events_due()
        self._worker.start()

    def wake(self) -> None:
        self._worker.wake()

    def close(self) -> None:
        self._worker.close()
        self._pool.shutdown()

    def _deliver_due(self) -> bool:
        """Whether events were due."""
        due = self._store.due_events(time.monotonic(), 10 * DELIVERED_AT_ONCE)
        if due and self._has_current_rules(due):
            with self._activity.busy():
                delivered = list(self._pool.map(self._try_to_deliver, due))
                self._store.remove_events(
                    [event_id for event_id in delivered if event_id is not None]
                )
        return bool(due)

    def _has_current_rules(self, due: list[StoredEvent]) -> bool:
        if time.monotonic() - self._rules_read_at < RULES_KEPT_SECONDS:
            return True
        try:
            self._rules = self._read_rules()
        except (BotoCoreError, ClientError) as error:
            LOG.warning("EventBridge rules not read, %d events wait: %s", len(due), error)
            self._worker.ending.wait(RETRY_SECONDS)
            return False
        self._rules_read_at = time.monotonic()
        return True

    def _read_rules(self) -> list[Rule]:
        rules = []
        for page in self._events.get_paginator("list_rules").paginate():
            for row in page["Rules"]:
                pattern = row.get("EventPattern")
                if pattern and row.get("State") != "DISABLED":
                    targets = self._events.list_targets_by_rule(Rule=row["Name"])["Targets"]
                    functions = [
                        target["Arn"] for target in targets if LAMBDA_ARN_PART in target["Arn"]
                    ]
                    rules.append((json.loads(pattern), functions))
        return rules

    def _try_to_deliver(self, event: StoredEvent) -> int | None:
        """The event's id if every target has accepted it; None if delivery must be repeated."""
        try:
            payload = json.dumps(event.document).encode()
            for pattern, functions in self._rules:
                for arn in functions if is_match(pattern, event.document) else ():
                    self._functions.invoke(
                        FunctionName=arn, InvocationType="Event", Payload=payload
                    )
        except (BotoCoreError, ClientError) as error:
            wait_seconds = min(0.5 * 2**event.failures, LONGEST_RETRY_SECONDS)
            (name,) = event.document["resources"]
            LOG.warning("event of %s not delivered, again in %.1f s: %s", name, wait_seconds, error)
            self._rules_read_at = float("-inf")
            self._store.postpone_event(event.event_id, time.monotonic() + wait_seconds)
            return None
        return event.event_id


def is_match(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Whether the event matches the rule's pattern of plain values and prefixes; nothing matches
    another comparison.
    """

    def is_value(choice: Any, value: Any) -> bool:
        if not isinstance(choice, Mapping):
            return bool(choice == value)
        prefix = choice.get("prefix")
        return isinstance(prefix, str) and isinstance(value, str) and value.startswith(prefix)

    def is_member(wanted: Any, actual: Any) -> bool:
        if isinstance(wanted, Mapping):
            return isinstance(actual, Mapping) and is_match(wanted, actual)
        values = actual if isinstance(actual, list) else [actual]
        return isinstance(wanted, list) and any(
            is_value(choice, value) for choice in wanted for value in values
        )

    return all(is_member(wanted, event.get(name)) for name, wanted in pattern.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsClients:
    s3: "S3Client"
    logs: Any
    events: "EventBridgeClient"
    functions: Any


def local_aws_clients(endpoint: str, access_key_id: str) -> AwsClients:
    session = boto3.Session(
        aws_access_key_id=access_key_id, aws_secret_access_key="test", region_name=REGION
    )
    return AwsClients(
        s3=session.client("s3", endpoint_url=endpoint, config=SETTINGS),
        logs=session.client("logs", endpoint_url=endpoint, config=SETTINGS),
        events=session.client("events", endpoint_url=endpoint, config=SETTINGS),
        functions=session.client("lambda", endpoint_url=endpoint, config=SETTINGS),
    )
