"""Settings that exist one by one but not together, each with its reason. A new rule is one function more."""

from collections.abc import Callable, Iterator

from traindyno.core.instances.instance_types import InstanceType, find_instance_type
from traindyno.core.suite.device_rules import (
    check_compiler,
    check_effect,
    check_instance,
    check_offloading,
    check_precision,
    check_smddp,
    check_xla_in_scripts,
    check_xla_in_training,
)
from traindyno.core.suite.impossible import Impossible
from traindyno.core.suite.parallel_rules import check_degrees, check_micro_batches, check_model
from traindyno.core.suite.suite import Cell, Settings, Task, Workload

Rule = Callable[[Settings, InstanceType], Iterator[Impossible]]

LAUNCH_RULES: tuple[Rule, ...] = (check_instance, check_smddp)
SCRIPT_RULES: tuple[Rule, ...] = (check_xla_in_scripts,)
TRAINING_RULES: tuple[Rule, ...] = (
    check_xla_in_training,
    check_compiler,
    check_precision,
    check_offloading,
    check_degrees,
    check_micro_batches,
    check_effect,
)


def find_impossible(cell: Cell, workload: Workload) -> list[Impossible]:
    """What can't work in this cell. A user's script answers for its own model; only its launcher is checked."""
    instance_type = find_instance_type(cell.settings.instance)
    if instance_type is None:
        return []
    rules = LAUNCH_RULES + (SCRIPT_RULES if workload.task is Task.SCRIPT else TRAINING_RULES)
    found = [impossible for rule in rules for impossible in rule(cell.settings, instance_type)]
    if workload.task is not Task.SCRIPT:
        found += check_model(cell.settings, workload)
    return found
