"""The settings that turn boto3, the AWS command line and the CDK towards a local cloud."""

from localcloud.daemons import LOOPBACK
from localcloud.home import Ports

ACCOUNT = "000000000000"
REGION = "us-east-1"


def aws_environment(ports: Ports) -> dict[str, str]:
    sagemaker = f"http://{LOOPBACK}:{ports.sagemaker}"
    return {
        "AWS_ENDPOINT_URL": f"http://{LOOPBACK}:{ports.aws}",
        "AWS_ENDPOINT_URL_SAGEMAKER": sagemaker,
        "AWS_ENDPOINT_URL_SERVICE_QUOTAS": sagemaker,
        "AWS_ENDPOINT_URL_PRICING": sagemaker,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_SESSION_TOKEN": "",
        "AWS_PROFILE": "",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": f"{LOOPBACK},localhost",
    }
