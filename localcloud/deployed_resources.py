"""Which resources of the deployed stacks MiniStack has lost: CloudFormation lists them even if their service forgot."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from localcloud.aws_client import local_client


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The operation that lists a type's resources; ``identity`` of each is its physical id in CloudFormation."""

    service: str
    operation: str
    rows: str
    identity: str | None = None


LISTINGS: Mapping[str, Listing] = {
    "AWS::DynamoDB::GlobalTable": Listing(service="dynamodb", operation="list_tables", rows="TableNames"),
    "AWS::Events::Rule": Listing(service="events", operation="list_rules", rows="Rules", identity="Name"),
    "AWS::IAM::Role": Listing(service="iam", operation="list_roles", rows="Roles", identity="RoleName"),
    "AWS::Lambda::Function": Listing(
        service="lambda", operation="list_functions", rows="Functions", identity="FunctionName"
    ),
    "AWS::S3::Bucket": Listing(service="s3", operation="list_buckets", rows="Buckets", identity="Name"),
    "AWS::SNS::Topic": Listing(service="sns", operation="list_topics", rows="Topics", identity="TopicArn"),
    "AWS::SSM::Parameter": Listing(service="ssm", operation="describe_parameters", rows="Parameters", identity="Name"),
    "AWS::StepFunctions::StateMachine": Listing(
        service="stepfunctions", operation="list_state_machines", rows="stateMachines", identity="stateMachineArn"
    ),
}


class DeployedResources:
    def __init__(self, settings: Mapping[str, str]) -> None:
        """``settings``: the environment variables of the local cloud."""
        self._settings = settings

    def complete_stacks(self) -> set[str]:
        """The names of the complete stacks. There are none if MiniStack was killed before it saved its state."""
        complete = ["CREATE_COMPLETE", "UPDATE_COMPLETE"]
        rows = self._list("cloudformation", "list_stacks", "StackSummaries", StackStatusFilter=complete)
        return {row["StackName"] for row in rows}

    def missing(self, stack: str) -> Iterator[str]:
        """The resources of the stack that are gone. Those of types that no run needs are not looked at."""
        found: dict[str, set[str]] = {}
        for row in self._list("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=stack):
            kind, identity = row["ResourceType"], row["PhysicalResourceId"]
            if kind in LISTINGS and kind not in found:
                found[kind] = self._identities(kind)
            if kind in LISTINGS and identity not in found[kind]:
                yield f"{kind} {identity}"

    def _identities(self, kind: str) -> set[str]:
        listing = LISTINGS[kind]
        rows = self._list(listing.service, listing.operation, listing.rows)
        return {str(row[listing.identity]) if listing.identity else str(row) for row in rows}

    def _list(self, service: str, operation: str, rows: str, **arguments: Any) -> Iterator[Any]:
        pages = local_client(self._settings, service).get_paginator(operation).paginate(**arguments)
        return (row for page in pages for row in page.get(rows, ()))
