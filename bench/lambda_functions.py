"""Lambda functions: how large their source is, and the import time that the largest handler adds to boto3's."""

import io
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from bench.alternation import alternate
from bench.figures import Figure, Section, at_most
from bench.groups import TITLES, command
from infra.lambda_source import REPO_ROOT, stage_lambda_source

ASSET_KB, IMPORT_MILLISECONDS = 500, 150
ROUNDS, QUICK_ROUNDS = 21, 3
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
        staged = stage_lambda_source(Path(scratch, "source"))
        largest = max(handler_names(), key=lambda name: import_in_fresh_process(staged, name).modules)
        compared = alternate(
            lambda: import_in_fresh_process(staged).seconds * 1e3,
            lambda: import_in_fresh_process(staged, largest).seconds * 1e3,
            rounds=rounds,
        )
        source_only = stage_lambda_source(Path(scratch, "source_only"))
        cold = alternate(
            lambda: import_in_fresh_process(source_only, keeps_bytecode=False).seconds * 1e3,
            lambda: import_in_fresh_process(source_only, largest, keeps_bytecode=False).seconds * 1e3,
            rounds=rounds,
        )
        size = zipped_bytes(source_only)
    return Section(
        title=TITLES["lambda"],
        command=command("lambda"),
        figures=(
            Figure(name="source asset, zipped", value=size / 1e3, unit="KB", budget=at_most(ASSET_KB)),
            Figure(
                name=f"import of {largest} over `import boto3`",
                value=compared.difference,
                unit="ms",
                budget=at_most(IMPORT_MILLISECONDS),
            ),
            Figure(name="the same, with our source compiled each time", value=cold.difference, unit="ms"),
        ),
        notes=(
            "Each import in a fresh process; of all handlers, the one with the most modules. Lambda can't keep the "
            "bytecode of what it unpacks, so that a cold start compiles our source; boto3 comes compiled.",
        ),
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


def zipped_bytes(folder: Path) -> int:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(folder))
    return len(packed.getvalue())
