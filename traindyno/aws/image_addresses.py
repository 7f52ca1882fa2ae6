"""The addresses of a lab's images, which the stacks write when the images are built."""

from typing import Any, Protocol

from traindyno.core.lab_names import image_parameter

# Kind of image, as cells need it → folder of images/
IMAGES = {"none": "cpu", "gpu": "efa", "neuron": "neuron"}


class ParametersClient(Protocol):
    """The call of boto3's ``ssm`` client that is used here."""

    def get_parameters(self, **request: Any) -> Any: ...


def read_image_addresses(ssm: ParametersClient, lab: str) -> dict[str, str]:
    """Kind of image → address; an image that is not built is missing."""
    names = {kind: image_parameter(lab, image) for kind, image in IMAGES.items()}
    found = ssm.get_parameters(Names=[*names.values()]).get("Parameters", [])
    values = {each.get("Name"): each.get("Value") for each in found}
    return {kind: values[name] for kind, name in names.items() if values.get(name)}
