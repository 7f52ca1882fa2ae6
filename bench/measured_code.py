"""The code that a group measures, and a digest of it: a section with another digest is older than its code.

The digest reads the files themselves, so that it also works without git and in a shallow clone.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.groups import MODULES, TITLES
from localcloud.home import REPO_ROOT

LAB = ("app.py", "infra", "lambdas", "localcloud", "traindyno")
TRAINING = ("traindyno/callbacks", "traindyno/core/step_log", "traindyno/core/suite", "training")
RACE = (
    "bench/bare_loop.py",
    "bench/equal_work.py",
    "bench/our_trainer.py",
    "bench/plain_model.py",
    "bench/race.py",
    "bench/race_case.py",
    "bench/race_files.py",
    "bench/their_trainer.py",
    "bench/trained.py",
)
REHEARSAL = (
    "bench/rehearsal.py",
    "bench/rehearsal_findings.py",
    "bench/rehearsal_model.py",
    "bench/rehearsal_traces.py",
    "bench/transformer_flops.py",
)
CLOUD = ("bench/own_cloud.py", "localcloud/cloud.py")
# The code that a group measures, besides its own module
PATHS: Mapping[str, tuple[str, ...]] = {
    "demo": (*LAB, *CLOUD, "bench/alternation.py", "bench/transitions.py", "suites/quickstart.yaml", "training"),
    "pairs": (*TRAINING, "suites/quickstart.yaml", "traindyno/core/measurement", "traindyno/parent"),
    "lambda": ("bench/alternation.py", "infra", "lambdas", "traindyno"),
    "synth": (
        "app.py",
        "bench/alternation.py",
        "bench/kernel_calls.py",
        "infra",
        "traindyno/bundle.py",
        "traindyno/core/lab_names.py",
        "traindyno/import_closure.py",
        "traindyno/sagemaker",
    ),
    "service": (*CLOUD, "localcloud/sagemaker_service"),
    "step_log": ("bench/alternation.py", "traindyno/callbacks", "traindyno/core/step_log/line.py"),
    "loop": (*RACE, *TRAINING, "bench/loop_cases.py", "bench/sample_rows.py"),
    "gpu": (*RACE, *TRAINING, "bench/gpu_cases.py"),
    "memory": ("training", "traindyno/core/planning/memory.py"),
    "sharded_model": ("bench/memory.py", "bench/sharded_model_rank.py", "training"),
    "replay": (*LAB, *CLOUD, "bench/alternation.py", "bench/demo.py", "bench/transitions.py"),
    "projection": (*LAB, *CLOUD, "training"),
    "search": (
        "bench/asha.py",
        "tests/simulations/other_races.py",
        "tests/simulations/race_lab.py",
        "tests/simulations/response_surface.py",
        "tests/simulations/surface_lab.py",
        "tests/data/surfaces",
        "traindyno/core",
    ),
    "report": (*LAB, *CLOUD, *REHEARSAL, "suites/albert-scaling"),
}
SUFFIXES = frozenset({".css", ".html", ".js", ".json", ".py", ".yaml"})
DIGITS = 12


def code_digest(group: str, root: Path = REPO_ROOT) -> str:
    module = MODULES[group].replace(".", "/") + ".py"
    summed = hashlib.sha256()
    for file in sorted({file for path in (*PATHS[group], module) for file in _files(root / path)}):
        content = file.read_bytes()
        summed.update(f"{file.relative_to(root).as_posix()} {len(content)}\n".encode())
        summed.update(content)
    return summed.hexdigest()[:DIGITS]


def digests_by_title() -> dict[str, str]:
    """Title of the section → digest of today's code."""
    return {TITLES[group]: code_digest(group) for group in MODULES}


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path  # reading it fails if it no longer exists
        return
    yield from (each for each in path.rglob("*") if each.suffix in SUFFIXES and "__pycache__" not in each.parts)
