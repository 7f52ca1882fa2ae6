"""The images of a lab: what they are built from, how, and what their builds leave behind."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from aws_cdk.assertions import Capture, Match, Template

from infra import images
from infra.functions import LONG_SECONDS
from tests.infra.image_packages import NEEDED_BY_BASES, read_pins, requirements_file
from tests.infra.synthesis import (
    REPO_ROOT,
    Assembly,
    as_list,
    flat,
    lab,
    needed,
    properties,
    statements,
    synthesise,
)
from traindyno.aws import image_addresses

IMAGES = [*image_addresses.IMAGES.values()]
BUILD = "Custom::TraindynoImage"
PROJECT = "AWS::CodeBuild::Project"
# SageMaker ends a job after 28 days.
LONGEST_EXECUTION_DAYS = 28
PINNED = re.compile(r"^[A-Za-z0-9._-]+==[A-Za-z0-9.]+$")
PROGRAM = """#!/bin/bash
echo "$(basename "$0") $*" >> "$FOLDER/log"
answers="$FOLDER/$1"
[ -f "$answers" ] || exit 0
status=$(head -n 1 "$answers")
[ "$(wc -l < "$answers")" -lt 1 ] || sed -i 1d "$answers"
exit "$status"
"""


@pytest.fixture(scope="module")
def accelerators() -> Template:
    return synthesise(target="aws", file="neuron = true").template("LabImages")


def test_images_are_immutable_and_scanned_and_outlast_their_executions() -> None:
    template = lab(target="aws", file="neuron = true")
    kept = Capture()
    scanned = {
        "ImageTagMutability": "IMMUTABLE",
        "ImageScanningConfiguration": {"ScanOnPush": True},
    }
    rules = {"LifecyclePolicy": {"LifecyclePolicyText": kept}, "EmptyOnDelete": True}
    template.all_resources_properties("AWS::ECR::Repository", {**scanned, **rules})
    template.resource_count_is("AWS::ECR::Repository", len(IMAGES))
    (rule,) = json.loads(kept.as_string())["rules"]
    assert rule["selection"]["countType"] == "imageCountMoreThan"
    assert rule["selection"]["countNumber"] >= LONGEST_EXECUTION_DAYS, (
        "a deployment a day, each with another image"
    )


def test_a_failed_image_for_accelerators_leaves_the_lab_whole(
    template: Template, accelerators: Template
) -> None:
    """It stands in a stack of its own, which imports nothing.

    The lab builds the CPU image. All are built on a medium machine, of whose builds an account has
    one quota.
    """
    for stack, count in ((template, 1), (accelerators, 2)):
        stack.all_resources_properties(
            PROJECT, {"Environment": {"ComputeType": "BUILD_GENERAL1_MEDIUM"}}
        )
        stack.resource_count_is(PROJECT, count)
        assert "Fn::ImportValue" not in json.dumps(stack.to_json())
        assert not stack.find_outputs("*", {"Export": Match.any_value()})
    synthesise(target="aws").template("LabImages").resource_count_is(BUILD, 1)


def test_plan_suite_may_read_the_address_of_each_built_image(
    template: Template, accelerators: Template
) -> None:
    addresses = {
        parameter["Name"]: flat(parameter["Value"])
        for stack in (template, accelerators)
        for parameter in properties(stack, "AWS::SSM::Parameter").values()
    }
    assert sorted(addresses) == [f"/traindyno/traindyno/images/{name}" for name in IMAGES]
    (statement,) = [
        allowed
        for allowed in statements(template, "PlanSuiteRole")
        if allowed["Action"] == "ssm:GetParameters"
    ]
    assert [
        flat(arn).partition(":parameter")[2] for arn in as_list(statement["Resource"])
    ] == sorted(addresses)
    for stack in (template, accelerators):
        for resource in stack.find_resources("AWS::SSM::Parameter").values():
            assert set(resource["DependsOn"]) & set(stack.find_resources(BUILD))
    (variables,) = [
        function["Environment"]["Variables"]
        for function in properties(template, "AWS::Lambda::Function").values()
        if "IMAGE_TAGS" in function.get("Environment", {}).get("Variables", {})
        and function["Timeout"] == LONG_SECONDS
    ]
    tags = json.loads(variables["IMAGE_TAGS"])
    for name, address in addresses.items():
        image = name.rpartition("/")[2]
        assert address.endswith(f"traindyno-lab/{image}:{tags[image]}")


def test_a_changed_image_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = tmp_path / "images"
    shutil.copytree(REPO_ROOT / "images", changed / "images")
    first = synthesise(target="aws", file="neuron = true")
    monkeypatch.setattr(images, "REPO_ROOT", changed)
    with (changed / "images/efa/check_image.py").open("a") as file:
        file.write("# changed\n")
    second = synthesise.__wrapped__(target="aws", file="neuron = true")
    before, after = (
        properties(assembly.template("LabImages"), BUILD) for assembly in (first, second)
    )
    assert [
        name for name, build in before.items() if build["Address"] != after[name]["Address"]
    ] == [name for name in before if "Efa" in name]
    assert properties(first.template("Lab"), BUILD) == properties(second.template("Lab"), BUILD)


def test_two_waits_for_a_machine_and_a_build_end_before_cloudformation_gives_up(
    accelerators: Template,
) -> None:
    for project in properties(accelerators, PROJECT).values():
        limit = 2 * project["QueuedTimeoutInMinutes"] + project["TimeoutInMinutes"]
        for build in properties(accelerators, BUILD).values():
            assert limit < int(build["ServiceTimeout"]) / 60 <= 60


def test_each_end_of_a_build_reaches_the_function_before_the_first_build_starts(
    template: Template, accelerators: Template
) -> None:
    """A status of another name is an end too."""
    (rule,) = template.find_resources(
        "AWS::Events::Rule", {"Properties": {"EventPattern": {"source": ["aws.codebuild"]}}}
    )
    pattern = properties(template, "AWS::Events::Rule")[rule]["EventPattern"]
    assert pattern["detail"]["build-status"] == [{"anything-but": ["IN_PROGRESS"]}]
    for stack in (template, accelerators):
        for project in properties(stack, PROJECT).values():
            assert project["Name"] in pattern["detail"]["project-name"]
    (project_id,) = template.find_resources(PROJECT)
    assert rule in needed(template, project_id)


def run_build_commands(
    template: Template, folder: Path, *, answers: dict[str, str]
) -> tuple[int, list[str]]:
    """Runs the commands of a build; ``answers`` maps the first words of a docker command to its
    exit statuses, call by call.
    """
    for name, words in answers.items():
        (folder / name).write_text("\n".join(words.split()))
    (folder / "bin").mkdir()
    for program in ("docker", "aws", "sleep"):
        path = folder / "bin" / program
        path.write_text(PROGRAM)
        path.chmod(0o755)
    (project,) = properties(template, PROJECT).values()
    commands = json.loads(flat(project["Source"]["BuildSpec"]))["phases"]["build"]["commands"]
    environment = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "FOLDER": str(folder),
        "IMAGE": "1.dkr.ecr.eu-west-1.amazonaws.com/lab/cpu:tag",
        "DOCKERFILE": "cpu/Dockerfile",
    }
    for command in commands:
        ended = subprocess.run(["bash", "-c", command], env=environment, check=False)
        if ended.returncode:
            break
    return ended.returncode, (folder / "log").read_text().splitlines()


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"manifest": "1"}, (0, 1, 1)),
        ({"manifest": "0"}, (0, 0, 0)),  # the tag exists: a rollback
        ({"manifest": "1", "buildx": "1 0"}, (0, 2, 1)),  # Rate exceeded
        ({"manifest": "1", "push": "1 0"}, (0, 2, 2)),
        ({"manifest": "1", "buildx": "1 1"}, (1, 2, 0)),
    ],
)
def test_a_build_logs_in_to_both_registries_and_is_tried_twice(
    template: Template, tmp_path: Path, answers: dict[str, str], expected: tuple[int, int, int]
) -> None:
    """Expected are the exit status, the builds and the pushes."""
    status, log = run_build_commands(template, tmp_path, answers=answers)
    logins = [line.rpartition(" ")[2] for line in log if line.startswith("docker login")]
    assert logins == ["1.dkr.ecr.eu-west-1.amazonaws.com", "public.ecr.aws"]
    builds, pushes = (
        sum(line.startswith(command) for line in log)
        for command in ("docker buildx build --load --provenance=false", "docker push")
    )
    assert (status, builds, pushes) == expected


def test_the_builds_may_log_in_to_the_gallery_of_their_bases(template: Template) -> None:
    actions = ["ecr-public:GetAuthorizationToken", "sts:GetServiceBearerToken"]
    logins = Match.object_like({"Action": Match.array_with(actions)})
    granted = {"PolicyDocument": {"Statement": Match.array_with([logins])}}
    template.has_resource_properties("AWS::IAM::Policy", granted)


def built_files(assembly: Assembly) -> dict[str, dict[str, bytes]]:
    """Image → path → content, as CodeBuild gets them."""
    manifests = [json.loads(path.read_text()) for path in assembly.folder.glob("*.assets.json")]
    folders = [
        assembly.folder / file["source"]["path"]
        for one in manifests
        for file in one["files"].values()
    ]
    contents = [
        {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in folders
        if (folder / "check_packages.py").exists()
    ]
    return {
        name.partition("/")[0]: files
        for files in contents
        for name in files
        if name.endswith("/Dockerfile")
    }


def test_each_image_is_built_from_its_own_folder_and_the_shared_files() -> None:
    built = built_files(synthesise(target="aws", file="neuron = true"))
    assert set(built) == set(IMAGES)
    for name, files in built.items():
        assert {path.partition("/")[0] for path in files if "/" in path} == {name}
        assert {"check_packages.py", "pytorch_requirements.txt"} <= set(files)


def test_the_log_of_a_failed_build_outlives_the_rollback(accelerators: Template) -> None:
    kept = {"DeletionPolicy": "Retain", "Properties": {"RetentionInDays": 30}}
    for name in accelerators.find_resources("AWS::Logs::LogGroup", kept):
        log = {"LogsConfig": {"CloudWatchLogs": {"GroupName": {"Ref": name}}}}
        accelerators.resource_properties_count_is(PROJECT, log, 1)
    assert len(accelerators.find_resources("AWS::Logs::LogGroup", kept)) == 2


def test_the_local_cloud_builds_no_images() -> None:
    lab(target="local").resource_count_is(BUILD, 0)
    assert not (synthesise(target="local").folder / "LabImages.template.json").exists()
    built = {"Environment": {"Variables": {"IMAGE_TAGS": Match.any_value()}}}
    lab(target="local").resource_properties_count_is("AWS::Lambda::Function", built, 0)


@pytest.mark.parametrize("name", IMAGES)
def test_the_folder_is_a_build_context_with_a_pinned_base_and_a_locked_set(name: str) -> None:
    folder = REPO_ROOT / "images"
    dockerfile = (folder / name / "Dockerfile").read_text()
    (base,) = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    assert re.fullmatch(r"public\.ecr\.aws/\S+:\d+\.\d+\S+", base)
    copied = [
        file
        for line in re.findall(r"^COPY (.+) \S+$", dockerfile, re.MULTILINE)
        for file in line.split()
    ]
    assert all((folder / file).is_file() for file in copied)
    assert {"check_packages.py", "check_modules.py", f"{name}/check_image.py"} <= set(copied)
    assert (
        "RUN python /opt/traindyno/check_modules.py && python /opt/traindyno/check_image.py"
        in dockerfile
    )
    locked = read_pins(requirements_file(name))
    assert all(PINNED.match(line) for line in locked)
    assert {"transformers", "datasets", "cattrs"} <= {line.partition("==")[0] for line in locked}
    assert not {"torch", "numpy"} & {line.partition("==")[0] for line in locked}


def lint(dockerfile: Path) -> "subprocess.CompletedProcess[str]":
    hadolint = Path(sys.executable).parent / "hadolint"
    return subprocess.run(
        [hadolint, dockerfile], cwd=REPO_ROOT, capture_output=True, text=True, check=False
    )


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
def test_the_linter_refuses_bad_images(tmp_path: Path, line: str, rule: str) -> None:
    dockerfile = (REPO_ROOT / "images" / "efa" / "Dockerfile").read_text()
    changed = (
        re.sub("^FROM .*", line, dockerfile, flags=re.MULTILINE)
        if line.startswith("FROM")
        else dockerfile + line
    )
    (tmp_path / "Dockerfile").write_text(f"{changed}\n")
    answer = lint(tmp_path / "Dockerfile")
    assert answer.returncode != 0
    assert rule in answer.stdout


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_locks_the_tested_versions_of_this_repository(name: str) -> None:
    tested = set(read_pins(REPO_ROOT / "requirements.txt"))
    for line in read_pins(requirements_file(name)):
        assert line in tested or line.partition("==")[0] in NEEDED_BY_BASES, line
