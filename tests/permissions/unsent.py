"""Calls that a function may send and that the end-to-end tests need not make, with the reason."""

from collections.abc import Mapping

from tests.permissions.calls import Call
from traindyno.aws.image_addresses import IMAGES

_BY_REASON = {
    "A lab in the local cloud builds no image.": (
        *(
            f"build_image codebuild:StartBuild projectName=$LAB-lab-image-{name}"
            for name in IMAGES.values()
        ),
        *(
            f"plan_suite ssm:GetParameters Name=/traindyno/$LAB/images/{name}"
            for name in IMAGES.values()
        ),
    ),
    "Only where a quota's code is not known.": (
        "check_quotas service-quotas:ListAWSDefaultServiceQuotas",
        "check_quotas service-quotas:ListServiceQuotas",
    ),
    "Only while jobs run, and then also jobs that are not the lab's.": (
        "check_quotas sagemaker:DescribeTrainingJob TrainingJobName=*",
    ),
    "Only where a setting of the deployed lab is missing in its file.": (
        "guard_lab cloudformation:DescribeStacks",
    ),
    "Only where `traindyno deploy` is still copying a model.": (
        "guard_lab s3:GetObject Bucket=$BUCKET Object=$BUCKET/models/*",
    ),
    "Only where the event of such a job is lost: then the sweep does what FinishRun does.": (
        "reconcile_runs s3:GetObject Bucket=$BUCKET Object=$BUCKET/prepared/*",
        "reconcile_runs s3:GetObject Bucket=$BUCKET Object=$BUCKET/runs/*",
        "reconcile_runs s3:PutObject Object=$BUCKET/tokens/*",
        "reconcile_runs stepfunctions:SendTaskFailure Machine=$LAB-suites",
        "reconcile_runs stepfunctions:SendTaskFailure Machine=$LAB-suites/*",
    ),
    "The local cloud's suites have their data in the lab's bucket.": (
        "plan_suite s3:ListObjectsV2 Bucket=$DATA_BUCKET",
    ),
}
UNSENT: Mapping[Call, str] = {
    Call.parse(line): reason for reason, lines in _BY_REASON.items() for line in lines
}
