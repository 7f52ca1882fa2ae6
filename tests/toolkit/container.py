"""A training container without a container: AWS's own toolkit runs a job's request under the
images' PID 1, in namespaces with their own processes, host name and /opt/ml.

Needs root, for `unshare`, and the folders that `make .envs/toolkit_with_shell/.installed` fills.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localcloud.sagemaker_service.host.container_tree import make_host_tree, write_configs
from localcloud.sagemaker_service.jobs.job import Engine, new_job
from traindyno.bundle import pack
from traindyno.sagemaker.launcher import ISOLATED_SOURCE

REPO_ROOT = Path(__file__).parents[2]
ENVIRONMENTS = REPO_ROOT / ".envs"
# Version of sagemaker-training → the folders of its packages, the first one first.
TOOLKITS = {"5.1.4": ("toolkit",), "5.1.1": ("toolkit_with_shell", "toolkit")}
HOST = "algo-1"
HOSTNAME_SCRIPT = 'if [[ "$1" = "train" ]]; then train; else eval "$@"; fi\n'
# /opt is hidden, so that /opt/ml is the job's folder.
BEGIN = f"""set -e
hostname {HOST}
mount -t tmpfs tmpfs /opt
mkdir /opt/ml
mount --bind "$ML" /opt/ml
mount --bind "$ML/hosts" /etc/hosts
exec {sys.executable} "$ENTRY_POINT" train
"""
NAMESPACES = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "--uts")


def why_no_container() -> str | None:
    if os.geteuid() != 0:
        return "unshare needs root"
    missing = [name for name in TOOLKITS["5.1.1"] if not (ENVIRONMENTS / name / "bin").is_dir()]
    return f"make .envs/{missing[0]}/.installed" if missing else None


@dataclass(kw_only=True)
class Container:
    """A container of a request; ``source`` has the files of the job's code by their names in the
    archive.
    """

    folder: Path
    request: Mapping[str, Any]
    source: Mapping[str, Path]
    toolkit: str
    variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        job = new_job(dict(self.request), arn="arn", engine=Engine.PROCESS, now_ms=0)
        tree = make_host_tree(self.folder, HOST)
        self.ml = tree.root
        self._failure.unlink(missing_ok=True)  # of an earlier job with these checkpoints
        write_configs(job, tree, self.request["HyperParameters"])
        code = self.ml / ISOLATED_SOURCE.removeprefix("/opt/ml/")
        code.parent.mkdir(parents=True, exist_ok=True)
        code.write_bytes(pack(self.source))
        (self.ml / "code").mkdir(exist_ok=True)
        (self.ml / "hosts").write_text(f"127.0.0.1 localhost {HOST}\n")
        (self.folder / "bin").mkdir(exist_ok=True)
        (self.folder / "bin/start_with_right_hostname.sh").write_text(HOSTNAME_SCRIPT)
        (self.folder / "begin.sh").write_text(BEGIN)

    @contextmanager
    def started(self) -> Iterator["subprocess.Popen[bytes]"]:
        packages = [str(ENVIRONMENTS / name) for name in TOOLKITS[self.toolkit]]
        programs = [
            str(self.folder / "bin"),
            f"{packages[0]}/bin",
            str(Path(sys.executable).parent),
        ]
        environment = {
            "PATH": os.pathsep.join([*programs, "/usr/sbin", "/usr/bin", "/sbin", "/bin"]),
            "PYTHONPATH": os.pathsep.join(packages),
            "HOME": "/root",
            "ML": str(self.ml),
            "ENTRY_POINT": str(REPO_ROOT / "images/entry_point.py"),
            "SAGEMAKER_TRAINING_MODULE": "sagemaker_pytorch_container.training:main",
            "TRAINING_JOB_NAME": self.request["TrainingJobName"],
            "OMP_NUM_THREADS": "1",
            **self.request.get("Environment", {}),
            **self.variables,
        }
        command = [*NAMESPACES, "bash", str(self.folder / "begin.sh")]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def run(self, seconds: float = 300) -> int:
        with self.started() as process:
            return process.wait(seconds)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    @property
    def failure(self) -> str:
        return self._failure.read_text() if self._failure.exists() else ""

    @property
    def _failure(self) -> Path:
        return self.ml / "output/failure"

    def failure_reason(self, exit_code: int) -> str:
        """As SageMaker makes it of the failure file."""
        return f"AlgorithmError: {self.failure}, exit code: {exit_code}"

    def wait_until(self, holds: Callable[[], bool], seconds: float = 300) -> None:
        """Of a file below /opt/ml that the job writes."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, self.log
            time.sleep(0.05)


def first_process(process: "subprocess.Popen[bytes]") -> int:
    """The namespace's PID 1, which SageMaker's signals reach."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return int(children.read_text().split()[0])
