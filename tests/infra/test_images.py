import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from infra.images_stack import IMAGES
from tests.infra.synthesis import REPO_ROOT, flat, lab, synthesise

PINNED = re.compile(r"^[A-Za-z0-9._-]+==[A-Za-z0-9.]+$")


def test_images_are_immutable_scanned_and_few() -> None:
    repositories = synthesise(target="aws").template("Images").of_type("AWS::ECR::Repository")
    assert len(repositories) == len(IMAGES)
    for repository in repositories.values():
        assert repository["ImageTagMutability"] == "IMMUTABLE"
        assert repository["ImageScanningConfiguration"]["ScanOnPush"]
        (rule,) = json.loads(repository["LifecyclePolicy"]["LifecyclePolicyText"])["rules"]
        assert rule["selection"]["countNumber"] == 3
        assert repository["EmptyOnDelete"]


def test_images_are_built_at_deployment_and_every_job_is_started_with_them() -> None:
    builds = synthesise(target="aws").template("Images").of_type("Custom::CDKContainerImageBuild")
    assert len(builds) == len(IMAGES)
    functions = lab(target="aws").of_type("AWS::Lambda::Function")
    (submit,) = [function for name, function in functions.items() if "SubmitRun" in name]
    variables = submit["Environment"]["Variables"]
    assert {"EFA_IMAGE_URI", "NEURON_IMAGE_URI"} <= set(variables)


def test_builds_have_room_for_the_base_image_and_logs_that_expire() -> None:
    template = synthesise(target="aws").template("Images")
    project = template.only("AWS::CodeBuild::Project")
    assert project["Environment"]["ComputeType"] == "BUILD_GENERAL1_LARGE"
    assert flat(project["LogsConfig"]["CloudWatchLogs"]["GroupName"]) in template.of_type("AWS::Logs::LogGroup")


def test_the_local_cloud_builds_no_images() -> None:
    assert not (synthesise(target="local").folder / "Images.template.json").exists()
    functions = lab(target="local").of_type("AWS::Lambda::Function")
    assert not [name for name, each in functions.items() if "EFA_IMAGE_URI" in each["Environment"]["Variables"]]


@pytest.mark.parametrize("name", IMAGES)
def test_the_folder_is_a_build_context_with_a_pinned_base_and_a_locked_set(name: str) -> None:
    folder = REPO_ROOT / "images" / name
    dockerfile = (folder / "Dockerfile").read_text()
    (base,) = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    assert re.fullmatch(r"public\.ecr\.aws/\S+:\d+\.\d+\S+", base)
    copied = re.findall(r"^COPY (.+) \S+$", dockerfile, re.MULTILINE)
    assert all((folder / file).is_file() for line in copied for file in line.split())
    locked = [line for line in (folder / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
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
    tested = set((REPO_ROOT / "requirements.txt").read_text().splitlines())
    for line in (REPO_ROOT / "images" / name / "requirements.txt").read_text().splitlines():
        assert line.startswith("#") or line in tested, line


@pytest.mark.parametrize("name", IMAGES)
def test_the_build_checks_the_image_and_its_health_is_the_doctors(name: str) -> None:
    dockerfile = Path(REPO_ROOT / "images" / name / "Dockerfile").read_text()
    assert "RUN python /opt/traindyno/check_image.py" in dockerfile
    assert "python -m training.doctor" in dockerfile
