"""The images of a lab: what they are built from, how, and what their builds leave behind."""

import json
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from infra import images
from infra.images import Image
from tests.infra.synthesis import REPO_ROOT, Template, flat, lab, synthesise

IMAGES = [image.value for image in Image]
BUILD = "Custom::CDKContainerImageBuild"
IN_THE_IMAGE = {"python_version": "3.12", "sys_platform": "linux", "platform_machine": "x86_64", "extra": ""}
# Not what this repository is tested with, for the bases' sake: with the requirements that these versions state.
OTHER_VERSIONS = {
    "pyarrow": [],
    "pandas": ["numpy>=1.26.0", "python-dateutil>=2.8.2", "pytz>=2020.1", "tzdata>=2022.7"],
}
PINNED = re.compile(r"^[A-Za-z0-9._-]+==[A-Za-z0-9.]+$")


@pytest.fixture(scope="module")
def template() -> Template:
    return lab(target="aws")


@pytest.fixture(scope="module")
def with_neuron() -> Template:
    return lab(target="aws", neuron="true")


def test_images_are_immutable_scanned_and_few(with_neuron: Template) -> None:
    repositories = with_neuron.of_type("AWS::ECR::Repository")
    assert len(repositories) == len(IMAGES)
    for repository in repositories.values():
        assert repository["ImageTagMutability"] == "IMMUTABLE"
        assert repository["ImageScanningConfiguration"]["ScanOnPush"]
        (rule,) = json.loads(repository["LifecyclePolicy"]["LifecyclePolicyText"])["rules"]
        assert rule["selection"]["countNumber"] == 3
        assert repository["EmptyOnDelete"]


def image_variables(template: Template, state: str) -> dict[str, Any]:
    functions = template.of_type("AWS::Lambda::Function")
    (function,) = [function for name, function in functions.items() if state in name]
    variables = function["Environment"]["Variables"]
    return {name: value for name, value in variables.items() if name.endswith("_IMAGE_URI")}


def test_the_neuron_image_is_built_only_where_the_context_asks_for_it(
    template: Template, with_neuron: Template
) -> None:
    assert len(template.of_type(BUILD)) == 1
    assert set(image_variables(template, "SubmitRun")) == {"EFA_IMAGE_URI"}
    assert len(with_neuron.of_type(BUILD)) == 2
    for state in ("SubmitRun", "PlanSuite"):
        assert set(image_variables(with_neuron, state)) == {"EFA_IMAGE_URI", "NEURON_IMAGE_URI"}


def test_a_changed_image_changes_no_export_of_a_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CloudFormation refuses to change an export that another stack imports, and each build makes a new tag."""
    changed = tmp_path / "images"
    shutil.copytree(REPO_ROOT / "images", changed / "images")
    first = synthesise(target="aws", lab="redeployed")
    monkeypatch.setattr(images, "REPO_ROOT", changed)
    with (changed / "images/efa/requirements.txt").open("a") as file:
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
    efa, neuron = sorted(with_neuron.resources(BUILD))
    waits_for = {name: set(resource["DependsOn"]) for name, resource in with_neuron.resources(BUILD).items()}
    assert check in waits_for[efa]
    assert efa in waits_for[neuron]


def test_a_build_that_takes_too_long_fails_before_its_project_and_cloudformation_give_up(template: Template) -> None:
    build, project = template.only(BUILD), template.only("AWS::CodeBuild::Project")
    limit = re.fullmatch(r"timeout (\d+)m (docker buildx build .*)", build["buildCommand"])
    assert limit
    assert int(limit[1]) < project["TimeoutInMinutes"] < int(build["ServiceTimeout"]) / 60
    assert int(build["ServiceTimeout"]) <= 3600


def test_the_time_limit_stands_before_the_constructs_own_command(template: Template) -> None:
    from deploy_time_build import ContainerImageBuild

    stack = cdk.Stack(cdk.App(), "Plain")
    ContainerImageBuild(stack, "Build", directory=str(REPO_ROOT / "images/efa"))
    (plain,) = cdk.assertions.Template.from_stack(stack).find_resources(BUILD).values()
    assert template.only(BUILD)["buildCommand"].endswith(f"m {plain['Properties']['buildCommand']}")


def test_the_log_of_a_failed_build_is_where_its_failure_links_to_and_outlives_the_rollback(template: Template) -> None:
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


def pip_check(base: dict[str, dict[str, Any]], additions: dict[str, str]) -> list[str]:
    """What `pip check` would report after the additions were installed over the base, without a network.

    Requirements are those of the base's wheels, and for additions those of this environment's.
    """
    installed = {name: package["version"] for name, package in base.items()} | additions
    problems = []
    for name in installed:
        stated = base[name]["requires"] or [] if name not in additions else own_requirements(name, additions[name])
        for requirement in map(Requirement, stated):
            found = installed.get(canonicalize_name(requirement.name))
            if found is None or not requirement.specifier.contains(found, prereleases=True):
                problems.append(f"{name} requires {requirement}, found {found}")
    return problems


def own_requirements(name: str, version: str) -> list[str]:
    if metadata.version(name) != version:
        assert name in OTHER_VERSIONS, f"{name}=={version} is not what this repository is tested with"
        return list(OTHER_VERSIONS[name])
    requirements = map(Requirement, metadata.requires(name) or [])
    return [
        f"{each.name}{each.specifier}" for each in requirements if not each.marker or each.marker.evaluate(IN_THE_IMAGE)
    ]


def read_base(name: str) -> dict[str, dict[str, Any]]:
    document = json.loads((REPO_ROOT / "tests/data/image_bases" / f"{name}.json").read_text())
    return dict(document["packages"])


def read_additions(name: str) -> dict[str, str]:
    lines = (REPO_ROOT / "images" / name / "requirements.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(package): version for package, version in pairs}


def test_the_efa_images_additions_resolve_against_the_bases_published_lock() -> None:
    base = read_base("efa")
    assert len(base) > 200
    assert pip_check(base, read_additions("efa")) == []


@pytest.mark.parametrize(
    ("package", "version", "problem"),
    [
        ("fsspec", "2026.9.0", "s3fs requires fsspec==2026.2.0, found 2026.9.0"),
        ("pandas", "3.1.1", "mlflow requires pandas<3, found 3.1.1"),
        ("pyarrow", "26.0.1", "mlflow requires pyarrow<26,>=4.0.0, found 26.0.1"),
    ],
)
def test_what_broke_the_efa_image_before_would_be_found(package: str, version: str, problem: str) -> None:
    assert problem in pip_check(read_base("efa"), {**read_additions("efa"), package: version})


def test_the_efa_image_adds_only_what_the_base_lacks_or_has_too_old() -> None:
    base, additions = read_base("efa"), read_additions("efa")
    replaced = {name for name in additions if name in base}
    assert replaced == {"idna", "pyarrow"}
    for name in replaced:
        kept = {other: version for other, version in additions.items() if other != name}
        assert pip_check(base, kept), f"{name} {base[name]['version']} of the base would do"


def test_the_neuron_images_additions_accept_the_versions_that_its_base_pins() -> None:
    known, additions = read_base("neuron"), read_additions("neuron")
    versions = {name: package["version"] for name, package in known.items()} | additions
    for name, version in additions.items():
        for requirement in map(Requirement, own_requirements(name, version)):
            found = versions.get(canonicalize_name(requirement.name))
            assert found is None or requirement.specifier.contains(found), f"{name} requires {requirement}, {found}"


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
        assert line.startswith("#") or line in tested or line.partition("==")[0] in OTHER_VERSIONS, line


@pytest.mark.parametrize("name", IMAGES)
def test_the_build_checks_the_image_and_its_health_is_the_doctors(name: str) -> None:
    dockerfile = Path(REPO_ROOT / "images" / name / "Dockerfile").read_text()
    assert "RUN python /opt/traindyno/check_image.py" in dockerfile
    assert "python -m training.doctor" in dockerfile
