"""The addresses of a lab's images, which the stacks write when the images are built."""

from typing import Any, Protocol

from traindyno.core.lab_names import image_parameter

IMAGES = ("cpu", "efa", "neuron")


class ParametersClient(Protocol):
    """The call of boto3's ``ssm`` client that is used here."""

    def get_parameters(self, **request: Any) -> Any: ...


def read_image_addresses(ssm: ParametersClient, lab: str) -> dict[str, str]:
    """Image → address; an image that is not built is missing."""
    names = {image_parameter(lab, image): image for image in IMAGES}
    found = ssm.get_parameters(Names=[*names]).get("Parameters", [])
    values = {each.get("Name"): each.get("Value") for each in found}
    return {image: values[name] for name, image in names.items() if values.get(name)}
