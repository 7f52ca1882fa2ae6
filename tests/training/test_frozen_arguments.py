"""The frozen scripts accept the posts' hyperparameters as the SDK sends them and the training
toolkit passes them.
"""

import importlib
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from experiments.gptj_parallel import arguments as gptj_arguments
from localcloud.sagemaker_service.host.toolkit import PREFIX
from tests.frozen.trials import TRIALS, Trial
from tests.training.jobs import REPO_ROOT
from traindyno.api.suite_loading import load_suite
from traindyno.core.suite.arguments import command_arguments

pytestmark = pytest.mark.nightly

GOLDEN = REPO_ROOT / "tests" / "data" / "golden"
REQUESTS = {
    "v2.219.0/seed000_gpt2_native_pytorchddp": "gpt2_compiler",
    "seed000_gpt2_trcomp_pytorchxla": "gpt2_compiler",
    "seed001_gptj_smp_v1_tensor_parallel": "gptj_parallel",
    "seed001_gptj_smp_v1_pipeline_parallel": "gptj_parallel",
    "v2.219.0/seed002_albert_ddp_16n": "albert_scaling",
    "seed002_albert_smddp_2n": "albert_scaling",
    "seed003_bert_trn1_torch_distributed": "bert_trainium",
    "seed003_bert_p4d_torch_distributed": "bert_trainium",
}


def hyperparameters_of(request: str) -> dict[str, Any]:
    """What the training toolkit decodes and passes to the script."""
    sent = json.loads((GOLDEN / f"{request}.json").read_text())["request"]["HyperParameters"]
    return {name: json.loads(value) for name, value in sent.items() if not name.startswith(PREFIX)}


def arguments_module(pack: str) -> ModuleType:
    return importlib.import_module(f"experiments.{pack}.arguments")


def parsed_arguments(pack: str, sent: dict[str, Any]) -> dict[str, Any]:
    """What the pack's script made of each hyperparameter, by the names that were sent."""
    parsed = vars(arguments_module(pack).parse_arguments(command_arguments(sent)))
    renamed = {"per_device_train_batch_size": "train_batch_size"} if pack == "gptj_parallel" else {}
    return {name: parsed[renamed.get(name, name).replace("-", "_")] for name in sent}


@pytest.mark.parametrize(("request_name", "pack"), REQUESTS.items())
def test_script_takes_every_hyperparameter_of_the_post_as_it_was_sent(
    request_name: str, pack: str
) -> None:
    sent = hyperparameters_of(request_name)
    assert parsed_arguments(pack, sent) == sent


@pytest.mark.parametrize("pack", sorted(set(REQUESTS.values())))
def test_unknown_hyperparameter_is_refused(pack: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments_module(pack).parse_arguments(["--max_steps", "1", "--batchsize", "3"])
    assert "unrecognized arguments" in capsys.readouterr().err


def test_library_settings_of_tensor_parallelism_equal_the_request() -> None:
    sent = hyperparameters_of("seed001_gptj_smp_v1_tensor_parallel")
    settings = gptj_arguments.library_settings(
        gptj_arguments.parse_arguments(command_arguments(sent))
    )
    expected = dict(sent["mp_parameters"])
    expected["pipeline_parallel_degree"] = expected.pop("partitions")
    assert settings | expected == settings
    assert settings["tensor_parallel_degree"] == 8
    assert settings["activation_loading_horizon"] == 4


def test_library_settings_have_the_launchers_schedule_and_sharding_if_it_is_on() -> None:
    arguments = [
        "--mp_parameters",
        "ddp=True,partitions=4,microbatches=2,pipeline=simple",
        "--microbatches",
        "8",
    ]
    settings = gptj_arguments.library_settings(gptj_arguments.parse_arguments(arguments))
    assert (
        settings["pipeline_parallel_degree"],
        settings["microbatches"],
        settings["pipeline"],
    ) == (4, 2, "simple")
    assert "sharded_data_parallel_degree" not in settings
    sharded = gptj_arguments.parse_arguments(["--sharded_data_parallel_degree", "4"])
    assert gptj_arguments.library_settings(sharded)["sharded_data_parallel_degree"] == 4


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.folder)
def test_containers_install_the_versions_of_frozen_runs(trial: Trial) -> None:
    lists = REPO_ROOT / "experiments" / "requirements"
    installed = pins(lists / f"{trial.environment}.txt") | pins(
        lists / f"{trial.environment.removeprefix('frozen_')}.txt"
    )
    sent = pins(REPO_ROOT / "experiments" / trial.folder / "requirements.txt")
    assert sent
    assert sent.items() <= installed.items()
    assert trial.versions.items() <= installed.items()


def pins(path: Path) -> dict[str, str]:
    """Package → version; the hashes of its files stand on lines of their own."""
    return dict(re.findall(r"^([\w.\-]+)==([\w.+]+)", path.read_text(), re.MULTILINE))


@pytest.mark.parametrize("pack", sorted(set(REQUESTS.values())))
def test_script_takes_the_hyperparameters_of_every_cell_of_the_original_suite(pack: str) -> None:
    suite = load_suite(REPO_ROOT / "suites" / pack.replace("_", "-") / "original.yaml").suite
    cells = suite.cells
    assert cells
    for cell in cells:
        given = {**suite.workload.hyperparameters, **cell.hyperparameters}
        own = {name: value for name, value in given.items() if not name.startswith(PREFIX)}
        # A suite gives the launcher's settings as JSON, of which the script makes a mapping.
        launcher = {
            name: json.loads(str(value)) for name, value in own.items() if name == "mp_parameters"
        }
        assert parsed_arguments(pack, own) == own | launcher
