"""What the process that forks is told about a run: the variables of each rank, as torchrun would set them."""

import os
from typing import Dict, List

from traindyno.core.jobs.journal_format import TORCHRUN
from traindyno.parent.launch import Setting, Start


def order_of(start: Start) -> Dict[str, object]:
    """``ranks``: the variables of each; none for a run of one process that has no launcher."""
    setting = start.setting
    return {
        "program": setting.program,
        "arguments": list(start.arguments),
        "environment": process_environment(setting),
        "output": os.readlink("/proc/self/fd/{}".format(setting.output)),
        "ranks": ranks_of(start),
        "serves": start.meeting.rank == 0,
        "address": start.meeting.address,
        "port": start.meeting.port,
    }


def process_environment(setting: Setting) -> Dict[str, str]:
    """torchrun gives each of several processes one thread, unless the environment says another number."""
    has_several = setting.run.launcher == TORCHRUN and setting.run.processes_per_host > 1
    return {**({"OMP_NUM_THREADS": "1"} if has_several else {}), **setting.environment}


def ranks_of(start: Start) -> List[Dict[str, str]]:
    """What torchrun sets for each process of this host."""
    run, environment, meeting = start.setting.run, start.setting.environment, start.meeting
    if run.launcher != TORCHRUN:
        return []
    local_size = run.processes_per_host
    size = meeting.hosts * local_size
    of_all = {
        **{name: str(size) for name in ("WORLD_SIZE", "ROLE_WORLD_SIZE")},
        "LOCAL_WORLD_SIZE": str(local_size),
        "GROUP_RANK": str(meeting.rank),
        "GROUP_WORLD_SIZE": str(meeting.hosts),
        "ROLE_NAME": "default",
        "MASTER_ADDR": meeting.address,
        "MASTER_PORT": str(meeting.port),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RUN_ID": meeting.name,
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": environment.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
    }
    ranks = []
    for local_rank in range(local_size):
        rank = str(meeting.rank * local_size + local_rank)
        ranks.append({**of_all, "LOCAL_RANK": str(local_rank), "RANK": rank, "ROLE_RANK": rank})
    return ranks
