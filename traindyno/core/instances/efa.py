"""The variables that set up EFA where the images' toolkit does not."""

from traindyno.core.instances.instance_types import InstanceType

# Families with EFA types that the toolkit (sagemaker-training 5.1.1) does not set up by itself, or without RDMA (p5).
EFA_FAMILIES_WITHOUT_SETUP = ("p5", "p5e", "p5en", "p6-b200", "p6-b300", "g6e", "g7e", "trn1n", "trn2")


def efa_environment(instance_type: InstanceType, instance_count: int) -> dict[str, str]:
    is_set_up = instance_type.family not in EFA_FAMILIES_WITHOUT_SETUP
    if instance_count < 2 or is_set_up or not instance_type.has_efa:
        return {}
    rdma = {"FI_EFA_USE_DEVICE_RDMA": "1"} if instance_type.has_rdma else {}
    return {"FI_PROVIDER": "efa", **rdma}
