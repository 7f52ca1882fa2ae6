"""One lab: its stack, with its dead-letter queue and the guard of its deletion, and the stack of
its images.
"""

from collections.abc import Mapping
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3_assets as s3_assets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.functions import EventRules, Functions, Launch
from infra.identity import Identity
from infra.images import Image, ImageBuild, ImageStore, LabImages, image_tag
from infra.lab_function import FunctionSetup, LabFunctions
from infra.lab_grants import LabGrants
from infra.lab_settings import LabSettings, Target, read_lab_settings
from infra.lambda_source import pack_lambda_source
from infra.monitoring import Monitoring
from infra.notifications import Notifications
from infra.orchestration import Orchestration
from infra.permissions import Grant, acknowledge, check_rules
from infra.sagemaker_role import training_grants
from infra.serving import ServedModelRole, ending_endpoints
from infra.storage import Storage
from traindyno.bundle import pack, training_files
from traindyno.core.lab_names import (
    LAB_TAG,
    SETTINGS_RESOURCE,
    LabOutput,
    lab_stack_name,
)

GUARD_SECONDS = 60
ANSWER_WITHIN = cdk.Duration.minutes(2)
KEPT = cdk.Duration.days(14)
# CreateTrainingJob is limited to one request per second for the account and region, which can't be
# raised.
SECONDS_BETWEEN_STARTS = 1.05


class Guard(LabFunctions):
    """GuardLab refuses to delete a lab in use, and to update it without a setting that it has.

    CloudFormation deletes dependent resources first, and updates them last: ``resource`` depends on
    the whole lab, and what uses the settings depends on ``settings``. So a refusal leaves the lab
    unchanged.
    """

    def __init__(
        self, scope: Construct, construct_id: str, setup: FunctionSetup, *, named: Mapping[str, str]
    ) -> None:
        super().__init__(scope, construct_id, setup)
        grants = LabGrants(self, setup)
        guard = self._function(
            "GuardLab",
            [
                grants.executions_listed(),
                grants.open_attempts(),
                grants.listing(),
                *ending_endpoints(grants),
                Grant(actions=["cloudformation:DescribeStacks"], resources=[cdk.Aws.STACK_ID]),
            ],
            timeout_seconds=GUARD_SECONDS,
            environment={"STATE_MACHINE_ARN": grants.state_machine_arn},
        )
        self.resource, self.settings = (
            cdk.CustomResource(
                self,
                name,
                resource_type=kind,
                service_token=guard.function.function_arn,
                service_timeout=ANSWER_WITHIN,
                properties=properties,
            )
            for name, kind, properties in (
                ("Resource", "Custom::TraindynoGuard", None),
                ("Settings", SETTINGS_RESOURCE, {"Settings": named}),
            )
        )


class DeadLetters(Construct):
    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self.queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=KEPT,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        acknowledge(self.queue, {"AwsSolutions-SQS3": "This is the dead-letter queue itself."})


class LabStack(cdk.Stack):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stack_name: str,
        settings: LabSettings,
        lambda_source: Path,
        training_source: Path,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=stack_name,
            description="A Traindyno lab",
            termination_protection=settings.file.termination_protection,
        )
        file = settings.file
        jobs = settings.file.jobs
        is_local = settings.target is Target.LOCAL
        storage = Storage(
            self,
            "Storage",
            lab=settings.lab,
            empties_bucket=not is_local,
            key_arn=jobs.output_key_arn,
            keeps_results=file.keep_results,
        )
        notifications = Notifications(self, "Notifications", email=file.notify_email)
        parts: list[Construct] = [storage, notifications]
        source = s3_assets.Asset(self, "TrainingSource", path=str(training_source))
        code = lambda_.Code.from_asset(str(lambda_source))
        identity = Identity(
            self,
            "Identity",
            results=storage.results,
            data_buckets=file.data_buckets,
            further=training_grants(jobs, file.data_keys),
        )
        images = None
        dead_letters = None
        self.image_store: ImageStore | None = None
        if not is_local:
            dead_letters = DeadLetters(self, "DeadLetters")
            self.image_store = ImageStore(
                self,
                "Images",
                lab=settings.lab,
                code=code,
                wanted=file.images,
                dead_letters=dead_letters.queue,
            )
            images = ImageBuild(self, "CpuImage", store=self.image_store, image=Image.CPU)
            # The rule of BuildImage is in effect before the first build can end.
            images.node.add_dependency(self.image_store)
            parts += [self.image_store, images, dead_letters]
        setup = FunctionSetup(
            lab=settings.lab,
            code=code,
            storage=storage,
            dead_letters=dead_letters.queue if dead_letters else None,
        )
        functions = Functions(
            self,
            "Functions",
            setup,
            notifications=notifications,
            launch=Launch(
                training_role=identity.training_role,
                source_s3_uri=source.s3_object_url,
                source_arn=source.bucket.arn_for_objects(source.s3_object_key),
                image_tags={} if is_local else {image.value: image_tag(image) for image in Image},
                data_buckets=file.data_buckets,
                jobs=jobs,
                seconds_between_starts=0.0 if is_local else SECONDS_BETWEEN_STARTS,
            ),
        )
        orchestration = Orchestration(
            self,
            "Orchestration",
            lab=settings.lab,
            functions=functions,
            storage=storage,
            concurrency=settings.concurrency,
        )
        rules = EventRules(
            self,
            "EventRules",
            lab=settings.lab,
            functions=functions,
            state_machine=orchestration.state_machine,
            sweep_interval=cdk.Duration.minutes(1 if is_local else 5),
            dead_letters=setup.dead_letters,
        )
        monitoring = Monitoring(
            self,
            "Monitoring",
            lab=settings.lab,
            functions=functions,
            topic=notifications.topic,
            dead_letters=setup.dead_letters,
            images=images,
        )
        serving = ServedModelRole(self, "Serving", setup, jobs=jobs)
        guard = Guard(self, "Guard", setup, named=settings.named)
        guard.resource.node.add_dependency(
            *parts, identity, functions, orchestration, rules, monitoring, serving, guard.settings
        )
        for part in (identity, functions, serving):
            part.node.add_dependency(guard.settings)
        values = {
            LabOutput.STATE_MACHINE_ARN: orchestration.state_machine.state_machine_arn,
            LabOutput.BUCKET: storage.results.bucket_name,
            LabOutput.TABLE: storage.table.table_name,
            LabOutput.TRAINING_ROLE_ARN: identity.training_role.role_arn,
            LabOutput.TOPIC_ARN: notifications.topic.topic_arn,
            LabOutput.SOURCE_S3_URI: source.s3_object_url,
        }
        for output, value in values.items():
            cdk.CfnOutput(self, output.value, value=value)


def add_lab(
    app: cdk.App, *, staging: Path, labs: Path = Path("labs"), region: str | None = None
) -> None:
    """``labs``: the folder of the labs' files.

    ``region``: where the lab is about to be deployed, if that is known.

    ``staging`` is an empty folder that must exist until this call returns; assets are copied from
    it.
    """
    settings = read_lab_settings(app.node.get_all_context(), labs=labs, region=region)
    stack = LabStack(
        app,
        "Lab",
        stack_name=lab_stack_name(settings.lab),
        settings=settings,
        # MiniStack's environment has boto3; otherwise each worker would import its own copy without
        # bytecode.
        lambda_source=_write(
            staging / "lambda.zip",
            pack_lambda_source(with_boto3=settings.target is not Target.LOCAL),
        ),
        training_source=_write(staging / "sourcedir.tar.gz", pack(training_files())),
    )
    if stack.image_store:
        LabImages(app, "LabImages", store=stack.image_store).add_stack_dependency(stack)
    if settings.file.permissions_boundary:
        boundary = iam.ManagedPolicy.from_managed_policy_arn(
            stack, "Boundary", settings.file.permissions_boundary
        )
        iam.PermissionsBoundary.of(app).apply(boundary)
    cdk.Tags.of(app).add(LAB_TAG, settings.lab)
    if settings.checks_rules:
        check_rules(app)


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
