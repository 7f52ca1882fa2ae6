"""The requests for an endpoint against those of the SageMaker SDK."""

from unittest.mock import MagicMock

import boto3
import pytest

from tests.unit.serving_in_memory import DEPLOYMENT, NAME, ROLE, SETTINGS
from traindyno.bundle import REPO_ROOT
from traindyno.sagemaker.serving import build_requests


def test_the_sdk_sends_the_same_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for tags, time limits, and the archive: the SDK packs the handler into another one."""
    import sagemaker.model
    from sagemaker.pytorch import PyTorchModel
    from sagemaker.session import Session

    client = MagicMock()
    boto_session = boto3.Session("key", "secret", region_name="us-east-1")
    session = Session(boto_session=boto_session, sagemaker_client=client, default_bucket="results")
    session.s3_client = session.s3_resource = MagicMock()
    monkeypatch.setattr(sagemaker.model.utils, "repack_model", lambda **_: None)
    model = PyTorchModel(
        name=NAME,
        model_data=f"s3://results/models/{NAME}/model.tar.gz",
        role=ROLE,
        entry_point="inference.py",
        source_dir=str(REPO_ROOT / "training"),
        framework_version="2.6.0",
        py_version="py312",
        sagemaker_session=session,
    )
    model.deploy(1, "ml.c5.xlarge", endpoint_name=NAME, wait=False)
    sent = {name: request for name, _, request in client.method_calls if name.startswith("create_")}
    ours = dict(zip(sent, build_requests(DEPLOYMENT, SETTINGS), strict=True))
    tags = {tag["Key"]: tag["Value"] for tag in ours["create_endpoint"]["Tags"]}
    for requests in (ours, sent):
        del requests["create_model"]["PrimaryContainer"]["ModelDataUrl"]
        for request in requests.values():
            request.pop("Tags", None)
    (variant,) = ours["create_endpoint_config"]["ProductionVariants"]
    for name in [name for name in variant if name.endswith("TimeoutInSeconds")]:
        del variant[name]
    assert ours == sent
    assert (tags["traindyno:lab"], tags["traindyno:owner"]) == ("traindyno", "ada")
    assert tags["traindyno:ends_at"] == "2026-09-21T15:13:20Z"
