"""`traindyno doctor`: each line with what to do, for this machine and for an account."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from botocore.stub import Stubber

from tests.unit.stubbed import KEYS, stubbed
from traindyno.api.suite_text import InputFileInvalid
from traindyno.cli.commands.doctor_command import bootstrap_qualifier, line_of
from traindyno.cli.inputs import doctor_checks
from traindyno.cli.inputs.doctor_checks import PULLED_IMAGES, SMOKE_INSTANCE, Check, check_account
from traindyno.core.lab_names import OPEN_ATTEMPTS_INDEX, LabOutput

REPO_ROOT = Path(__file__).resolve().parents[3]
PAGE = REPO_ROOT / "docs/lab-in-aws.md"
ARN = "arn:aws:sts::111122223333:assumed-role/Engineer/me"
ROLE = "arn:aws:iam::111122223333:role/Engineer"
REGION = "us-east-1"
# They are read in this order; the last one has no published code, so it is searched by its name.
QUOTAS = (
    f"{SMOKE_INSTANCE} for training job usage",
    "ml.m7i.xlarge for training job usage",
    "Number of instances across all training jobs",
    "ml.c5.xlarge for endpoint usage",
)
SCRIPTS_IMAGE = "pytorch:2.13-cpu-amzn2023-sagemaker"
FOUND: dict[str, Any] = {"images": [{}]}
GONE = {
    "failures": [{"failureCode": "ImageNotFound", "failureReason": "Requested image not found"}]
}


def test_doctor_command_checks_this_machine() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "traindyno", "doctor"],
        cwd=REPO_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    for subject in ("Python", "C++ compiler", "free disk space", "ports", "boto3", "torch"):
        assert re.search(rf"^(ok|missing) +{re.escape(subject)}: ", ran.stdout, re.MULTILINE), (
            subject
        )
    assert ran.returncode == (1 if "→" in ran.stdout else 0)


@pytest.mark.parametrize(
    ("finding", "advice"),
    [
        (doctor_checks._compiler(None), "install g++"),
        (doctor_checks._disk(3.0), "free 10 GB"),
        (doctor_checks._package("no-such-package"), "run `make install`"),
    ],
)
def test_missing_parts_come_with_advice(finding: Check, advice: str) -> None:
    assert (finding.advice or "").startswith(advice)
    first, second = line_of(finding).split("\n")
    assert first.startswith("missing ")
    assert second.strip().startswith(f"→ {advice}")


def asked_for(image: str) -> dict[str, Any]:
    repository, _, tag = image.partition(":")
    return {
        "registryId": "763104351884",
        "repositoryName": repository,
        "imageIds": [{"imageTag": tag}],
    }


@contextmanager
def account(**answers: Any) -> Iterator[Any]:
    """Clients that answer by botocore's service models; ``answers`` change what a good account
    says.
    """
    with ExitStack() as stack:
        clients = {}
        for service, responses in good_account(**answers).items():
            client, stubber = stack.enter_context(stubbed(service))
            lay_out(stubber, responses)
            clients[service] = client
        yield clients.__getitem__


def lay_out(stubber: Stubber, responses: list[tuple[Any, ...]]) -> None:
    for operation, response, *asked in responses:
        if isinstance(response, str):
            stubber.add_client_error(operation, response)
        else:
            stubber.add_response(operation, response, *asked)


def good_account(
    *,
    bootstrap: Any = "21",
    quotas: dict[str, float] | None = None,
    price: bool = True,
    pull: Any = FOUND,
    stack: str | None = None,
) -> dict[str, list[tuple[Any, ...]]]:
    in_order = [
        {"QuotaCode": f"L-{number}", "QuotaName": name, "Value": (quotas or {}).get(name, 1.0)}
        for number, name in enumerate(QUOTAS)
    ]
    endpoint_quota = in_order[-1]
    product = {
        "product": {"attributes": {"usagetype": f"USE1-Train:{SMOKE_INSTANCE}"}},
        "terms": {
            "OnDemand": {
                "a": {"priceDimensions": {"b": {"unit": "Hrs", "pricePerUnit": {"USD": "0.115"}}}}
            }
        },
    }
    machine = f"arn:aws:states:{REGION}:111122223333:stateMachine:traindyno-suites"
    values = {LabOutput.STATE_MACHINE_ARN: machine, LabOutput.LAB_JOBS: "{}"}
    outputs = [{"OutputKey": key.value, "OutputValue": values.get(key, "x")} for key in LabOutput]
    at = datetime(2026, 11, 21, tzinfo=UTC)
    deployed = {
        "StackName": "traindyno-lab",
        "CreationTime": at,
        "StackStatus": "CREATE_COMPLETE",
        "Outputs": outputs,
    }
    parameter = (
        bootstrap if bootstrap == "ParameterNotFound" else {"Parameter": {"Value": bootstrap}}
    )
    return {
        "sts": [("get_caller_identity", {"Arn": ARN, "Account": "111122223333", "UserId": "x"})],
        "ssm": [("get_parameter", parameter)],
        "service-quotas": [
            *(("get_service_quota", {"Quota": quota}) for quota in in_order[:-1]),
            ("list_aws_default_service_quotas", {"Quotas": [endpoint_quota]}),
            ("get_service_quota", {"Quota": endpoint_quota}),
        ],
        "sagemaker": [],
        "pricing": [("get_products", {"PriceList": [json.dumps(product)] if price else []})],
        "ecr": [
            ("batch_get_image", pull if image == SCRIPTS_IMAGE else FOUND, asked_for(image))
            for image in PULLED_IMAGES
        ],
        "cloudformation": [("describe_stacks", stack or {"Stacks": [deployed]})],
    }


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)


def findings(**answers: Any) -> dict[str, Check]:
    with account(**answers) as connect:
        checked = check_account(connect, region=REGION, lab="traindyno")
        return {finding.subject: finding for finding in checked}


@pytest.mark.usefixtures("unhurried")
def test_the_page_shows_the_doctors_output_for_an_empty_account() -> None:
    page = PAGE.read_text().partition("<!-- doctor: ")[2].partition("<!-- end -->")[0]
    shown = [line.strip() for line in page.splitlines() if line.startswith("    ")]
    by_subject = findings(
        bootstrap="ParameterNotFound",
        quotas={name: 0.0 for name in QUOTAS if "endpoint" in name or "for training" in name},
        stack="ValidationError",
    )
    printed = [
        line.strip() for finding in by_subject.values() for line in line_of(finding).splitlines()
    ]
    assert len(shown) > 8
    for line in shown:
        assert any(text.startswith(line.removesuffix("…")) for text in printed), line


def test_boto_reads_the_variable_for_the_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (variable,) = re.findall(r"set (\w+)", doctor_checks._region(None).advice or "")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv(variable, "eu-west-1")
    assert boto3.Session().region_name == "eu-west-1"


@pytest.mark.usefixtures("unhurried")
def test_a_complete_account_has_no_advice() -> None:
    by_subject = findings()
    assert {
        finding.subject: finding.advice for finding in by_subject.values() if finding.advice
    } == {}
    assert by_subject["identity"].found == ARN
    assert by_subject["lab"].found.endswith(":stateMachine:traindyno-suites")
    assert len(by_subject) == 12


def test_the_page_lists_the_permissions_of_the_doctor() -> None:
    (listed,) = re.findall(
        r"^`traindyno doctor --aws` needs (.*?)\. ", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    prefixes = {"service-quotas": "servicequotas"}
    made = {
        f"{prefixes.get(service, service)}:{client.meta.method_to_api_mapping[operation]}"
        for service, answers in good_account().items()
        if (client := boto3.client(service, **KEYS))  # type: ignore[call-overload]
        for operation, *_ in answers
    }
    # for quotas that have their default value, or none
    rare = {
        f"servicequotas:{action}" for action in ("GetAWSDefaultServiceQuota", "ListServiceQuotas")
    }
    assert set(re.findall(r"`([^`]+)`", listed)) == made | rare


def test_the_page_lists_the_index_that_run_and_watch_query() -> None:
    """A grant on a table holds for none of its indexes."""
    (listed,) = re.findall(r"^`traindyno run` needs (.*?); `list`", PAGE.read_text(), re.M | re.S)
    assert f"`table/NAME/index/{OPEN_ATTEMPTS_INDEX}`" in listed


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize(
    ("answers", "subject", "advice"),
    [
        ({"bootstrap": "ParameterNotFound"}, "CDK bootstrap", "run `cdk bootstrap` in us-east-1"),
        (
            {"bootstrap": "3"},
            "CDK bootstrap",
            "run `cdk bootstrap` in us-east-1: version 6 or newer",
        ),
        (
            {"quotas": {QUOTAS[0]: 0.0}},
            QUOTAS[0],
            "needed by suites/smoke_aws.yaml; ask for it: aws service-quotas "
            "request-service-quota-increase --service-code sagemaker --quota-code L-611FA074 "
            "--desired-value 1 --region us-east-1",
        ),
        (
            {"quotas": {QUOTAS[1]: 0.0}},
            QUOTAS[1],
            "needed by the preparation of suites that set no other",
        ),
        ({"quotas": {QUOTAS[2]: 0.0}}, QUOTAS[2], "needed by each training job; ask for it: "),
        (
            {"quotas": {QUOTAS[3]: 0.0}},
            QUOTAS[3],
            "needed by traindyno deploy without --instance; ask for it: ",
        ),
        ({"price": False}, "prices", "choose a region where SageMaker trains"),
        *(
            (
                {"pull": answer},
                f"image {SCRIPTS_IMAGE}",
                (
                    "needed by scripts on CPUs: allow ecr:BatchGetImage on "
                    "763104351884.dkr.ecr.us-east-1.amazonaws.com/py"
                ),
            )
            for answer in ("AccessDeniedException", GONE)
        ),
    ],
)
def test_gaps_of_an_account_come_with_advice(
    answers: dict[str, Any], subject: str, advice: str
) -> None:
    by_subject = findings(**answers)
    assert {name for name, finding in by_subject.items() if finding.advice} == {subject}
    assert (by_subject[subject].advice or "").startswith(advice)


def test_the_bootstraps_qualifier_comes_from_cdk_json(tmp_path: Path) -> None:
    assert bootstrap_qualifier(tmp_path) == "hnb659fds"
    (tmp_path / "cdk.json").write_text('{"context": {"@aws-cdk/core:bootstrapQualifier": "mine"}}')
    assert bootstrap_qualifier(tmp_path) == "mine"
    (tmp_path / "cdk.json").write_text("[]")
    with pytest.raises(InputFileInvalid, match=r"cdk\.json: the text is no JSON object"):
        bootstrap_qualifier(tmp_path)


def test_without_credentials_the_first_line_says_so_and_nothing_else_is_asked() -> None:
    with stubbed("sts") as (client, stubber):
        stubber.add_client_error("get_caller_identity", "ExpiredToken")
        (finding,) = check_account(lambda _service: client, region=REGION, lab="traindyno")
    assert finding.subject == "identity"
    assert (finding.advice or "").startswith(
        "name an account with --region and --profile, or set one up with"
    )
    assert "aws sts get-caller-identity" in (finding.advice or "")
    assert finding.found == (
        "not known: AWS refuses the credentials (ExpiredToken); sign in again, for example with "
        "`aws sso login`"
    )


@pytest.mark.usefixtures("unhurried")
def test_a_forbidden_check_is_a_finding_and_the_others_go_on() -> None:
    with account() as connect, stubbed("ssm") as (ssm, stubber):
        connect("ssm").get_parameter(Name="used up")
        stubber.add_client_error("get_parameter", "AccessDeniedException")
        checked = list(
            check_account(
                lambda service: ssm if service == "ssm" else connect(service),
                region=REGION,
                lab="traindyno",
            )
        )
    (refused,) = [finding for finding in checked if finding.advice]
    assert refused.subject == "CDK bootstrap"
    assert refused.found.startswith("not known: ")


def test_the_doctor_checks_the_needs_of_the_smoke_suite() -> None:
    suite = yaml.safe_load((REPO_ROOT / "suites/smoke_aws.yaml").read_text())
    assert suite["training"]["instance"] == suite["preparation"]["instance"] == SMOKE_INSTANCE
