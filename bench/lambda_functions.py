"""Lambda functions: how large their source is, and the import time that handlers add to boto3's."""

import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.alternation import Comparison, alternate
from bench.figures import Figure, Section, at_most, spread
from bench.groups import TITLES, command
from infra.lambda_source import REPO_ROOT, pack_lambda_source

ASSET_KB, OWN_ASSET_KB, IMPORT_MILLISECONDS = 3_000, 500, 150
ROUNDS, QUICK_ROUNDS = 21, 3
OF_EACH_JOB = "lambdas.submit_run.handler"
PROBE = """
import importlib, sys, time
sys.path.insert(0, sys.argv[1])
began = time.perf_counter()
import boto3
for name in sys.argv[2:]:
    importlib.import_module(name)
print(time.perf_counter() - began, len(sys.modules))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    seconds: float
    modules: int


def measure(*, is_quick: bool) -> Section:
    rounds = QUICK_ROUNDS if is_quick else ROUNDS
    with tempfile.TemporaryDirectory() as scratch:
        zipped, zipped_own = pack_lambda_source(), pack_lambda_source(with_boto3=False)
        sizes = len(zipped), len(zipped_own)
        own, whole = unzipped(zipped_own, Path(scratch, "own")), unzipped(zipped, Path(scratch, "whole"))
        largest = max(handler_names(), key=lambda name: compile_and_import(own, name).modules)
        cold = alternate(
            lambda: compile_and_import(own, largest).seconds * 1e3,
            lambda: compile_and_import(whole, largest).seconds * 1e3,
            rounds=rounds,
        )
        warm = {name: over_boto3(own, name, rounds=rounds) for name in (largest, OF_EACH_JOB)}
    return Section(
        title=TITLES["lambda"],
        command=command("lambda"),
        figures=figures(sizes, warm, cold),
        notes=(
            "Each import in a fresh process: of the handler with the most modules, which runs once for each suite, and "
            "of the one that runs for each job. Most of the time creates dataclasses, whose methods Python compiles at "
            "each import. Lambda can't keep the bytecode of what it unpacks, so that a cold start compiles all that "
            "the asset contains. The functions bring the pinned boto3, since that of Lambda's runtime may refuse "
            "requests that they send. The asset has only those of our modules that a handler imports. cattrs takes "
            "140 KB, with the packages that it imports.",
        ),
    )


def over_boto3(staged: Path, name: str, *, rounds: int) -> Comparison:
    """The import of boto3, and of boto3 with the handler, both compiled before."""
    import_in_fresh_process(staged, name)
    return alternate(
        lambda: import_in_fresh_process(staged).seconds * 1e3,
        lambda: import_in_fresh_process(staged, name).seconds * 1e3,
        rounds=rounds,
    )


def figures(sizes: tuple[int, int], warm: Mapping[str, Comparison], cold: Comparison) -> tuple[Figure, ...]:
    """``sizes`` in bytes: with boto3, and without it. ``warm``: handler → its import; ``cold``: without boto3, and
    with it.
    """
    whole, own = sizes
    return (
        Figure(name="asset of the functions, zipped", value=whole / 1e3, unit="KB", budget=at_most(ASSET_KB)),
        Figure(name="of which our source and cattrs", value=own / 1e3, unit="KB", budget=at_most(OWN_ASSET_KB)),
        *(
            Figure(
                name=f"import of {handler} over `import boto3`",
                value=imported.difference,
                unit="ms",
                budget=at_most(IMPORT_MILLISECONDS),
            )
            for handler, imported in warm.items()
        ),
        Figure(
            name="import of boto3 and the larger handler, both compiled each time",
            value=spread([*cold.second]),
            unit="ms",
        ),
        Figure(name="the same, with a boto3 that is compiled", value=spread([*cold.first]), unit="ms"),
    )


def handler_names() -> list[str]:
    return sorted(f"lambdas.{path.parent.name}.handler" for path in (REPO_ROOT / "lambdas").glob("*/handler.py"))


def import_in_fresh_process(staged: Path, *names: str, keeps_bytecode: bool = True) -> Imported:
    options = ["-P"] if keeps_bytecode else ["-P", "-B"]
    answer = subprocess.run(
        [sys.executable, *options, "-c", PROBE, str(staged), *names],
        cwd=staged,
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, modules = answer.stdout.split()
    return Imported(seconds=float(seconds), modules=int(modules))


def compile_and_import(staged: Path, name: str) -> Imported:
    """Compiles and imports the handler as a cold start does."""
    return import_in_fresh_process(staged, name, keeps_bytecode=False)


def unzipped(source: bytes, folder: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(source)) as archive:
        archive.extractall(folder)
    return folder
