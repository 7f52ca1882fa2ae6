"""The app as a person runs it, and what it refuses."""

import json
import os
import re
import subprocess
import sys
import tarfile
from dataclasses import fields
from pathlib import Path

import aws_cdk
import botocore.session
import pytest
from aws_cdk.assertions import Match

from infra.lab_settings import LabFile, read_lab_settings
from tests.infra.synthesis import KEY, OTHER_LAB, REPO_ROOT, lab, only, properties, synthesise
from traindyno.core.lab_names import SETTINGS_RESOURCE, LabOutput, images_stack_name, lab_stack_name

TAGS = "\n".join(f"tag{number} = '{{0}}'" for number in range(46))


def test_synth_needs_no_credentials_network_or_docker(tmp_path: Path) -> None:
    context = json.loads((REPO_ROOT / "cdk.json").read_text())["context"]
    environment = {
        "PATH": "",
        "HOME": str(tmp_path),
        "JSII_NODE": os.environ["JSII_NODE"],
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache/aws/jsii/package-cache"),
        "CDK_OUTDIR": str(tmp_path / "cdk.out"),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "HTTPS_PROXY": "http://127.0.0.1:9",
    }
    subprocess.run(
        [sys.executable, "app.py"], cwd=REPO_ROOT, env=environment, check=True, capture_output=True
    )
    assert (tmp_path / "cdk.out" / "Lab.template.json").is_file()


@pytest.mark.parametrize("context", [{"target": "local"}, OTHER_LAB], ids=["local", "aws"])
def test_a_deployment_begins_without_a_warning(context: dict[str, str]) -> None:
    assembly = synthesise(**context)
    assert list(assembly.folder.glob("*.metadata.json"))
    assert assembly.annotations() == []


def test_two_labs_can_share_an_account_by_their_stack_names() -> None:
    manifest = json.loads((synthesise(**OTHER_LAB).folder / "manifest.json").read_text())
    stacks = {
        artifact["properties"].get("stackName")
        for artifact in manifest["artifacts"].values()
        if artifact["type"] == "aws:cloudformation:stack"
    }
    assert stacks == {lab_stack_name("other-lab"), images_stack_name("other-lab")}


def test_a_deployment_assumes_the_roles_of_the_doctors_checks() -> None:
    folder = synthesise(**OTHER_LAB).folder
    manifests = [json.loads(path.read_text()) for path in folder.glob("*.assets.json")]
    assert [manifest["dockerImages"] for manifest in manifests] == [{}, {}]
    files = [file for manifest in manifests for file in manifest["files"].values()]
    assumed = {place["assumeRoleArn"] for file in files for place in file["destinations"].values()}
    artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"].values()
    assumed |= {
        artifact["properties"]["assumeRoleArn"]
        for artifact in artifacts
        if "cloudformation" in artifact["type"]
    }
    names = {re.fullmatch(r".*:role/cdk-hnb659fds-(.+)-role-.*", arn)[1] for arn in assumed}  # type: ignore[index]
    assert names == {"deploy", "file-publishing"}  # docs/lab-in-aws.md says so


def test_fixed_names_hold_the_labs_name() -> None:
    template = lab(**OTHER_LAB)
    template.has_resource_properties(
        "AWS::StepFunctions::StateMachine", {"StateMachineName": "other-lab-suites"}
    )
    groups = properties(template, "AWS::Logs::LogGroup", {"LogGroupName": Match.any_value()})
    assert all("other-lab" in group["LogGroupName"] for group in groups.values())


def test_the_command_line_finds_all_its_outputs() -> None:
    for output in LabOutput:
        lab(target="local").has_output(output, {})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"lab": "Upper"}, "context lab='Upper'"),
        ({"lab": "a-name-that-is-far-too-long"}, "1 to 18"),
        ({"target": "azure"}, "target='azure': expected one of aws, local"),
        ({"rules": "perhaps"}, "rules='perhaps': expected one of off, on"),
        ({"target": "local", "lane_concurrency": "0"}, "lane_concurrency='0'"),
        # Before, the context had the settings: one that is still there must not be overlooked.
        (
            {"volume_key": KEY},
            "context volume_key: the settings of lab traindyno are in .*/traindyno.toml, not in",
        ),
        ("neuron = yes", "traindyno.toml is no TOML: .* line 1, column 10"),
        (
            "volume_kye = ''",
            (
                'traindyno.toml: volume_kye: unknown field .*did you mean "volume_key".* one of '
                "neuron,"
            ),
        ),
        ("neuron = 'true'", 'neuron: got "true", expected true or false'),
        ("subnets = 'subnet-0123456789abcdef0'", "subnets: got .*, expected a list"),
        (
            "subnets = ['subnet-0123456789abcdef0']",
            "subnets: expected both subnets and security_groups, or neither",
        ),
        (
            "subnets = ['10.0.0.0/24']",
            "subnets: got '10.0.0.0/24', expected an id such as subnet-01234.*; .*both",
        ),
        ("data_buckets = ['s3://my-data']", "expected a bucket's name, such as my-data"),
        ("volume_key = 'mine'", "volume_key: got 'mine', expected arn:aws:kms"),
        ("data_keys = ['alias/mine']", "find the key's ARN with: .*--key-id alias/mine "),
        ("volume_gb = 0", "volume_gb: got 0, expected an integer from 1 to 16384"),
        (
            "job_tags = {'a&b' = 'x'}",
            "job_tags.a&b: got 'x', expected up to 128 and 256 characters",
        ),
        ("job_tags = {dept = 'R&D'}", "job_tags.dept: got 'R&D', expected .* a letter, a digit"),
        ("job_tags = {'' = 'x'}", "job_tags.: got 'x', expected up to 128"),
        ("job_tags = {'aws:x' = 'y'}", "job_tags.aws:x: got 'y', expected .* not aws:…"),
        ("job_tags = {'traindyno:lab' = 'y'}", "job_tags.traindyno:lab: got 'y'.* or traindyno:…"),
        (
            "hub_token_secrets = ['hf_abcdef']",
            "hub_token_secrets: got a text that is not repeated here, expected arn",
        ),
        (
            "notify_email = 'me at example'",
            "notify_email: got .*, expected an address such as me@example.com",
        ),
        (f"[job_tags]\n{TAGS.format('x')}", "job_tags: got 46 tags, expected at most 45"),
        (
            f"[job_tags]\n{TAGS.format('x' * 60)}",
            "expected at most 1900, because all variables of a function",
        ),
        ({"budget_us": "50"}, 'context.budget_us: unknown field "budget_us".* one of lab, target'),
        ({"ruls": "on"}, 'context.ruls: .* did you mean "rules"'),
        ("permissions_boundary = 'Bound'", "expected arn:aws:iam::<account>:policy/<name>"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_accepted_ones(
    given: dict[str, str] | str, text: str, tmp_path: Path
) -> None:
    context, file = ({}, given) if isinstance(given, str) else (given, "")
    (tmp_path / "traindyno.toml").write_text(file)
    with pytest.raises(ValueError, match=text):
        read_lab_settings({"lab": "traindyno", **context}, labs=tmp_path)


def test_tags_that_sagemaker_takes_are_accepted(tmp_path: Path) -> None:
    """Its pattern, which Python's expressions can't read, is written out in the settings' check."""
    service = botocore.session.get_session().get_service_model("sagemaker")
    patterns = {service.shape_for(name).metadata["pattern"] for name in ("TagKey", "TagValue")}
    assert patterns == {r"([\p{L}\p{Z}\p{N}_.:/=+\-@]*)"}
    tags = {"cost center": "Köln ½ 東京", "a=b": "_.:/=+-@", "empty": "", "k" * 128: "v" * 256}
    lines = [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in tags.items()]
    (tmp_path / "mine.toml").write_text("\n".join(["[job_tags]", *lines]), encoding="utf-8")
    assert read_lab_settings({"lab": "mine"}, labs=tmp_path).file.job_tags == tags


def test_the_app_says_it_in_one_line() -> None:
    environment = {**os.environ, "CDK_CONTEXT_JSON": json.dumps({"lab": "mine"})}
    ended = subprocess.run(
        [sys.executable, "app.py"],
        cwd=REPO_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("no file ")
    assert "Traceback" not in ended.stderr


def test_a_lab_without_a_file_is_refused_and_the_default_lab_has_one(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match=r"no file .*mine.toml: expected the settings of the lab; an empty file means",
    ):
        read_lab_settings({"lab": "mine"}, labs=tmp_path)
    shipped = read_lab_settings({"lab": "traindyno"}, labs=REPO_ROOT / "labs")
    assert (shipped.file, shipped.named) == (LabFile(), {})


def test_the_guard_compares_settings_before_their_users_are_updated() -> None:
    """A setting at its default is given up; roles, functions and what starts jobs follow the
    comparison.
    """
    resources = lab(**OTHER_LAB).to_json()["Resources"]
    name = only(lab(**OTHER_LAB), SETTINGS_RESOURCE)
    named = resources[name]["Properties"]["Settings"]
    assert set(named) == {field.name for field in fields(LabFile)} - {"neuron"}
    assert (named["volume_key"], named["keep_results"]) == (f'"{KEY}"', "")
    users = [
        logical_id
        for logical_id, resource in resources.items()
        if "LAB_JOBS" in json.dumps(resource)
        or logical_id.startswith(("IdentityTrainingRole", "ServingServedModelRole"))
    ]
    assert len(users) == 4
    assert all(name in resources[user]["DependsOn"] for user in users)


def test_the_page_lists_each_setting_once() -> None:
    page = (
        (REPO_ROOT / "docs/lab-in-aws.md")
        .read_text()
        .partition("## Settings")[2]
        .partition("\n## ")[0]
    )
    listed = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)))
    assert sorted(listed) == sorted(field.name for field in fields(LabFile))


@pytest.mark.parametrize("region", ["cn-north-1", "us-gov-west-1"])
def test_a_region_of_another_partition_is_refused(region: str) -> None:
    with pytest.raises(
        ValueError, match=f"region {region}: expected a region of AWS's standard partition"
    ):
        read_lab_settings({"lab": "traindyno"}, labs=REPO_ROOT / "labs", region=region)


def test_every_recommended_feature_flag_of_the_installed_cdk_is_set() -> None:
    """`cdk flags --unstable=flags --set --recommended --all` writes them."""
    (packed,) = Path(aws_cdk.__file__).parent.glob("_jsii/aws-cdk-lib@*.jsii.tgz")
    with tarfile.open(packed) as archive:
        flags = archive.extractfile("package/recommended-feature-flags.json")
        assert flags is not None
        recommended = json.load(flags)
    context = json.loads((REPO_ROOT / "cdk.json").read_text())["context"]
    # A lab is refused in other partitions, and no stack imports a value of another.
    own = {"@aws-cdk/core:target-partitions", "@aws-cdk/core:defaultCrossStackReferences"}
    assert {name for name, value in recommended.items() if context.get(name) != value} == own
