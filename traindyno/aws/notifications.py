"""Announce a verdict: an SNS message to the lab's topic, and an event on the event bus."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from traindyno.core.documents.places import mail_subject
from traindyno.core.documents.problems import visible
from traindyno.core.errors import ServiceFault
from traindyno.core.lab_names import EVENT_SOURCE

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_sns import SNSClient

DETAIL_TYPE = "Traindyno Suite Judged"
SUBJECT_LENGTH = 100


def notify(sns: "SNSClient", topic_arn: str, *, subject: str, text: str) -> None:
    """Text of a suite can be in both."""
    shown = mail_subject(subject)[:SUBJECT_LENGTH]
    sns.publish(TopicArn=topic_arn, Subject=shown, Message=visible(text))


def put_verdict_event(events: "EventBridgeClient", detail: Mapping[str, Any]) -> None:
    answer = events.put_events(
        Entries=[{"Source": EVENT_SOURCE, "DetailType": DETAIL_TYPE, "Detail": json.dumps(detail)}]
    )
    refused = [answered for answered in answer["Entries"] if "ErrorCode" in answered]
    if refused:
        raise ServiceFault(f"the event bus refused {DETAIL_TYPE}: {refused[0]}")
