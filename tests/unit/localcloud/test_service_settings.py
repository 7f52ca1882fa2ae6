"""The arguments of ``python -m localcloud.sagemaker_service`` are the settings of the service."""

from dataclasses import fields
from decimal import Decimal
from pathlib import Path

from localcloud.sagemaker_service.__main__ import _read_settings
from localcloud.sagemaker_service.settings import ServiceSettings

REQUIRED = ("--state", "/state", "--aws-endpoint", "http://aws")


def test_each_argument_sets_its_setting(tmp_path: Path) -> None:
    (tmp_path / "prices.json").write_text('{"ml.g5.xlarge": 1.5}')
    given = {
        "port": ("--port 1", 1),
        "environments_folder": ("--environments /images", Path("/images")),
        "simulates_all": ("--simulate-all", True),
        "checkpoint_sync_seconds": ("--checkpoint-sync-seconds 0.5", 0.5),
        "stop_grace_seconds": ("--stop-grace-seconds 3", 3.0),
        "local_memory_gib": ("--local-memory-gib 1.5", 1.5),
        "prices": (f"--prices {tmp_path}/prices.json", {"ml.g5.xlarge": Decimal("1.5")}),
        "granted_quota": ("--grant-quotas 16", 16.0),
        "traces_folder": ("--traces /traces", Path("/traces")),
        "speed_up": ("--speed-up 60", 60.0),
        "jump_when_quiet_seconds": ("--jump-when-quiet-seconds 1", 1.0),
    }
    settings = _read_settings(
        [*REQUIRED, *" ".join(argument for argument, _ in given.values()).split()]
    )
    assert {name: getattr(settings, name) for name in given} == {
        name: value for name, (_, value) in given.items()
    }
    without_argument = {"access_key_id", "cores"}
    assert {field.name for field in fields(ServiceSettings)} == {
        "state_folder",
        "aws_endpoint",
        *given,
        *without_argument,
    }


def test_without_arguments_the_defaults_come_from_the_settings() -> None:
    settings = _read_settings(REQUIRED)
    own = {
        name: getattr(settings, name) for name in ("port", "state_folder", "aws_endpoint", "cores")
    }
    assert settings == ServiceSettings(**own)
