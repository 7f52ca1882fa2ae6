"""The token of a gated model: from Secrets Manager into the process, and nowhere else."""

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from training.errors import WorkloadError
from training.models.hub import use_hub_token

ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:hub-AbCdEf"
TOKEN = "hf_" + "x" * 34


class Secrets:
    """Secrets Manager by botocore's service model, and the region that it was asked in."""

    def __init__(self) -> None:
        self.regions: list[str] = []
        self.client = boto3.client(
            "secretsmanager",
            region_name="eu-west-1",
            aws_access_key_id="x",
            aws_secret_access_key="x",
        )
        self.stubber = Stubber(self.client)
        self.stubber.activate()

    def connect(self, region: str) -> Any:
        self.regions.append(region)
        return self.client


def use(text: str) -> dict[str, str]:
    secrets = Secrets()
    environment = dict[str, str]()
    answer = {"ARN": ARN, "Name": "hub", "SecretString": text}
    secrets.stubber.add_response("get_secret_value", answer, {"SecretId": ARN})
    use_hub_token(ARN, environment=environment, connect=secrets.connect)
    assert secrets.regions == ["eu-west-1"]
    return environment


@pytest.mark.parametrize(
    "text", [TOKEN, f" {TOKEN}\n", f'{{"token": "{TOKEN}"}}', f'{{"HF_TOKEN": "{TOKEN}"}}']
)
def test_the_secret_is_the_token_or_an_object_with_it(text: str) -> None:
    assert use(text) == {"HF_TOKEN": TOKEN}


def test_without_a_secret_nothing_is_asked_and_an_existing_token_stays() -> None:
    secrets = Secrets()
    use_hub_token(None, environment={}, connect=secrets.connect)
    use_hub_token(ARN, environment={"HF_TOKEN": "own"}, connect=secrets.connect)
    assert secrets.regions == []


def test_an_unreadable_secret_is_named_and_not_shown() -> None:
    secrets = Secrets()
    secrets.stubber.add_client_error("get_secret_value", "AccessDeniedException", TOKEN)
    with pytest.raises(
        WorkloadError, match=f"can't be read from {ARN}: ClientError; expected"
    ) as raised:
        use_hub_token(ARN, environment={}, connect=secrets.connect)
    assert TOKEN not in str(raised.value)


def test_an_object_without_the_token_says_the_expected_field() -> None:
    with pytest.raises(WorkloadError, match="expected a text field token or HF_TOKEN"):
        use('{"password": "x"}')
