"""The code that a group measures, and a digest of it: a section with another digest is older than its code.

Of the files themselves, so that it also works without git and in a shallow clone.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.groups import MODULES
from localcloud.home import REPO_ROOT

LAB = ("app.py", "infra", "lambdas", "localcloud", "traindyno")
TRAINING = ("traindyno/callbacks", "traindyno/core/step_log", "traindyno/core/suite", "training")
RACE = (
    "bench/bare_loop.py",
    "bench/our_trainer.py",
    "bench/plain_model.py",
    "bench/race.py",
    "bench/their_trainer.py",
)
# Besides the module of the group itself
PATHS: Mapping[str, tuple[str, ...]] = {
    "demo": (*LAB, "suites/quickstart.yaml", "training"),
    "lambda": ("infra", "lambdas", "traindyno"),
    "synth": ("app.py", "infra"),
    "service": ("localcloud/sagemaker_service",),
    "step_log": ("traindyno/callbacks", "traindyno/core/step_log/line.py"),
    "loop": (*RACE, *TRAINING, "bench/loop_cases.py"),
    "gpu": (*RACE, *TRAINING, "bench/gpu_cases.py"),
    "memory": ("training",),
    "sharded_model": ("bench/sharded_model_rank.py", "training"),
    "replay": LAB,
    "projection": (*LAB, "training"),
    "search": ("bench/surface_lab.py", "traindyno/core"),
    "report": (*LAB, "suites/albert-scaling"),
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


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path  # reading it fails if it is no more
        return
    yield from (each for each in path.rglob("*") if each.suffix in SUFFIXES and "__pycache__" not in each.parts)
