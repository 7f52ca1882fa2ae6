"""The images of a lab: what they are built from, how, and what their builds leave behind."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from infra import images
from infra.images import Image
from tests.infra.image_packages import NEEDED_BY_BASES, read_pins, requirements_file
from tests.infra.synthesis import REPO_ROOT, Assembly, Template, flat, lab, synthesise

IMAGES = [image.value for image in Image]
BUILD = "Custom::CDKContainerImageBuild"
# SageMaker ends a job after 28 days.
LONGEST_EXECUTION_DAYS = 28
PINNED = re.compile(r"^[A-Za-z0-9._-]+==[A-Za-z0-9.]+$")


@pytest.fixture(scope="module")
def template() -> Template:
    return lab(target="aws")


@pytest.fixture(scope="module")
def with_neuron() -> Template:
    return lab(target="aws", neuron="true")


def test_images_are_immutable_and_scanned_and_outlast_the_executions_that_use_them(with_neuron: Template) -> None:
    repositories = with_neuron.of_type("AWS::ECR::Repository")
    assert len(repositories) == len(IMAGES)
    for repository in repositories.values():
        assert repository["ImageTagMutability"] == "IMMUTABLE"
        assert repository["ImageScanningConfiguration"]["ScanOnPush"]
        (rule,) = json.loads(repository["LifecyclePolicy"]["LifecyclePolicyText"])["rules"]
        assert rule["selection"]["countType"] == "imageCountMoreThan"
        assert rule["selection"]["countNumber"] >= LONGEST_EXECUTION_DAYS, "a deployment a day, each with another image"
        assert repository["EmptyOnDelete"]


def image_variables(template: Template, state: str) -> dict[str, Any]:
    functions = template.of_type("AWS::Lambda::Function")
    (function,) = [function for name, function in functions.items() if state in name]
    variables = function["Environment"]["Variables"]
    return {name: value for name, value in variables.items() if name.endswith("_IMAGE_URI")}


def test_the_neuron_image_is_built_only_where_the_context_asks_for_it(
    template: Template, with_neuron: Template
) -> None:
    both = {"CPU_IMAGE_URI", "EFA_IMAGE_URI"}
    assert len(template.of_type(BUILD)) == 2
    assert set(image_variables(template, "SubmitRun")) == both
    assert len(with_neuron.of_type(BUILD)) == 3
    for state in ("SubmitRun", "PlanSuite"):
        assert set(image_variables(with_neuron, state)) == {*both, "NEURON_IMAGE_URI"}


def test_a_changed_image_changes_no_export_of_a_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CloudFormation refuses to change an export that another stack imports, and each build makes a new tag."""
    changed = tmp_path / "images"
    shutil.copytree(REPO_ROOT / "images", changed / "images")
    first = synthesise(target="aws", lab="redeployed")
    monkeypatch.setattr(images, "REPO_ROOT", changed)
    with (changed / "images/efa/check_image.py").open("a") as file:
        file.write("# changed\n")
    second = synthesise.__wrapped__(target="aws", lab="redeployed")
    before, after = (each.template("Lab").of_type(BUILD) for each in (first, second))
    assert sorted(before) == sorted(after)
    assert before != after
    for assembly in (first, second):
        templates = [json.loads(path.read_text()) for path in assembly.folder.glob("*.template.json")]
        outputs = [output for each in templates for output in each.get("Outputs", {}).values()]
        assert outputs
        assert not [output for output in outputs if "Export" in output]
        assert "Fn::ImportValue" not in json.dumps(templates)


def test_the_quota_is_checked_first_and_images_are_built_one_after_another(with_neuron: Template) -> None:
    (check,) = with_neuron.resources("Custom::TraindynoBuildQuota")
    cpu, efa, neuron = sorted(with_neuron.resources(BUILD))
    waits_for = {name: set(resource["DependsOn"]) for name, resource in with_neuron.resources(BUILD).items()}
    assert check in waits_for[cpu]
    assert cpu in waits_for[efa]
    assert efa in waits_for[neuron]


def test_slow_build_fails_before_its_project_and_cloudformation_give_up(template: Template) -> None:
    project = template.only("AWS::CodeBuild::Project")
    for build in template.of_type(BUILD).values():
        limit = re.fullmatch(r"timeout (\d+)m (docker buildx build .*)", build["buildCommand"])
        assert limit
        assert int(limit[1]) < project["TimeoutInMinutes"] < int(build["ServiceTimeout"]) / 60
        assert int(build["ServiceTimeout"]) <= 3600


def test_the_time_limit_stands_before_the_constructs_own_command(template: Template) -> None:
    from deploy_time_build import ContainerImageBuild

    stack = cdk.Stack(cdk.App(), "Plain")
    for name in ("cpu", "efa"):
        ContainerImageBuild(stack, name, directory=str(REPO_ROOT / "images"), file=f"{name}/Dockerfile")
    plain = cdk.assertions.Template.from_stack(stack).find_resources(BUILD).values()
    limited = {build["buildCommand"].partition("m ")[2] for build in template.of_type(BUILD).values()}
    assert limited == {build["Properties"]["buildCommand"] for build in plain}


@pytest.mark.parametrize("succeeds", [True, False])
def test_cloudformation_can_read_the_answer_of_a_build(template: Template, tmp_path: Path, succeeds: bool) -> None:
    buildspec = json.loads(template.only("AWS::CodeBuild::Project")["Source"]["BuildSpec"])
    answering = buildspec["phases"]["post_build"]["commands"][-1]
    script = "\n".join(line for line in answering.splitlines() if not line.strip().startswith("curl "))
    environment = {"CODEBUILD_BUILD_SUCCEEDING": str(int(succeeds)), "AWS_REGION": "eu-west-1", "imageTag": "t"}
    subprocess.run(["bash", "-c", script], cwd=tmp_path, env={**os.environ, **environment}, check=True)
    answer = json.loads((tmp_path / "payload.json").read_text())
    assert answer["Status"] == ("SUCCESS" if succeeds else "FAILED")
    assert succeeds or "https://eu-west-1.console.aws.amazon.com/cloudwatch" in answer["Reason"]


def built_files(assembly: Assembly) -> dict[str, dict[str, bytes]]:
    """Image → path → content, as CodeBuild gets them."""
    manifest = json.loads((assembly.folder / "Lab.assets.json").read_text())
    folders = [assembly.folder / each["source"]["path"] for each in manifest["files"].values()]
    found = [
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in folders
        if (folder / "check_packages.py").exists()
    ]
    return {name.partition("/")[0]: files for files in found for name in files if name.endswith("/Dockerfile")}


def test_each_image_is_built_from_its_own_folder_and_what_the_images_share() -> None:
    found = built_files(synthesise(target="aws", neuron="true"))
    assert set(found) == set(IMAGES)
    for name, files in found.items():
        assert {path.partition("/")[0] for path in files if "/" in path} == {name}
        assert {"check_packages.py", "pytorch_requirements.txt"} <= set(files)


def test_failed_build_links_to_a_log_that_outlives_the_rollback(template: Template) -> None:
    project_name, project = next(iter(template.resources("AWS::CodeBuild::Project").items()))
    groups = template.resources("AWS::Logs::LogGroup")
    (name,) = [name for name in groups if "ImageBuildLogs" in name]
    group = groups[name]
    # deploy-time-build's text links to CodeBuild's default group, which CodeBuild uses without another setting
    assert flat(group["Properties"]["LogGroupName"]) == f"/aws/codebuild/{project_name}"
    assert "LogsConfig" not in project["Properties"]
    assert (group["DeletionPolicy"], group["Properties"]["RetentionInDays"]) == ("Retain", 30)
    assert all(name in build["DependsOn"] for build in template.resources(BUILD).values())


def test_builds_have_room_for_the_base_image(template: Template) -> None:
    assert template.only("AWS::CodeBuild::Project")["Environment"]["ComputeType"] == "BUILD_GENERAL1_LARGE"


def test_the_local_cloud_builds_no_images() -> None:
    assert not lab(target="local").of_type(BUILD)
    functions = lab(target="local").of_type("AWS::Lambda::Function")
    assert not [name for name, each in functions.items() if "EFA_IMAGE_URI" in each["Environment"]["Variables"]]


@pytest.mark.parametrize("name", IMAGES)
def test_the_folder_is_a_build_context_with_a_pinned_base_and_a_locked_set(name: str) -> None:
    folder = REPO_ROOT / "images"
    dockerfile = (folder / name / "Dockerfile").read_text()
    (base,) = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    assert re.fullmatch(r"public\.ecr\.aws/\S+:\d+\.\d+\S+", base)
    copied = [file for line in re.findall(r"^COPY (.+) \S+$", dockerfile, re.MULTILINE) for file in line.split()]
    assert all((folder / file).is_file() for file in copied)
    assert {"check_packages.py", "check_modules.py", f"{name}/check_image.py"} <= set(copied)
    locked = read_pins(requirements_file(name))
    assert all(PINNED.match(line) for line in locked)
    assert {"transformers", "datasets", "cattrs"} <= {line.partition("==")[0] for line in locked}
    assert not {"torch", "numpy"} & {line.partition("==")[0] for line in locked}


def lint(dockerfile: Path) -> "subprocess.CompletedProcess[str]":
    hadolint = Path(sys.executable).parent / "hadolint"
    return subprocess.run([hadolint, dockerfile], cwd=REPO_ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", IMAGES)
def test_the_linter_finds_nothing(name: str) -> None:
    assert lint(REPO_ROOT / "images" / name / "Dockerfile").stdout == ""


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("FROM public.ecr.aws/neuron/pytorch-training-neuronx:latest", "DL3007"),
        ("FROM docker.io/library/python:3.12", "DL3026"),
        ("RUN python -m pip install torch==2.13.0", "DL3042"),
        ("RUN apt-get update && apt-get install --yes --no-install-recommends gcc=4:12", "DL3009"),
        ("ENV AWS_SECRET_ACCESS_KEY=key", "DL3064"),
        ("ENTRYPOINT python train.py", "DL3025"),
    ],
)
def test_the_linter_refuses_what_an_image_must_not_do(tmp_path: Path, line: str, rule: str) -> None:
    dockerfile = (REPO_ROOT / "images" / "efa" / "Dockerfile").read_text()
    changed = re.sub("^FROM .*", line, dockerfile, flags=re.MULTILINE) if line.startswith("FROM") else dockerfile + line
    (tmp_path / "Dockerfile").write_text(f"{changed}\n")
    answer = lint(tmp_path / "Dockerfile")
    assert answer.returncode != 0
    assert rule in answer.stdout


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_locks_what_this_repository_is_tested_with(name: str) -> None:
    tested = set(read_pins(REPO_ROOT / "requirements.txt"))
    for line in read_pins(requirements_file(name)):
        assert line in tested or line.partition("==")[0] in NEEDED_BY_BASES, line


@pytest.mark.parametrize("name", IMAGES)
def test_the_build_checks_the_image(name: str) -> None:
    dockerfile = Path(REPO_ROOT / "images" / name / "Dockerfile").read_text()
    assert "RUN python /opt/traindyno/check_modules.py && python /opt/traindyno/check_image.py" in dockerfile
