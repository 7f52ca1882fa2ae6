"""What docs/own-script.md shows is so: its script, its suites, the words to add, and its table of
arguments.
"""

import json
import os
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
    read_program,
    toolkit_environment,
)
from localcloud.sagemaker_service.jobs.job import Engine, new_job
from tests.local.jobs import job_request
from tests.outsiders.test_scripts import logged, run
from traindyno.api.suite_loading import load_startable_suite
from traindyno.core.suite.arguments import command_arguments

PAGE = Path(__file__).parents[2] / "docs" / "own-script.md"
ROW = re.compile(
    r"^\| `(?P<given>[^`]+)` \| `(?P<arguments>-[^`]+)` \| `(?P<variable>SM_HP_[^`]+)` \|$",
    re.MULTILINE,
)
ROWS = [row.groupdict() for row in ROW.finditer(PAGE.read_text())]
PRINTS = """
import json, os, sys
given = {name: value for name, value in os.environ.items() if "SM_HP_" in name}
print(json.dumps([sys.argv[1:], given]))
"""


def test_the_table_has_a_row_for_each_kind_of_value() -> None:
    kinds = {type(value) for row in ROWS for value in yaml.safe_load(row["given"]).values()}
    assert kinds == {int, float, bool, str, list, dict, type(None)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["given"])
def test_a_script_receives_the_values_of_the_table(row: dict[str, str], tmp_path: Path) -> None:
    arguments, variables = what_a_script_sees(yaml.safe_load(row["given"]), tmp_path)
    assert arguments == shlex.split(row["arguments"])
    name, _, value = row["variable"].partition("=")
    assert variables == {name: value}


def what_a_script_sees(
    hyperparameters: dict[str, Any], folder: Path
) -> tuple[list[str], dict[str, str]]:
    """What a process of the script's own reads of them; they are sent as the suite sends them, as
    JSON.
    """
    sent = {name: json.dumps(value) for name, value in hyperparameters.items()}
    job = new_job(
        job_request("job", HyperParameters={**job_request("job")["HyperParameters"], **sent}),
        arn="arn",
        engine=Engine.PROCESS,
        now_ms=0,
    )
    program = read_program(job)
    resources = HostResources(gpu_count=0, core_count=1, master_port=1)
    environment = toolkit_environment(job, program, make_host_tree(folder, "algo-1"), resources)
    command = [sys.executable, "-c", PRINTS, *command_arguments(program.user)]
    printed = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout
    seen: tuple[list[str], dict[str, str]] = json.loads(printed)
    return seen


def block_with(words: str, language: str) -> str:
    (shown,) = [
        block
        for block in re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
        if words in block
    ]
    return str(shown)


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    """The folder of the page's first section."""
    folder = tmp_path / "flowers"
    (folder / "code").mkdir(parents=True)
    (folder / "code/train.py").write_text(block_with("flowers.csv", "python"))
    (folder / "suite.yaml").write_text(block_with("name: flowers", "yaml"))
    (folder / "data").mkdir()
    (folder / "data/flowers.csv").write_text(
        "a,b,c,d,species\n" + "1.5,2,3,4,0\n2,2,1,0.5,1\n0,1,2,3,2\n" * 11
    )
    return folder


def test_the_script_of_the_page_is_measured(flowers: Path, tmp_path: Path) -> None:
    script = (flowers / "code/train.py").read_text()
    (tmp_path / "code").mkdir()
    environment = {"SM_CHANNEL_TRAIN": str(flowers / "data"), "SM_MODEL_DIR": str(tmp_path)}
    ended = run(tmp_path / "code", script, environment)
    assert ended.returncode == 0, ended.stdout
    (process,) = logged(tmp_path / "code")[1].processes
    assert [step.samples for step in process.steps] == [32, 1] * 5
    assert all(step.loss is not None for step in process.steps)


def test_the_suite_of_the_page_has_two_cells_for_this_script(flowers: Path) -> None:
    suite = load_startable_suite(flowers / "suite.yaml").suite
    sizes = [cell.hyperparameters["batch-size"] for cell in suite.cells]
    assert sizes == [32, 128]


def test_the_cells_of_the_page_for_several_processes_are_one_and_two(flowers: Path) -> None:
    document = yaml.safe_load((flowers / "suite.yaml").read_text())
    document |= yaml.safe_load(block_with("instance_count: [1]", "yaml"))
    (flowers / "suite.yaml").write_text(yaml.safe_dump(document))
    suite = load_startable_suite(flowers / "suite.yaml").suite
    assert [cell.settings.instance_count for cell in suite.cells] == [1, 2]


@pytest.mark.parametrize(("processes", "hosts"), [(None, None), ("1", "2")])
def test_lightnings_row_holds_for_one_process_and_for_several(
    monkeypatch: pytest.MonkeyPatch, processes: str | None, hosts: str | None
) -> None:
    for name, value in {"LOCAL_WORLD_SIZE": processes, "GROUP_WORLD_SIZE": hosts}.items():
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    (words,) = re.findall(r"^\| Lightning \| `Trainer\((.*)\)` \|", PAGE.read_text(), re.MULTILINE)
    given = eval(f"dict({words})", {"os": os})
    assert given == {"devices": int(processes or 1), "num_nodes": int(hosts or 1)}


def test_the_row_of_plain_scripts_holds_for_one_process_and_for_several(tmp_path: Path) -> None:
    (words,) = re.findall(
        r"^\| plain \| before the first step: `(.*?)` \|", PAGE.read_text(), re.MULTILINE
    )
    group = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    asked = f"{words}\nprint(torch.distributed.is_initialized())\n"
    source = (
        "import os, torch\n"
        f"{asked}os.environ.update({group})\n"
        f"{asked}torch.distributed.destroy_process_group()\n"
    )
    ended = run(tmp_path, source, {})
    assert ended.stdout.splitlines()[:2] == ["False", "True"], ended.stdout


def test_the_torchvision_of_the_page_is_in_the_image_for_gpus() -> None:
    image = json.loads((PAGE.parents[1] / "tests/data/image_bases/efa.json").read_text())[
        "packages"
    ]
    assert image["torch"]["version"].startswith("2.13.")
    assert f"    torchvision=={image['torchvision']['version']}\n" in PAGE.read_text()


def test_make_demo_runs_the_named_suite() -> None:
    command = ["make", "--dry-run", "--no-print-directory", "demo", "SUITE=../flowers/suite.yaml"]
    made = subprocess.run(
        command, cwd=PAGE.parents[1], check=True, capture_output=True, text=True
    ).stdout
    assert made.splitlines()[-1].endswith('bin/traindyno run "../flowers/suite.yaml" --local')
    assert f"    {command[0]} {' '.join(command[3:])}\n" in PAGE.read_text()
