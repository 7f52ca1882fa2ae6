"""Every state file of a home, with every kind of damage: named, kept, and told with what was lost."""

import json
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.request import Request

import psutil
import pytest
from typer.testing import CliRunner

from localcloud import cloud, daemons
from localcloud.deployment import DEPLOYED
from localcloud.environment import local_environment
from localcloud.home import (
    FORMS,
    HOME_VARIABLE,
    Credentials,
    Daemon,
    Deployed,
    Home,
    HomeUnusable,
    Ports,
    Restarted,
    ServiceOptions,
)
from localcloud.loopback import LOOPBACK, free_port
from localcloud.sagemaker_service.jobs.job import Engine, new_job
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.state_files import keep_deployed_state, set_damage_aside
from traindyno.cli.commands.local_commands import app

SOUND: dict[str, Any] = {
    cloud.MINISTACK: Daemon(process_id=2**22 + 1, started_at=1.5, port=1),
    cloud.SAGEMAKER: Daemon(process_id=2**22 + 2, started_at=1.5, port=2),
    cloud.PORTS: Ports(aws=1, sagemaker=2),
    cloud.OPTIONS: ServiceOptions(options=("--grant-quotas", "9")),
    DEPLOYED: Deployed(fingerprint="f", stacks=("a",)),
    cloud.RESTARTED: Restarted(at=1.5),
    "credentials": Credentials(access_key_id="LOCAL0"),
}
STATE = {"tables": {"__account_region_scoped__": True, "data": {"0\0us-east-1\0'rows'": {"items": {}}}}}
SERVICES = ("dynamodb", "lambda", "s3", "stepfunctions")
JOBS = "sagemaker/state.sqlite"
FILES = (
    *(f"{name}.json" for name in sorted(SOUND)),
    *(f"ministack-state/{name}.json" for name in SERVICES),
    JOBS,
)


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "half": half,
    "garbage": lambda content: bytes(range(256)) + content[::-1],
    "a list": lambda _: b"[1, 2]",
    "another object": lambda _: b'{"x": 1}',
    "a number": lambda _: b"7",
    "nested too deep": lambda _: b"[" * 100_000,
}


@pytest.fixture(scope="module")
def job_store(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a store without jobs; to make one takes a while on a busy disk."""
    path = tmp_path_factory.mktemp("jobs") / "state.sqlite"
    JobStore(path, lambda _: []).close()
    return path.read_bytes()


@pytest.fixture
def home(tmp_path: Path, job_store: bytes) -> Home:
    """A home whose two parts have ended, with sound files."""
    home = Home(tmp_path / "home")
    for name, document in SOUND.items():
        home.write(name, asdict(document))
    folder = home.state(cloud.MINISTACK_STATE)
    folder.mkdir()
    for name in SERVICES:
        (folder / f"{name}.json").write_text(json.dumps({"__ministack_format__": 2, "payload": STATE}))
    (home.folder / JOBS).parent.mkdir()
    (home.folder / JOBS).write_bytes(job_store)
    return home


def repair(home: Home) -> list[str]:
    told: list[str] = []
    set_damage_aside(home, tell=told.append)
    return told


def test_sound_files_are_left_as_they_are(home: Home) -> None:
    before = {path: path.read_bytes() for path in home.folder.rglob("*") if path.is_file()}
    assert repair(home) == []
    assert {path: path.read_bytes() for path in home.folder.rglob("*") if path.is_file()} == before
    assert FORMS.keys() == SOUND.keys()


@pytest.mark.parametrize("damage", sorted(DAMAGE))
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_file_is_named_kept_and_told_with_what_was_lost(home: Home, file: str, damage: str) -> None:
    path = home.folder / file
    damaged = DAMAGE[damage](path.read_bytes())
    path.write_bytes(damaged)
    (text,) = repair(home)
    assert str(path) in text
    assert "lost" in text or "ports" in text
    (kept,) = path.parent.glob(f"{path.name}.damaged-*")
    assert kept.read_bytes() == damaged
    assert kept.name in text
    assert path.exists() == (file == "restarted.json")  # what ended is settled all the same
    assert repair(home) == []


@pytest.mark.parametrize("command", ["status", "down"])
@pytest.mark.parametrize("damage", sorted(DAMAGE))
def test_commands_name_all_damaged_files_and_go_on(
    home: Home, damage: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in FILES:
        path = home.folder / file
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
    monkeypatch.setenv(HOME_VARIABLE, str(home.folder))
    answer = CliRunner().invoke(app, [command], catch_exceptions=False)
    assert answer.exit_code == (3 if command == "status" else 0)
    assert all(list((home.folder / file).parent.glob(f"{Path(file).name}.damaged-*")) for file in FILES)


@pytest.mark.parametrize("name", sorted(SOUND))
def test_other_commands_say_how_a_damaged_document_is_set_aside(home: Home, name: str) -> None:
    home.document(name).write_text('{"x": 1}')
    with pytest.raises(HomeUnusable, match=rf"{name}\.json is damaged.*set it aside with: traindyno local up"):
        home.read_as(name, FORMS[name])


def test_what_was_deployed_is_put_back_for_a_damaged_file_of_ministack(home: Home) -> None:
    keep_deployed_state(home)
    path = home.state(cloud.MINISTACK_STATE) / "stepfunctions.json"
    deployed = path.read_bytes()
    path.write_bytes(b"")
    (text,) = repair(home)
    assert "lost: the list of executions" in text
    assert path.read_bytes() == deployed


def test_what_sqlite_keeps_beside_a_database_goes_with_it(home: Home) -> None:
    path = home.folder / JOBS
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).write_bytes(b"garbage" * 1000)
    repair(home)
    assert {each.name.partition(".damaged-")[0] for each in path.parent.iterdir()} == {path.name}


@pytest.mark.parametrize(("document", "why"), [("{", "not JSON"), ('{"x": 1}', "no training jobs")])
def test_rows_of_the_job_store_that_are_no_jobs_are_damage(home: Home, document: str, why: str) -> None:
    with closing(sqlite3.connect(home.folder / JOBS)) as connection, connection:
        connection.execute("insert into jobs (name, document) values ('a', ?)", (document,))
    (text,) = repair(home)
    assert f"1 rows of jobs are {why}" in text


def test_a_job_store_with_a_job_is_sound(home: Home) -> None:
    store = JobStore(home.folder / JOBS, lambda _: [])
    request = {"TrainingJobName": "a", "ResourceConfig": {"InstanceType": "local.cpu"}}
    store.add(new_job(request, arn="arn", engine=Engine.PROCESS, tags={}, now_ms=0, message=""))
    store.close()
    assert repair(home) == []


def test_the_files_of_a_part_that_runs_are_left_alone(home: Home) -> None:
    own = Daemon(process_id=os.getpid(), started_at=psutil.Process().create_time(), port=1)
    home.write_daemon(cloud.MINISTACK, own)
    home.write_daemon(cloud.SAGEMAKER, own)
    for file in FILES[len(SOUND) :]:
        (home.folder / file).write_bytes(b"")
    assert repair(home) == []


def test_a_running_part_and_its_ports_are_found_again(home: Home) -> None:
    port = free_port()
    daemon = daemons.start(
        home,
        cloud.MINISTACK,
        [sys.executable, "-m", "http.server", str(port), "--bind", LOOPBACK],
        port=port,
        health=Request(f"http://{LOOPBACK}:{port}/"),
        environment=local_environment(Ports(aws=port, sagemaker=4590), "LOCAL0"),
        folder=home.folder,
    )
    try:
        home.document(cloud.MINISTACK).write_text("[]")
        home.document(cloud.PORTS).write_text("[]")
        assert len(repair(home)) == 2
        assert home.read_daemon(cloud.MINISTACK) == daemon
        assert home.read_as(cloud.PORTS, Ports) == Ports(aws=port, sagemaker=4590)
    finally:
        assert daemons.stop(home, cloud.MINISTACK, seconds=1)
