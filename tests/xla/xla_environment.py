"""Makes an environment with another PyTorch on a machine without an accelerator: that of compiler
xla, or that of an endpoint: ``python -m tests.xla.xla_environment .envs/xla``.

PyPI's PyTorch is the CUDA build. It requires about 3 GB of NVIDIA's libraries, none of which is
called without a GPU, so empty libraries of the same names replace them. Needs gcc and readelf; made
once, in about a minute.
"""

import fcntl
import os
import subprocess
import sys
import venv
from pathlib import Path

from tests.xla.cuda_stand_ins import make_stand_ins

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
# Name of the environment's folder, and of its files of requirements → what it has to do
CHECKS = {
    "xla": (
        "import torch, torch_xla; torch_xla.sync(); print(float(torch.ones(2, 2, "
        "device=torch_xla.device()).sum()))"
    ),
    "endpoint": "import sagemaker_pytorch_serving_container, torch; print(torch.ones(2).sum())",
}


def make_environment(folder: Path) -> Path:
    """The environment's Python.

    The environment is complete or absent, and is made by one process at a time; others wait.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _make(folder)


def _make(folder: Path) -> Path:
    python = folder / "bin" / "python"
    mark = folder / ".installed"
    files = [REQUIREMENTS / f"{folder.name}{part}.txt" for part in ("", "_torch")]
    wanted = "".join(file.read_text() for file in files)
    if mark.exists() and mark.read_text() == wanted:
        return python
    venv.create(folder, clear=True, symlinks=True)
    # Python compiles what is imported, a small part of PyTorch.
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-compile"]
    pip += ["--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--require-hashes", "-r", str(files[0])], check=True)
    subprocess.run([*pip, "-r", str(files[1])], check=True)
    make_stand_ins(next(folder.glob("lib/python*/site-packages/torch/lib")))
    check = [str(python), "-c", CHECKS[folder.name]]
    subprocess.run(check, check=True, env={**os.environ, "PJRT_DEVICE": "CPU"})
    # Written last: it marks the environment as complete.
    mark.write_text(wanted)
    return python


if __name__ == "__main__":
    make_environment(Path(sys.argv[1]).absolute())
