"""The names of one lab's stack and outputs, and what else the CDK app shares with the lab's own
code.
"""

import re
from enum import StrEnum

DEFAULT_LAB = "traindyno"
LAB_TAG = "traindyno:lab"
EVENT_SOURCE = "traindyno"
# The custom resource that has the lab's settings, of which GuardLab lets none be forgotten.
SETTINGS_RESOURCE = "Custom::TraindynoSettings"
OPEN_ATTEMPTS_INDEX = "open-attempts"
METRIC_NAMESPACE = "Traindyno"
FAILED_SUITES_METRIC = "FailedSuites"
# A job's name holds the lab's beside suite, execution, cell, trial and attempt, and SageMaker
# allows 63 characters.
LAB_NAME = re.compile(r"(?=.{1,18}$)[a-z](-?[a-z0-9])*")
LAB_NAME_RULE = "1 to 18 lower-case letters, digits and single hyphens, beginning with a letter"
# How the regions of AWS's other partitions begin: the Price List and the public images that a lab
# uses are not there.
OTHER_PARTITIONS = ("cn-", "us-gov-", "us-iso", "eu-iso", "eusc-")
NO_OTHER_PARTITION = (
    "a region of AWS's standard partition, such as us-east-1: labs work in no other"
)
# Step Functions ends an execution after it.
EXECUTION_HOURS = 28 * 24


class LabOutput(StrEnum):
    """Outputs of every lab's stack."""

    STATE_MACHINE_ARN = "StateMachineArn"
    SERVING_ROLE_ARN = "ServingRoleArn"
    LAB_JOBS = "LabJobs"
    BUCKET = "ResultsBucket"
    TABLE = "Table"
    TRAINING_ROLE_ARN = "TrainingRoleArn"
    TOPIC_ARN = "TopicArn"
    SOURCE_S3_URI = "SourceS3Uri"


def lab_stack_name(lab: str) -> str:
    return f"{lab}-lab"


def images_stack_name(lab: str) -> str:
    """The stack of the images for accelerators."""
    return f"{lab_stack_name(lab)}-images"


def image_parameter(lab: str, image: str) -> str:
    """The SSM parameter with the address of an image, which exists once the image is built."""
    return f"/traindyno/{lab}/images/{image}"


def state_machine_name(lab: str) -> str:
    return f"{lab}-suites"


def jobs_prefix(lab: str) -> str:
    """The prefix of the names of a lab's training jobs.

    A lab's name has single hyphens only, so that lab ``a`` shares no prefix, and no permission,
    with lab ``a-b``.
    """
    return f"{lab}--"
