"""The environment of a run's processes: what the training toolkit would set if the job had this run
only.
"""

import json
from pathlib import Path
from typing import Any, Dict, List

from traindyno.core.jobs.journal_format import (
    DOCUMENT_VARIABLE,
    FOLDER_VARIABLE,
    MARK_VARIABLE,
    MASTER_ADDRESS_VARIABLE,
    MASTER_PORT_VARIABLE,
    OPT_ML_VARIABLE,
    SHARED_MEMORY_VARIABLE,
    TORCHRUN,
    TORCHRUN_VARIABLE,
)
from traindyno.core.step_log.line import CHECKPOINTS_VARIABLE, DIRECTORY_VARIABLE
from traindyno.parent.document import JobOrder, RunOrder
from traindyno.parent.host import Host

RUN_ID_VARIABLE = "TRAINDYNO_RUN_ID"
OF_PARENT = (
    DOCUMENT_VARIABLE,
    FOLDER_VARIABLE,
    OPT_ML_VARIABLE,
    MASTER_ADDRESS_VARIABLE,
    MASTER_PORT_VARIABLE,
    TORCHRUN_VARIABLE,
    SHARED_MEMORY_VARIABLE,
)
CODE_CHANNEL = "code"
OF_RUN = ("SM_HP_", "SM_CHANNEL_")
# The toolkit sets them for a plain script, and not for torchrun.
OF_PLAIN_SCRIPTS = ("MASTER_ADDR", "MASTER_PORT", "NCCL_IB_DISABLE", "NCCL_DEBUG")
# The types for which the images' toolkit (sagemaker-training 5.1) sets up EFA before torchrun
EFA_TYPES = frozenset(
    "ml." + name
    for name in (
        "g4dn.8xlarge",
        "g4dn.12xlarge",
        "g5.48xlarge",
        "p3dn.24xlarge",
        "p4d.24xlarge",
        "p4de.24xlarge",
        "p5.48xlarge",
        "p5e.48xlarge",
        "trn1.32xlarge",
        "p6e-gb200.36xlarge",
    )
)
RDMA_TYPES = EFA_TYPES - {
    "ml.g4dn.8xlarge",
    "ml.g4dn.12xlarge",
    "ml.g5.48xlarge",
    "ml.p3dn.24xlarge",
}
# What one run compiles would make the next one's start shorter.
CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "CUDA_CACHE_PATH": "cuda",
    "NEURON_COMPILE_CACHE_URL": "neuron",
    # Who sets it has put models there.
    "HF_HOME": "huggingface",
}


def run_environment(run: RunOrder, job: JobOrder, host: Host, own_folder: Path) -> Dict[str, str]:
    """Environment variables of a run. The run's own variables win.

    ``own_folder`` has temporary files and caches of the run, and is removed after it.
    """
    environment = {
        name: value
        for name, value in host.environment.items()
        if name not in OF_PARENT and not name.startswith(OF_RUN)
    }
    environment.update(_toolkit_variables(run, job, host))
    if run.launcher == TORCHRUN:
        _as_for_torchrun(environment, job, host)
    interface = host.environment.get("SM_NETWORK_INTERFACE_NAME")
    if interface and len(host.hosts) > 1:
        # Gloo binds to what the host's name resolves to, which may be loopback.
        environment.setdefault("GLOO_SOCKET_IFNAME", interface)
    for name, folder in CACHES.items():
        environment.setdefault(name, str(own_folder / folder))
    environment["TMPDIR"] = str(own_folder)
    inherited = {name: host.environment[name] for name in job.inherited if name in host.environment}
    environment.update(host.localised({**inherited, **run.environment}))
    environment[RUN_ID_VARIABLE] = run.run_id
    environment[MARK_VARIABLE] = host.mark
    environment[DIRECTORY_VARIABLE] = str(host.step_log(run.run_id))
    if CHECKPOINTS_VARIABLE in run.environment:
        environment[CHECKPOINTS_VARIABLE] = str(host.state(run.run_id))
    return environment


def _toolkit_variables(run: RunOrder, job: JobOrder, host: Host) -> Dict[str, str]:
    hyperparameters = host.localised(run.hyperparameters)
    channels = {
        name: str(host.channel(channel)) for name, channel in channels_of(run, host).items()
    }
    given = json.loads(host.environment.get("SM_INPUT_DATA_CONFIG", "{}"))
    values: Dict[str, Any] = {
        "hps": hyperparameters,
        "user_args": arguments_of(run, host),
        "user_entry_point": job.program,
        "module_name": Path(job.program).stem,
        "channels": sorted(channels),
        "input_data_config": {
            name: given[channel]
            for name, channel in channels_of(run, host).items()
            if channel in given
        },
        "framework_params": {
            "sagemaker_torch_distributed_enabled": True,
            "sagemaker_instance_type": job.instance_type,
        }
        if run.launcher == TORCHRUN
        else {},
        "output_data_dir": str(host.output(run.run_id)),
        "model_dir": str(host.model(run.run_id)),
    }
    if "SM_TRAINING_ENV" in host.environment:
        values["training_env"] = _training_environment(values, channels, host)
    values.update(("hp_" + name, value) for name, value in hyperparameters.items())
    values.update(("channel_" + name, path) for name, path in channels.items())
    return {"SM_" + name.upper(): _variable(value) for name, value in values.items()}


def arguments_of(run: RunOrder, host: Host) -> List[str]:
    return list(host.localised(list(run.arguments)))


def channels_of(run: RunOrder, host: Host) -> Dict[str, str]:
    """A job without a network also has a channel with its code."""
    has_code = "SM_CHANNEL_{}".format(CODE_CHANNEL.upper()) in host.environment
    return {**({CODE_CHANNEL: CODE_CHANNEL} if has_code else {}), **run.channels}


def _training_environment(
    values: Dict[str, Any], channels: Dict[str, str], host: Host
) -> Dict[str, Any]:
    """The toolkit's own description of the job in one variable."""
    same = ("input_data_config", "user_entry_point", "module_name", "output_data_dir", "model_dir")
    return {
        **json.loads(host.environment["SM_TRAINING_ENV"]),
        **{name: values[name] for name in same},
        "channel_input_dirs": channels,
        "hyperparameters": values["hps"],
        "additional_framework_parameters": values["framework_params"],
    }


def _as_for_torchrun(environment: Dict[str, str], job: JobOrder, host: Host) -> None:
    for name in OF_PLAIN_SCRIPTS:
        environment.pop(name, None)
    if job.instance_type in EFA_TYPES:
        environment["FI_PROVIDER"] = "efa"
    if job.instance_type in RDMA_TYPES:
        environment.update(FI_EFA_USE_DEVICE_RDMA="1", RDMAV_FORK_SAFE="1")
    interface = host.environment.get("SM_NETWORK_INTERFACE_NAME")
    if interface:
        environment["NCCL_SOCKET_IFNAME"] = interface
    environment["NCCL_PROTO"] = "simple"


def _variable(value: Any) -> str:
    if value is None:
        return ""
    return (
        value
        if isinstance(value, str)
        else json.dumps(value, sort_keys=True, separators=(",", ":"))
    )
