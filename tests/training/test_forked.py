import time

import torch
from torch import distributed

from tests.training.forked import run_group
from training.process.process_group import read_topology, start_process_group


def _late_reader() -> str:
    start_process_group("gloo", read_topology(), torch.device("cpu"))
    store = distributed.distributed_c10d._get_default_store()
    if distributed.get_rank() == 0:
        store.set("word", "kept")
        return "kept"
    time.sleep(0.5)
    return store.get("word").decode()


def test_process_0_keeps_the_groups_store_until_every_process_answered() -> None:
    assert run_group(_late_reader, processes=2) == ["kept"] * 2
