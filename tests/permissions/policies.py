"""The policy of a function's role in a synthesised template, and what a call needs there, with the
lab's own names.

Statements that allow are compared by action and resource. Denials, boundaries and control policies
are not modelled: no role here has a denial, and the others belong to the account.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Template as Text
from typing import Any

from aws_cdk.assertions import Match, Template

from tests.infra.synthesis import as_list, only, properties, statements
from tests.permissions.actions import NEEDS, Need
from tests.permissions.calls import Call

PSEUDO = {
    "Partition": "aws",
    "Region": "eu-west-1",
    "AccountId": "111122223333",
    "URLSuffix": "amazonaws.com",
}
OURS = f"{PSEUDO['Region']}:{PSEUDO['AccountId']}"
PSEUDO["StackId"] = f"arn:aws:cloudformation:{OURS}:stack/ID"
# The attribute Arn of a resource, by type; of a topic, this is its Ref too.
TOPIC = "AWS::SNS::Topic"
ARNS = {
    "AWS::DynamoDB::GlobalTable": f"arn:aws:dynamodb:{OURS}:table/ID",
    "AWS::IAM::Role": f"arn:aws:iam::{PSEUDO['AccountId']}:role/ID",
    "AWS::KMS::Key": f"arn:aws:kms:{OURS}:key/ID",
    "AWS::Logs::LogGroup": f"arn:aws:logs:{OURS}:log-group:ID:*",
    "AWS::S3::Bucket": "arn:aws:s3:::ID",
    TOPIC: f"arn:aws:sns:{OURS}:ID",
    "AWS::SQS::Queue": f"arn:aws:sqs:{OURS}:ID",
}


@dataclass(frozen=True, slots=True, order=True)
class Allowed:
    """An action on resources: a pattern in a statement, or one resource in what a call needs."""

    action: str
    resource: str

    def covers(self, other: "Allowed") -> bool:
        return self.action == other.action and bool(
            _pattern(self.resource).fullmatch(other.resource)
        )


class FunctionPolicy:
    def __init__(
        self, template: Template, function: str, *, data_buckets: Sequence[str] = ()
    ) -> None:
        """Reads a template that was made with these data buckets."""
        self._template = template
        self._data_buckets = data_buckets
        self._lab = template.to_json()["Resources"]
        handler = {"Handler": f"lambdas.{function}.handler.handle"}
        (self._function,) = properties(template, "AWS::Lambda::Function", handler).values()
        self.variables = self._variables()

    def allowed(self) -> frozenset[Allowed]:
        role, _ = self._function["Role"]["Fn::GetAtt"]
        policy = statements(self._template, role)
        assert all(statement["Effect"] == "Allow" for statement in policy)
        # Roles are parameters of SageMaker's operations only; a function reads an endpoint's tags
        # before it deletes it.
        known = (
            {"iam:PassedToService": "sagemaker.amazonaws.com"},
            {"aws:ResourceTag/traindyno:lab": self.variables["LAB"]},
        )
        conditions = [statement["Condition"] for statement in policy if "Condition" in statement]
        assert all(
            condition in [{"StringEquals": pair} for pair in known] for condition in conditions
        )
        return frozenset(
            Allowed(action, self._resolve(resource))
            for statement in policy
            for action in as_list(statement["Action"])
            for resource in as_list(statement["Resource"])
        )

    def needed_by(self, call: Call) -> frozenset[Allowed]:
        given = dict(call.parameters)
        return frozenset(
            resource
            for need in NEEDS[call.operation]
            if _applies(need, given)
            for resource in self._resources(need, given)
        )

    def needed_by_lambda(self) -> Iterator[Allowed]:
        """What Lambda needs for the function's log, and for its events that failed."""
        group = self._resolve(self._function["LoggingConfig"]["LogGroup"])
        stream = f"arn:aws:logs:{OURS}:log-group:{group}:log-stream:any"
        yield from (
            Allowed(action, stream) for action in ("logs:CreateLogStream", "logs:PutLogEvents")
        )
        if queue := self._function.get("DeadLetterConfig"):
            yield Allowed("sqs:SendMessage", self._resolve(queue["TargetArn"]))

    def _resources(self, need: Need, given: Mapping[str, str]) -> Iterator[Allowed]:
        """None where it is about a key or a bucket that this lab does not have."""
        resource = need.resource.format(**given)
        if self.variables.get(resource.removeprefix("$"), "") is None:
            return
        known = {name: value for name, value in self.variables.items() if value is not None}
        for bucket in self._data_buckets if "$DATA_BUCKET" in resource else [""]:
            yield Allowed(
                need.action.format(**given), Text(resource).substitute(known, DATA_BUCKET=bucket)
            )

    def _variables(self) -> dict[str, str | None]:
        """The function's own, as far as calls name them, and the lab's."""
        given = self._function["Environment"]["Variables"]
        named = {
            name: self._resolve(value)
            for name, value in given.items()
            if name in {"LAB", "BUCKET", "TABLE", "SOURCE_S3_URI"} or name.endswith("_ARN")
        }
        return {
            **named,
            "REGION": PSEUDO["Region"],
            "ACCOUNT": PSEUDO["AccountId"],
            "STACK": PSEUDO["StackId"],
            "SOURCE": named.get("SOURCE_S3_URI", "").removeprefix("s3://"),
            "EXECUTIONS": named.get("STATE_MACHINE_ARN", "").replace(
                ":stateMachine:", ":execution:"
            ),
            "OUTPUT_KEY": self._lab_jobs().get("output_key_arn"),
            "VOLUME_KEY": self._lab_jobs().get("volume_key_arn"),
            "TOPIC_KEY": self._resolve(
                self._lab[only(self._template, TOPIC)]["Properties"]["KmsMasterKeyId"]
            ),
        }

    def _lab_jobs(self) -> dict[str, Any]:
        """What was decided about the jobs of the whole lab; only functions that start jobs are
        told.
        """
        told = {"Environment": {"Variables": {"LAB_JOBS": Match.any_value()}}}
        for function in properties(self._template, "AWS::Lambda::Function", told).values():
            return dict(json.loads(function["Environment"]["Variables"]["LAB_JOBS"]))
        return {}

    def _resolve(self, value: Any) -> str:
        match value:
            case str():
                return value
            case {"Fn::Join": [str(separator), list(parts)]}:
                return separator.join(map(self._resolve, parts))
            case {"Fn::Sub": str(text)}:
                return re.sub(r"\$\{AWS::(\w+)\}", lambda match: PSEUDO[match[1]], text)
            case {"Ref": str(name)} if name.startswith("AWS::"):
                return PSEUDO[name.removeprefix("AWS::")]
            case {"Ref": str(name)}:
                return ARNS[TOPIC].replace("ID", name) if self._type(name) == TOPIC else name
            case {"Fn::GetAtt": [str(name), "Arn"]}:
                return ARNS[self._type(name)].replace("ID", name)
        raise ValueError(
            f"expected text or an intrinsic function that is known here, found {value}"
        )

    def _type(self, name: str) -> str:
        return str(self._lab[name]["Type"])


def _applies(need: Need, given: Mapping[str, str]) -> bool:
    name, pattern = need.where
    return not name or bool(re.fullmatch(pattern, given.get(name, "")))


def _pattern(resource: str) -> re.Pattern[str]:
    """IAM's wildcards."""
    return re.compile(
        "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in resource)
    )
