"""Which instance types have storage of their own, encrypted by its hardware: SageMaker takes no volume key for them."""

import re

# The families with NVMe disks: a "d" after the generation, and accelerated types by name.
WITH_STORAGE = re.compile(r"ml\.(\w*\d[a-z]*d[a-z]*|g4dn|g5|g6|g6e|gr6|g7|g7e|p4de|p5|p5en?|p6(e)?-\w+|trn1n?|trn2)\.")


def has_instance_storage(instance_type: str) -> bool:
    return WITH_STORAGE.match(instance_type) is not None
