"""The table of docs/own-script.md says what a script really receives."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from localcloud.sagemaker_service.host.container_tree import make_host_tree
from localcloud.sagemaker_service.host.toolkit import (
    HostResources,
    command_arguments,
    read_program,
    toolkit_environment,
)
from localcloud.sagemaker_service.jobs.job import Engine, new_job
from tests.local.jobs import job_request

PAGE = Path(__file__).parents[2] / "docs" / "own-script.md"
ROW = re.compile(r"^\| `(?P<given>[^`]+)` \| `(?P<arguments>-[^`]+)` \| `(?P<variable>SM_HP_[^`]+)` \|$", re.MULTILINE)
ROWS = [row.groupdict() for row in ROW.finditer(PAGE.read_text())]
PRINTS = """
import json, os, sys
print(json.dumps([sys.argv[1:], {name: value for name, value in os.environ.items() if "SM_HP_" in name}]))
"""


def test_the_table_has_a_row_for_each_kind_of_value() -> None:
    kinds = {type(value) for row in ROWS for value in yaml.safe_load(row["given"]).values()}
    assert kinds == {int, float, bool, str, list, dict, type(None)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["given"])
def test_a_script_receives_what_the_table_says(row: dict[str, str], tmp_path: Path) -> None:
    arguments, variables = what_a_script_sees(yaml.safe_load(row["given"]), tmp_path)
    assert arguments == shlex.split(row["arguments"])
    name, _, value = row["variable"].partition("=")
    assert variables == {name: value}


def what_a_script_sees(hyperparameters: dict[str, Any], folder: Path) -> tuple[list[str], dict[str, str]]:
    """What a process of the script's own reads of them; they are sent as the suite sends them, as JSON."""
    sent = {name: json.dumps(value) for name, value in hyperparameters.items()}
    job = new_job(
        job_request("job", HyperParameters={**job_request("job")["HyperParameters"], **sent}),
        arn="arn",
        engine=Engine.PROCESS,
        tags={},
        now_ms=0,
        message="",
    )
    program = read_program(job)
    resources = HostResources(processes=1, gpu_count=0, core_count=1, master_port=1)
    environment = toolkit_environment(job, program, make_host_tree(folder, "algo-1"), resources)
    command = [sys.executable, "-c", PRINTS, *command_arguments(program.user)]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    seen: tuple[list[str], dict[str, str]] = json.loads(printed)
    return seen
