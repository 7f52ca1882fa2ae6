"""Which instance types may stand in for each other: only such that a cell's work is cut over as many like devices."""

from collections.abc import Iterator

from traindyno.core.errors import Problem
from traindyno.core.instances.instance_types import InstanceType, find_instance_type
from traindyno.core.suite.matrix_check import check_value
from traindyno.core.suite.suite import Purchase, Suite

MOST_FALLBACKS = 4  # CreateTrainingJob takes five preferences


def check_preferences(suite: Suite) -> Iterator[Problem]:
    path = "instance_preferences"
    if suite.instance_preferences and suite.purchase is Purchase.SPOT:
        yield Problem(path=path, message="expected none with purchase spot, for which SageMaker takes no preferences")
    if suite.instance_preferences and suite.warm_pool_seconds:
        yield Problem(path=path, message="expected none with warm_pool_seconds: instances are kept for one type only")
    for name, fallbacks in suite.instance_preferences.items():
        problems = [*_check_names(f"{path}.{name}", name, fallbacks)]
        yield from problems or _check_alike(f"{path}.{name}", name, fallbacks)


def _check_names(path: str, name: str, fallbacks: tuple[str, ...]) -> Iterator[Problem]:
    yield from check_value(path, "instance", name)
    for index, fallback in enumerate(fallbacks):
        yield from check_value(f"{path}[{index}]", "instance", fallback)
    if not 1 <= len(fallbacks) <= MOST_FALLBACKS:
        yield Problem(path=path, message=f"expected 1 to {MOST_FALLBACKS} further types, got {len(fallbacks)}")
    if len({name, *fallbacks}) <= len(fallbacks):
        yield Problem(path=path, message=f"expected each type once, got {', '.join((name, *fallbacks))}")


def _check_alike(path: str, name: str, fallbacks: tuple[str, ...]) -> Iterator[Problem]:
    own = find_instance_type(name)
    for index, fallback in enumerate(fallbacks):
        other = find_instance_type(fallback)
        if own is None or other is None:
            continue
        if own.is_local or other.is_local:
            yield Problem(path=f"{path}[{index}]", message="expected types of SageMaker: this machine is never short")
        elif _devices(own) != _devices(other):
            yield Problem(
                path=f"{path}[{index}]",
                message=f"expected a type with {_text(own)} as {name} has, got {fallback} with {_text(other)}: the"
                " work would be cut otherwise, so give it cells of its own in the matrix",
            )


def _devices(instance_type: InstanceType) -> tuple[str, int | None]:
    return instance_type.accelerator_kind.value, instance_type.devices_per_instance


def _text(instance_type: InstanceType) -> str:
    return f"{instance_type.devices_per_instance} devices of kind {instance_type.accelerator_kind.value}"
