"""The app as a person runs it, and what it refuses."""

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import aws_cdk
import aws_cdk as cdk
import pytest

from infra.lab_stack import add_lab
from tests.infra.synthesis import KEY, OTHER_LAB, REPO_ROOT, flat, lab, synthesise
from traindyno.core.lab_names import LabOutput, images_stack_name, lab_stack_name


def test_synth_needs_no_credentials_network_or_docker(tmp_path: Path) -> None:
    context = json.loads((REPO_ROOT / "cdk.json").read_text())["context"]
    environment = {
        "PATH": "",
        "HOME": str(tmp_path),
        "JSII_NODE": os.environ["JSII_NODE"],
        "CDK_OUTDIR": str(tmp_path / "cdk.out"),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "HTTPS_PROXY": "http://127.0.0.1:9",
    }
    subprocess.run([sys.executable, "app.py"], cwd=REPO_ROOT, env=environment, check=True, capture_output=True)
    assert (tmp_path / "cdk.out" / "Lab.template.json").is_file()


@pytest.mark.parametrize("context", [{"target": "local"}, OTHER_LAB], ids=["local", "aws"])
def test_a_deployment_begins_without_a_warning(context: dict[str, str]) -> None:
    assembly = synthesise(**context)
    assert list(assembly.folder.glob("*.metadata.json"))
    assert assembly.annotations() == []


def test_the_stack_is_named_after_the_lab_so_that_two_can_share_an_account() -> None:
    manifest = json.loads((synthesise(**OTHER_LAB).folder / "manifest.json").read_text())
    stacks = {
        artifact["properties"].get("stackName")
        for artifact in manifest["artifacts"].values()
        if artifact["type"] == "aws:cloudformation:stack"
    }
    assert stacks == {lab_stack_name("other-lab"), images_stack_name("other-lab")}


def test_a_deployment_assumes_the_roles_that_the_doctor_checks() -> None:
    folder = synthesise(**OTHER_LAB).folder
    manifests = [json.loads(path.read_text()) for path in folder.glob("*.assets.json")]
    assert [each["dockerImages"] for each in manifests] == [{}, {}]
    files = [file for each in manifests for file in each["files"].values()]
    assumed = {place["assumeRoleArn"] for file in files for place in file["destinations"].values()}
    artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"].values()
    assumed |= {found["properties"]["assumeRoleArn"] for found in artifacts if "cloudformation" in found["type"]}
    names = {re.fullmatch(r".*:role/cdk-hnb659fds-(.+)-role-.*", arn)[1] for arn in assumed}  # type: ignore[index]
    assert names == {"deploy", "file-publishing"}  # docs/lab-in-aws.md says so


def test_fixed_names_hold_the_labs_name() -> None:
    template = lab(**OTHER_LAB)
    assert template.machine()["StateMachineName"] == "other-lab-suites"
    named = [group.get("LogGroupName", "other-lab") for group in template.of_type("AWS::Logs::LogGroup").values()]
    # CodeBuild's group is named after the build project, whose name CloudFormation makes.
    assert all("other-lab" in flat(name) or "ContainerImageBuild" in flat(name) for name in named)


def test_the_command_line_finds_every_output_that_it_asks_for() -> None:
    outputs = set(lab(target="local").document["Outputs"])
    assert set(LabOutput) <= outputs


@pytest.mark.parametrize(
    ("context", "text"),
    [
        ({"lab": "Upper"}, "lab='Upper'"),
        ({"lab": "a-name-that-is-far-too-long"}, "1 to 18"),
        ({"target": "azure"}, "expected one of aws, local"),
        ({"lane_concurrency": "0"}, "lane_concurrency='0'"),
        ({"subnets": "subnet-0123456789abcdef0"}, "security_groups=.*expected both or neither"),
        (
            {"subnets": "10.0.0.0/24"},
            "context subnets: got '10.0.0.0/24', expected entries such as subnet-0123456789abcdef0",
        ),
        ({"volume_key": "mine"}, "context volume_key: got 'mine', expected entries such as arn:aws:kms"),
        ({"volume_key": "alias/mine"}, "volume_key='alias/mine': expected the key's ARN, .*--key-id alias/mine "),
        ({"data_keys": f"{KEY} {KEY.replace('key/abc', 'alias/a')}"}, "data_keys='arn:.*alias/a': expected the key's"),
        ({"volume_gb": "huge"}, "volume_gb='huge': expected a whole number"),
        ({"job_tags": "vision"}, "context job_tags: got 'vision', expected entries such as team=vision"),
        ({"job_tags": " ".join(f"tag{n}=x" for n in range(46))}, "job_tags: got 46 tags, expected at most 45"),
        (
            {"job_tags": " ".join(f"tag{n}={'x' * 60}" for n in range(30))},
            "characters, expected at most 1900, because all variables of a function have 4 KB",
        ),
        ({"permissions_boundary": "Bound"}, "expected arn:aws:iam::<account>:policy/<name>"),
        ({"rules": "perhaps"}, "expected on or off"),
        ({"neuron": "trn1"}, "neuron='trn1': expected on or off"),
    ],
)
def test_a_wrong_context_is_refused_with_what_would_be_accepted(context: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        synthesise(**context)


@pytest.mark.parametrize("region", ["cn-north-1", "us-gov-west-1"])
def test_a_region_of_another_partition_is_refused(region: str, tmp_path: Path) -> None:
    context = json.loads((REPO_ROOT / "cdk.json").read_text())["context"]
    app = cdk.App(outdir=str(tmp_path), context=context, builtin_cloud_formation_validation=False)
    with pytest.raises(ValueError, match=f"region {region}: expected a region of AWS's standard partition"):
        add_lab(app, staging=tmp_path, region=region)
    assert context["@aws-cdk/core:target-partitions"] == ["aws"]


def test_every_feature_flag_that_the_installed_cdk_recommends_is_set() -> None:
    """`cdk flags --unstable=flags --set --recommended --all` writes them."""
    (packed,) = Path(aws_cdk.__file__).parent.glob("_jsii/aws-cdk-lib@*.jsii.tgz")
    with tarfile.open(packed) as archive:
        found = archive.extractfile("package/recommended-feature-flags.json")
        assert found is not None
        recommended = json.load(found)
    context = json.loads((REPO_ROOT / "cdk.json").read_text())["context"]
    # A lab is refused in other partitions, and no stack imports a value of another.
    own = {"@aws-cdk/core:target-partitions", "@aws-cdk/core:defaultCrossStackReferences"}
    assert {name for name, value in recommended.items() if context.get(name) != value} == own
