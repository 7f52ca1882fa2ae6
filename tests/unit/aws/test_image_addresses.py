"""The lab's images are those that its code was deployed with."""

from typing import Any

from traindyno.aws.image_addresses import read_image_addresses

TAGS = {"cpu": "c2", "efa": "e2", "neuron": "n2"}


class Parameters:
    def __init__(self, **addresses: str) -> None:
        self.values = {
            f"/traindyno/mine/images/{name}": address for name, address in addresses.items()
        }

    def get_parameters(self, **request: Any) -> Any:
        names = [name for name in request["Names"] if name in self.values]
        return {"Parameters": [{"Name": name, "Value": self.values[name]} for name in names]}


def test_an_image_of_other_files_is_missing_like_an_unbuilt_one() -> None:
    both = Parameters(cpu="lab/cpu:c2", efa="lab/efa:e2")
    assert read_image_addresses(both, "mine", TAGS) == {"none": "lab/cpu:c2", "gpu": "lab/efa:e2"}
    stale = Parameters(cpu="lab/cpu:c2", efa="lab/efa:e1", neuron="lab/neuron:n2")
    assert [*read_image_addresses(stale, "mine", TAGS)] == ["none", "neuron"]


def test_the_cpu_image_of_the_labs_own_stack_counts_while_the_stack_is_updated() -> None:
    assert [*read_image_addresses(Parameters(cpu="lab/cpu:c1"), "mine", TAGS)] == ["none"]
