"""Damaged files of a home: each is set aside under another name, and told with what was lost."""

import base64
import binascii
import json
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from localcloud import cloud, daemons
from localcloud.home import FORMS, DocumentDamaged, Home, Restarted

# MiniStack's state as it was after the last deployment: what was deployed outlives the damage of a file.
DEPLOYED_STATE = "deployed-state"
PARTS = (cloud.MINISTACK, cloud.SAGEMAKER)
TABLES = {"jobs", "events", "documents"}
NO_JOB = "json_type(document, '$.request') is not 'object' or json_type(document, '$.transitions') is not 'array'"
LOST = {
    cloud.MINISTACK: "nothing is lost; a MiniStack that runs is found again by its environment",
    cloud.SAGEMAKER: "nothing is lost; a service that runs is found again by its environment",
    "ports": "nothing is lost while a part runs; else the next start may choose other ports",
    "service-options": "lost: the settings of the local SageMaker service, such as --grant-quotas, --traces, --prices",
    "deployed": "nothing is lost; traindyno local up deploys the CDK app again",
    "restarted": "lost: the note of which executions ended at the last start",
    "credentials": "traindyno local up makes another access key and restarts what runs: lost are executions that run",
    "dynamodb": (
        "lost: the lab's rows; traindyno local up writes attempts and spending again from the jobs of the local "
        "SageMaker service, and verdicts are missing in traindyno list"
    ),
    "stepfunctions": "lost: the list of executions; results, receipts and reports stay",
    "state": "lost: the jobs of the local SageMaker service, their bills, and its quotas and faults",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    path: Path
    why: str

    @property
    def lost(self) -> str:
        return LOST.get(self.path.stem, f"lost: what MiniStack kept of {self.path.stem}")


def set_damage_aside(home: Home, *, tell: Callable[[str], None]) -> None:
    """Files of a part that runs are left alone: it writes them anew."""
    for damage in _damaged_documents(home):
        _tell_kept(damage, tell)
        _put_back(home, damage.path.stem)
    if not daemons.running(home, cloud.MINISTACK):
        for damage in _damaged_states(home):
            _tell_kept(damage, tell)
            deployed = home.state(DEPLOYED_STATE) / damage.path.name
            if deployed.exists() and _state_damage(deployed) is None:
                shutil.copyfile(deployed, damage.path)
    if not daemons.running(home, cloud.SAGEMAKER) and (found := _damaged_jobs(home)):
        _tell_kept(found, tell)


def _put_back(home: Home, name: str) -> None:
    """What a document said, as far as it is known otherwise."""
    if name in PARTS:
        daemons.find_again(home, name)
    elif name == cloud.PORTS and (ports := daemons.find_ports(home, PARTS)):
        home.write(cloud.PORTS, asdict(ports))
    elif name == cloud.RESTARTED:
        home.write(cloud.RESTARTED, asdict(Restarted(at=time.time())))


def keep_deployed_state(home: Home) -> None:
    """After a deployment: what it made can be put back if one of MiniStack's files is damaged later."""
    kept = home.state(DEPLOYED_STATE)
    kept.mkdir(mode=0o700, exist_ok=True)
    for path in home.state(cloud.MINISTACK_STATE).glob("*.json"):
        shutil.copyfile(path, kept / path.name)


def _tell_kept(damage: Damage, tell: Callable[[str], None]) -> None:
    try:
        kept = _set_aside(damage.path)
    except FileNotFoundError:
        return  # another command has set it aside
    tell(f"{damage.path} was damaged ({damage.why}) and is kept as {kept.name}; {damage.lost}")


def _set_aside(path: Path) -> Path:
    """Renames the file, and those that SQLite keeps beside it."""
    stamp = int(time.time())
    while (kept := path.with_name(f"{path.name}.damaged-{stamp}")).exists():
        stamp += 1
    for beside in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + beside).rename(kept.with_name(kept.name + beside))
    path.rename(kept)
    return kept


def _damaged_documents(home: Home) -> Iterator[Damage]:
    for name, form in FORMS.items():
        try:
            home.read_as(name, form)
        except DocumentDamaged as error:
            yield Damage(path=home.document(name), why=error.why)


def _damaged_states(home: Home) -> Iterator[Damage]:
    for path in sorted(home.state(cloud.MINISTACK_STATE).glob("*.json")):
        why = _state_damage(path)
        if why is not None:
            yield Damage(path=path, why=why)


def _state_damage(path: Path) -> str | None:
    """Why MiniStack could not read the file; None if it can."""
    try:
        content = path.read_bytes()
        document = json.loads(content.decode(), object_hook=_check_member)
    except (OSError, ValueError, RecursionError) as error:
        return f"{type(error).__name__}: {error}"
    if not isinstance(document, dict) or not isinstance(document.get("payload"), dict):
        return "another JSON document than MiniStack writes"
    return None if isinstance(document.get("__ministack_format__"), int) else "it has no version of MiniStack's format"


def _check_member(member: dict[str, Any]) -> dict[str, Any]:
    """Raises ValueError for what MiniStack's own reader would fail at."""
    for mark, parts in (("__account_region_scoped__", 3), ("__scoped__", 2)):
        if member.get(mark) is True:
            data = member.get("data")
            if not isinstance(data, dict) or any(key.count("\0") < parts - 1 for key in data):
                raise ValueError(f"a member with {mark} has no data by account")
    if "__bytes__" in member:
        try:
            base64.b64decode(member["__bytes__"])
        except (TypeError, binascii.Error) as error:
            raise ValueError(f"a member with __bytes__ is not base64: {error}") from error
    return member


def _damaged_jobs(home: Home) -> Damage | None:
    path = home.state("sagemaker") / "state.sqlite"
    if not path.exists():
        return None
    if path.is_file() and not path.stat().st_size:
        return Damage(path=path, why="an empty file")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True)) as connection:
            why = _database_damage(connection)
    except sqlite3.OperationalError as error:
        why = str(error) if path.is_dir() else None  # a service that starts may hold it
    except sqlite3.DatabaseError as error:
        why = str(error)
    return None if why is None else Damage(path=path, why=why)


def _database_damage(connection: sqlite3.Connection) -> str | None:
    (found,) = connection.execute("pragma quick_check(1)").fetchone()
    if found != "ok":
        return str(found)
    tables = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
    if not tables >= TABLES:
        return f"a database without the tables {', '.join(sorted(TABLES - tables))}"
    for table in sorted(TABLES):
        (count,) = connection.execute(f"select count(*) from {table} where not json_valid(document)").fetchone()
        if count:
            return f"{count} rows of {table} are not JSON"
    (count,) = connection.execute(f"select count(*) from jobs where {NO_JOB}").fetchone()
    return f"{count} rows of jobs are no training jobs" if count else None
