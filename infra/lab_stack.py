"""One lab: its stack, with its dead-letter queue and the guard of its deletion, and the stack of its images."""

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3_assets as s3_assets
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct, IConstruct

from infra.budget import Budget, Notifications
from infra.event_rules import EventRules
from infra.functions import Functions, Launch
from infra.identity import Identity
from infra.images import Image, ImageBuild, ImageStore, LabImages
from infra.lab_function import FunctionSetup, LabFunctions
from infra.lab_grants import LabGrants
from infra.lab_jobs import training_grants
from infra.lab_settings import LabSettings, Target, read_lab_settings
from infra.lambda_source import pack_lambda_source
from infra.monitoring import Monitoring
from infra.orchestration import Orchestration
from infra.permissions import acknowledge, check_rules
from infra.serving import ServedModelRole, ending_endpoints
from infra.storage import Storage
from traindyno.bundle import pack, training_files
from traindyno.core.lab_names import LAB_TAG, LEASE_SECONDS, LabOutput, image_parameter, lab_stack_name

GUARD_SECONDS = 60
ANSWER_WITHIN = cdk.Duration.minutes(2)


class Guard(LabFunctions):
    """CloudFormation deletes dependent resources first, so a refusal leaves the lab unchanged."""

    def __init__(self, scope: Construct, construct_id: str, setup: FunctionSetup) -> None:
        super().__init__(scope, construct_id, setup)
        grants = LabGrants.of(self, setup)
        guard = self._function(
            "GuardLab",
            [grants.executions_listed(), grants.open_attempts(), grants.listing(), *ending_endpoints(grants)],
            timeout_seconds=GUARD_SECONDS,
            environment={"STATE_MACHINE_ARN": grants.state_machine_arn},
        )
        self.resource = cdk.CustomResource(
            self,
            "Resource",
            resource_type="Custom::TraindynoGuard",
            service_token=guard.function.function_arn,
            service_timeout=ANSWER_WITHIN,
        )

    def watch(self, *guarded: IConstruct) -> None:
        self.resource.node.add_dependency(*guarded)


KEPT = cdk.Duration.days(14)


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
        acknowledge(self.queue, "AwsSolutions-SQS3", "This is the dead-letter queue itself.")


# CreateTrainingJob is limited to one request per second for the account and region, which can't be raised.
SECONDS_BETWEEN_STARTS = 1.05
# The lease is shorter than the time between two local sweeps.
LOCAL_LEASE_SECONDS = 45.0


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
        super().__init__(scope, construct_id, stack_name=stack_name, description="A Traindyno lab")
        is_local = settings.target is Target.LOCAL
        storage = Storage(
            self,
            "Storage",
            lab=settings.lab,
            empties_bucket=not is_local,
            key_arn=settings.jobs.output_key_arn,
            keeps_results=settings.keeps_results,
        )
        notifications = Notifications(self, "Notifications", email=settings.notify_email)
        budgets = self._budgets(settings, notifications)
        source = s3_assets.Asset(self, "TrainingSource", path=str(training_source))
        code = lambda_.Code.from_asset(str(lambda_source))
        identity = self._identity(settings, storage)
        store, images = (None, None) if is_local else self._images(settings, code)
        dead_letters = None if is_local else DeadLetters(self, "DeadLetters")
        setup = FunctionSetup(
            lab=settings.lab, code=code, storage=storage, dead_letters=dead_letters.queue if dead_letters else None
        )
        functions = Functions(
            self,
            "Functions",
            setup,
            notifications=notifications,
            launch=_launch(settings, identity, source),
            sweep_lease_seconds=LOCAL_LEASE_SECONDS if is_local else LEASE_SECONDS,
        )
        orchestration = Orchestration(
            self,
            "Orchestration",
            lab=settings.lab,
            functions=functions,
            storage=storage,
            concurrency=settings.concurrency,
        )
        watchers = self._watchers(
            settings, functions, orchestration.state_machine, notifications, setup.dead_letters, images=images
        )
        serving = ServedModelRole(self, "Serving", setup, jobs=settings.jobs)
        guard = Guard(self, "Guard", setup)
        parts = [storage, notifications, *budgets, identity, functions, orchestration, *watchers, serving]
        guard.watch(*parts, *(part for part in (store, images, dead_letters) if part))
        self._outputs(orchestration, storage, identity, notifications, source)

    def _images(self, settings: LabSettings, code: lambda_.Code) -> tuple[ImageStore, ImageBuild]:
        store = ImageStore(self, "Images", lab=settings.lab, code=code, wanted=settings.images)
        built = ImageBuild(self, "CpuImage", lab=settings.lab, image=Image.CPU)
        built.build.node.add_dependency(store)
        return store, built

    def _identity(self, settings: LabSettings, storage: Storage) -> Identity:
        return Identity(
            self,
            "Identity",
            results=storage.results,
            data_buckets=settings.data_buckets,
            further=training_grants(settings.jobs, settings.data_keys),
        )

    def _budgets(self, settings: LabSettings, notifications: Notifications) -> list[Budget]:
        if settings.budget_usd is None:
            return []
        return [
            Budget(
                self,
                "Budget",
                lab=settings.lab,
                monthly_usd=settings.budget_usd,
                of=settings.budget_scope,
                notifications=notifications,
            )
        ]

    def _watchers(
        self,
        settings: LabSettings,
        functions: Functions,
        state_machine: sfn.StateMachine,
        notifications: Notifications,
        dead_letters: sqs.IQueue | None,
        *,
        images: ImageBuild | None,
    ) -> list[Construct]:
        is_local = settings.target is Target.LOCAL
        return [
            EventRules(
                self,
                "EventRules",
                lab=settings.lab,
                functions=functions,
                state_machine=state_machine,
                sweep_interval=_sweep_interval(settings),
                dead_letters=dead_letters,
            ),
            Monitoring(
                self,
                "Monitoring",
                lab=settings.lab,
                state_machine=state_machine,
                functions=functions,
                topic=notifications.topic,
                dead_letters=dead_letters,
                images=images,
                has_metric_math=not is_local,
            ),
        ]

    def _outputs(
        self,
        orchestration: Orchestration,
        storage: Storage,
        identity: Identity,
        notifications: Notifications,
        source: s3_assets.Asset,
    ) -> None:
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


def _launch(settings: LabSettings, identity: Identity, source: s3_assets.Asset) -> Launch:
    is_local = settings.target is Target.LOCAL
    return Launch(
        training_role=identity.training_role,
        source_s3_uri=source.s3_object_url,
        source_arn=source.bucket.arn_for_objects(source.s3_object_key),
        image_parameters=[] if is_local else [image_parameter(settings.lab, each.value) for each in Image],
        data_buckets=settings.data_buckets,
        jobs=settings.jobs,
        seconds_between_starts=0.0 if is_local else SECONDS_BETWEEN_STARTS,
    )


def _sweep_interval(settings: LabSettings) -> cdk.Duration:
    return cdk.Duration.minutes(1 if settings.target is Target.LOCAL else 5)


def add_lab(app: cdk.App, *, staging: Path, region: str | None = None) -> None:
    """``region``: where the lab is about to be deployed, if that is known.

    ``staging`` is an empty folder that must exist until this call returns; assets are copied from it.
    """
    settings = read_lab_settings(app.node, region=region)
    stack = LabStack(
        app,
        "Lab",
        stack_name=lab_stack_name(settings.lab),
        settings=settings,
        # MiniStack's environment has boto3; otherwise each worker would import its own copy without bytecode.
        lambda_source=_write(
            staging / "lambda.zip", pack_lambda_source(with_boto3=settings.target is not Target.LOCAL)
        ),
        training_source=_write(staging / "sourcedir.tar.gz", pack(training_files())),
    )
    if settings.target is not Target.LOCAL:
        wanted = [image for image in settings.images if image is not Image.CPU]
        LabImages(app, "LabImages", lab=settings.lab, wanted=wanted).add_stack_dependency(stack)
    if settings.permissions_boundary:
        boundary = iam.ManagedPolicy.from_managed_policy_arn(stack, "Boundary", settings.permissions_boundary)
        iam.PermissionsBoundary.of(app).apply(boundary)
    cdk.Tags.of(app).add(LAB_TAG, settings.lab)
    if settings.checks_rules:
        check_rules(app)


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
