"""What leaves the repository for AWS: one source asset for every function, one tarball for every
job.
"""

import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from aws_cdk.assertions import Capture, Match

from infra.lambda_source import pack_lambda_source
from tests.infra.image_packages import read_pins
from tests.infra.synthesis import (
    OTHER_LAB,
    REPO_ROOT,
    as_list,
    flat,
    lab,
    properties,
    statements,
    synthesise,
)

SIZE_LIMIT_BYTES = 3_000_000
IMPORT_PROBE = """
import importlib, sys
before = set(sys.modules)
sys.path.insert(0, sys.argv[1])
assert callable(importlib.import_module(sys.argv[2]).handle)
new = [module for name, module in [*sys.modules.items()] if name not in before]
files = {module.__name__: module.__dict__.get("__file__") or "" for module in new}
print(*{name.split(".")[0] for name, path in files.items() if "site-packages" in path})
"""


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source as Lambda unpacks it."""
    folder = tmp_path_factory.mktemp("lambda")
    with zipfile.ZipFile(io.BytesIO(pack_lambda_source())) as archive:
        archive.extractall(folder)
    return folder


def names_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_functions_get_core_edge_report_handlers_and_cattrs(staged: Path) -> None:
    names = names_in(staged)
    boto3 = {"boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six.py", "urllib3"}
    expected = {
        "traindyno/core/suite/suite.py",
        "traindyno/aws/clients.py",
        "lambdas/submit_run/handler.py",
    }
    assert (
        expected
        | {"cattrs/__init__.py", "attrs/__init__.py", "attr/__init__.py", "typing_extensions.py"}
        <= names
    )
    assert {name.split("/")[0] for name in names} == {
        "traindyno",
        "lambdas",
        "cattrs",
        "attrs",
        "attr",
        "typing_extensions.py",
        *boto3,
    }
    assert {name.split("/")[1] for name in names if name.startswith("traindyno/")} == {
        "__init__.py",
        "core",
        "features.py",
        "figures",
        "sagemaker",
        "slices",
        "report",
        "aws",
        "store",
        "lab",
    }
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_functions_get_no_imports_of_the_command_line_alone(staged: Path) -> None:
    names = names_in(staged)
    assert "traindyno/aws/objects.py" in names
    assert "traindyno/core/verdict/gate.py" not in names


def test_functions_get_the_files_of_the_core(staged: Path) -> None:
    folders = [REPO_ROOT / "traindyno" / name for name in ("core", "sagemaker")]
    data = {
        path.relative_to(REPO_ROOT) for folder in folders for path in folder.rglob("data/*.json")
    }
    assert data
    assert [path for path in data if not (staged / path).is_file()] == []


def test_the_asset_stays_small() -> None:
    assert len(pack_lambda_source()) <= SIZE_LIMIT_BYTES


def test_asset_depends_on_its_contents_only_and_any_user_may_read_it(tmp_path: Path) -> None:
    """Lambda runs as another user than the one that unpacks; a changed asset replaces every
    function.
    """
    copy = tmp_path / "copy"
    for part in ("traindyno", "lambdas"):
        shutil.copytree(REPO_ROOT / part, copy / part, copy_function=shutil.copyfile)
    private = copy / "lambdas/__init__.py"
    private.chmod(0o600)
    os.utime(private, (0, 0))
    packed = pack_lambda_source(copy, with_boto3=False)
    assert packed == pack_lambda_source(with_boto3=False)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert {stat.filemode(info.external_attr >> 16)[1:] for info in archive.infolist()} == {
            "rw-r--r--"
        }


def test_synthesis_copies_one_file_for_the_functions() -> None:
    """A folder of sources would be copied and read file by file, which took a fourth of the time of
    a synthesis.
    """
    ours = {"Handler": Match.string_like_regexp(r"^lambdas\.")}
    functions = properties(lab(**OTHER_LAB), "AWS::Lambda::Function", ours).values()
    (key,) = {flat(function["Code"]["S3Key"]) for function in functions}
    assert (synthesise(**OTHER_LAB).folder / f"asset.{key}").read_bytes() == pack_lambda_source()


def test_asset_has_the_pinned_boto3_with_every_called_service(staged: Path) -> None:
    pinned = dict(line.split("==") for line in read_pins(REPO_ROOT / "requirements.txt"))
    source = (REPO_ROOT / "traindyno/aws/clients.py").read_text()
    called = set(re.findall(r'(?:_client|resource)\(\s*"([a-z0-9-]+)"', source))
    probe = """
import json, sys
sys.path.insert(0, sys.argv[1])
import boto3, botocore
assert boto3.__file__.startswith(sys.argv[1]) and botocore.__file__.startswith(sys.argv[1])
session = boto3.Session(region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
for service in sys.argv[2:]:
    session.client(service)
session.resource("dynamodb").Table("t")
pending = session.client("sagemaker").meta.service_model.shape_for("MaxPendingTimeInSeconds")
print(json.dumps([boto3.__version__, botocore.__version__, pending.metadata]))
"""
    # The command line alone asks endpoints.
    services = sorted(called - {"sagemaker-runtime"})
    answer = subprocess.run(
        [sys.executable, "-P", "-c", probe, str(staged), *services],
        capture_output=True,
        text=True,
        check=True,
        cwd=staged,
        env={"PATH": ""},
    )
    versions = json.loads(answer.stdout)
    assert versions[:2] == [pinned["boto3"], pinned["botocore"]]
    assert versions[2]["min"] <= 7200


@pytest.mark.parametrize(
    "state", sorted(path.parent.name for path in (REPO_ROOT / "lambdas").glob("*/handler.py"))
)
def test_every_handler_needs_the_asset_alone(staged: Path, state: str) -> None:
    """Site-packages stand in for the runtime, and must give nothing but the certificates that
    botocore has as well.
    """
    runtime = {"certifi"}
    answer = subprocess.run(
        [sys.executable, "-P", "-c", IMPORT_PROBE, str(staged), f"lambdas.{state}.handler"],
        capture_output=True,
        text=True,
        check=True,
        cwd=staged,
        env={"PATH": ""},
    )
    assert set(answer.stdout.split()) <= runtime


def test_all_functions_share_one_asset_and_name_existing_handlers() -> None:
    functions = properties(lab(target="local"), "AWS::Lambda::Function").values()
    assert len({str(function["Code"]) for function in functions}) == 1
    for function in functions:
        module = function["Handler"].removesuffix(".handle").replace(".", "/")
        assert (REPO_ROOT / f"{module}.py").is_file()


def test_functions_recording_runs_have_memory_and_time_for_a_whole_step_log() -> None:
    """FinishRun and the sweep record the runs of an execution that was stopped: the log of a long
    training is no shorter then than for RecordRun. The sweep ends before the next one begins.
    """
    for name, seconds in {"record_run": 900, "finish_run": 900, "reconcile_runs": 280}.items():
        function = {"Handler": f"lambdas.{name}.handler.handle", "MemorySize": 3008}
        lab(target="local").has_resource_properties(
            "AWS::Lambda::Function", {**function, "Timeout": seconds}
        )


def test_a_job_gets_the_code_of_the_built_in_tasks() -> None:
    assembly = synthesise(target="local")
    (path,) = assembly.folder.glob("asset.*.tar.gz")
    with tarfile.open(path) as archive:
        names = set(archive.getnames())
    assert {"traindyno_train.py", "traindyno/core/step_log/line.py", "training/main.py"} <= names
    assert not [
        name
        for name in names
        if name.startswith(("traindyno/aws", "traindyno/cli", "lambdas", "infra"))
    ]


def test_plan_suite_alone_may_read_the_tarball_and_no_other_asset() -> None:
    """It makes the copy in the lab's bucket from which jobs start."""
    template = lab(target="local")
    uri = Capture()
    plan = {"Handler": "lambdas.plan_suite.handler.handle"}
    source = {"Environment": {"Variables": {"SOURCE_S3_URI": {"Fn::Sub": uri}}}}
    template.has_resource_properties("AWS::Lambda::Function", {**plan, **source})
    bucket, _, key = uri.as_string().removeprefix("s3://").partition("/")
    readable = [
        (role, str(resource))
        for role in properties(template, "AWS::IAM::Role")
        for statement in statements(template, role)
        if "s3:GetObject" in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
        if bucket in str(resource)
    ]
    ((role, granted),) = readable
    assert role.startswith("FunctionsPlanSuiteRole")
    assert key in granted
    assert "*" not in granted


def test_functions_of_the_local_cloud_use_the_boto3_of_its_environment() -> None:
    with zipfile.ZipFile(io.BytesIO(pack_lambda_source(with_boto3=False))) as archive:
        packages = {name.split("/")[0] for name in archive.namelist()}
    assert {"traindyno", "lambdas", "cattrs"} <= packages
    assert not {"boto3", "botocore"} & packages
