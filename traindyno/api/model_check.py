"""Check a suite's model before it starts, once, where transformers is installed beside the command
line.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from traindyno.api.local_paths import find_local
from traindyno.api.training_code import (
    cache_folder,
    has_training_code,
    keep,
    missing_libraries,
    read_kept,
    training_code_digest,
)
from traindyno.core.documents.plain import id_of, plain_values
from traindyno.core.documents.problems import shown
from traindyno.core.errors import Problem, TraindynoError
from traindyno.core.run.data_formats import is_hub_name
from traindyno.core.run.processes import (
    TensorDivision,
    adapters_of,
    stage_counts,
    tensor_divisions,
)
from traindyno.core.run.saved_model import (
    ADAPTER_FILE,
    BASE_CHANNEL,
    BASE_FIELD,
    MODEL_FILE,
    model_problem,
    other_model_problem,
)
from traindyno.core.run.settings import Adapter
from traindyno.core.run.workload import Workload, workload_document
from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite import Suite

# The fields of a workload that the check reads.
DECIDING = ("task", "model", "tokenizer", "sequence_length", "label_count", "trust_remote_code")
SHOWN_LABELS = 6


def find_model_problems(suite: Suite, beside: Path) -> list[Problem]:
    """A model on the Hub is checked if its configuration is cached; the check downloads nothing.

    Without transformers or the container's code, only the jobs check the model. A model without
    problems is not checked again: a plan of suites/quickstart.yaml then takes 1.2 s of a core, not
    4.3 s, because it imports no transformers.
    """
    if suite.workload.task is Task.SCRIPT:
        return [*_find_channel_problems(suite.workload, beside)]
    return _problems_of_task(suite, beside)


def _problems_of_task(suite: Suite, beside: Path) -> list[Problem]:
    model = suite.workload.model
    folder = find_local(model.path, beside) if model and model.path else None
    if model is not None and model.path is not None and folder is not None:
        goes_on = all(cell.settings.adapter for cell in suite.cells)
        problem = _folder_problem(model.path, folder, suite.workload.task, goes_on=goes_on)
        if problem is not None:
            return [Problem(path="workload.model", message=problem)]
        folder = base_of(folder, beside, suite.workload.channels)
        if folder is None:
            return []  # its jobs find the adapter's base
    if model is None or missing_libraries() or not has_training_code():
        return []
    path = find_configuration(model.path, model.revision, folder) if model.path else None
    if model.path and path is None:
        return []
    settings = [cell.settings for cell in suite.cells]
    divisions = tensor_divisions(settings)
    stages = stage_counts(settings)
    adapters = adapters_of(settings)
    asked = suite.workload.tokenizer
    named = folder if asked is None else find_local(asked.path, beside) if asked.path else None
    tokenizer = (
        named
        if named is not None and named.is_dir() and not suite.workload.trust_remote_code
        else None
    )
    without_problems = cache_folder("models") / _key(
        suite.workload, divisions, stages, adapters, path, folder, tokenizer
    )
    if read_kept(without_problems) is not None:
        return []
    from training.models.model_check import check_model  # noqa: PLC0415  (imports transformers, which takes seconds)

    weights = None if folder is None else path
    told = check_model(
        suite.workload,
        divisions,
        stages,
        adapters,
        model_path=path,
        weights_path=weights,
        tokenizer_path=None if tokenizer is None else str(tokenizer),
    )
    problems = [_placed(problem, suite) for problem in told]
    if not problems:
        keep(without_problems, "")
    return problems


def _folder_problem(path: str, folder: Path, task: Task, *, goes_on: bool) -> str | None:
    """Why the folder has no model that can be trained; an adapter has one if training goes on from
    it.
    """
    files = [
        str(path.relative_to(folder))
        for path in (*folder.glob("*"), *folder.glob(f"*/{MODEL_FILE}"))
    ]
    adapter = read_configuration(folder, ADAPTER_FILE)
    if adapter and goes_on:
        return None
    return model_problem(path, files if folder.is_dir() else None, adapter) or other_model_problem(
        path, read_configuration(folder), task
    )


def _find_channel_problems(workload: Workload, beside: Path) -> Iterator[Problem]:
    """A script gets the files of its dataset, model and tokenizer; it loads from the Hub itself."""
    for name, channel in (("dataset", "train"), ("model", "model"), ("tokenizer", "model")):
        path = getattr(getattr(workload, name), "path", None)
        if path is not None and is_hub_name(path) and find_local(path, beside) is None:
            message = (
                f"got {shown(path)}, expected a path on this machine or an S3 URI, which the "
                f"script gets as the channel {channel}; a name on the Hub is an argument of the "
                "script, in hyperparameters"
            )
            yield Problem(path=f"workload.{name}", message=message)


def _placed(problem: Problem, suite: Suite) -> Problem:
    """A problem of a setting, at the place where the suite gives it."""
    name = problem.path.removeprefix("matrix.")
    included = (
        f"include[{index}].{name}" for index, cell in enumerate(suite.include) if name in cell
    )
    if name == problem.path or name in suite.matrix:
        return problem
    return replace(
        problem, path=f"training.{name}" if name in suite.training else next(included, problem.path)
    )


def model_lines(suite: Suite, beside: Path) -> list[str]:
    """What ``plan`` and ``run`` say of a local model: whose code runs, and what becomes of a saved
    head.

    Read from its configuration's text, without transformers.
    """
    workload = suite.workload
    model = suite.workload.model
    if workload.task is Task.SCRIPT or model is None or model.path is None:
        return []
    lines = []
    if workload.trust_remote_code:
        lines.append(
            f"model: jobs run Python code that is stored with {model.path} "
            "(workload.trust_remote_code)"
        )
    folder = find_local(model.path, beside)
    if folder is None or workload.task is not Task.SEQUENCE_CLASSIFICATION:
        return lines
    config = read_configuration(folder)
    names = config.get("id2label")
    has_head = any(
        str(name).endswith("ForSequenceClassification")
        for name in config.get("architectures") or ()
    )
    if not isinstance(names, dict) or not names or not has_head:
        return lines
    shown = ", ".join(f"{number} {name}" for number, name in list(names.items())[:SHOWN_LABELS])
    asked = workload.label_count
    if len(names) != asked:
        lines.append(
            f"model: a new head for label_count {asked} replaces the saved one for {len(names)} "
            f"({shown})"
        )
    elif not all(str(name).startswith("LABEL_") for name in names.values()):
        lines.append(
            f"model: its head's labels ({shown}) keep their numbers where the data has these names"
        )
    return lines


def base_of(
    folder: Path, beside: Path, channels: Mapping[str, str] = MappingProxyType({})
) -> Path | None:
    """The folder with the configuration of a model, or of the base of an adapter, if this machine
    has it.
    """
    adapter = read_configuration(folder, ADAPTER_FILE)
    if not adapter:
        return folder
    named = channels.get(BASE_CHANNEL) or str(adapter.get(BASE_FIELD) or "")
    configuration = find_configuration(named, adapter.get("revision"), find_local(named, beside))
    return None if configuration is None else Path(configuration)


def read_configuration(folder: Path, name: str = MODEL_FILE) -> Mapping[str, Any]:
    """The content of a model folder's config.json, read without transformers; empty without one
    that can be read.
    """
    try:
        configuration = json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return configuration if isinstance(configuration, dict) else {}


def _key(
    workload: Workload,
    divisions: Sequence[TensorDivision],
    stages: Sequence[int],
    adapters: Sequence[Adapter],
    path: str | None,
    *folders: Path | None,
) -> str:
    """64 hexadecimal digits of all inputs of the check, the checking code included."""
    document = workload_document(workload)
    file = Path(path or "") / MODEL_FILE
    digest = hashlib.sha256(file.read_bytes()).hexdigest() if path and file.is_file() else None
    # weights are too large to be read each time
    inside = [file for folder in folders if folder for file in folder.iterdir()]
    files = sorted((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in inside)
    content = {
        "workload": {name: document.get(name) for name in DECIDING},
        "divisions": plain_values(divisions),
        "stage_counts": stages,
        "adapters": plain_values(adapters),
        "configuration": digest,
        "files": files,
        "code": training_code_digest(),
    }
    return id_of(content)


class ConfigurationUnreachable(TraindynoError):
    """The configuration of a model is not on this machine, and no Hub gave it."""


def fetch_configuration(path: str, revision: str | None) -> str:
    """The folder of the configuration, in huggingface_hub's own cache; no weights are fetched.

    Raises ConfigurationUnreachable.
    """
    if is_s3_uri(path):
        raise ConfigurationUnreachable(
            f"the configuration of {path} is in S3: give the config.json itself"
        )
    from huggingface_hub import hf_hub_download  # noqa: PLC0415  (only a Hub id needs it)

    try:
        return str(Path(hf_hub_download(path, MODEL_FILE, revision=revision)).parent)
    except (OSError, ValueError) as error:  # of the network or the Hub, and a name that is no id
        why = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise ConfigurationUnreachable(
            f"the configuration of {path} is neither on this machine nor did a Hub give it "
            f"({why}): give the model's folder or its config.json; a gated model needs HF_TOKEN"
        ) from error


def find_configuration(path: str, revision: str | None, folder: Path | None) -> str | None:
    """The folder that holds the model's configuration on this machine."""
    if folder is not None:
        return str(folder)
    try:
        from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415  (only a Hub id needs it)
        from huggingface_hub.errors import HFValidationError  # noqa: PLC0415
    except ImportError:  # transformers brings it
        return None
    try:
        cached = try_to_load_from_cache(path, MODEL_FILE, revision=revision)
    except HFValidationError:  # an S3 URI
        return None
    return str(Path(cached).parent) if isinstance(cached, str) else None
