"""The addresses of a lab's images, which the stacks write when the images are built."""

from collections.abc import Mapping
from typing import Any, Protocol

from traindyno.core.lab_names import image_parameter

# Kind of image, as cells need it → folder of images/
IMAGES = {"none": "cpu", "gpu": "efa", "neuron": "neuron"}


class ParametersClient(Protocol):
    """The call of boto3's ``ssm`` client that is used here."""

    def get_parameters(self, **request: Any) -> Any: ...


def read_image_addresses(
    ssm: ParametersClient, lab: str, tags: Mapping[str, str]
) -> dict[str, str]:
    """Kind of image → address; an image that is not built is missing.

    So is an image for accelerators that was built of other files than those of the lab's ``tags``
    (image → tag): the stack of these images was not deployed with the lab.
    """
    names = {kind: image_parameter(lab, image) for kind, image in IMAGES.items()}
    parameters = ssm.get_parameters(Names=[*names.values()]).get("Parameters", [])
    values = {parameter.get("Name"): parameter.get("Value") for parameter in parameters}
    built = {kind: values[name] for kind, name in names.items() if values.get(name)}
    return {
        kind: address
        for kind, address in built.items()
        if kind == "none" or address.endswith(f":{tags[IMAGES[kind]]}")
    }
