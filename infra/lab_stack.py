"""The stack of one lab."""

from collections.abc import Mapping
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3_assets as s3_assets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.dead_letters import DeadLetters
from infra.event_rules import EventRules
from infra.functions import Functions, Launch
from infra.guard import Guard
from infra.identity import Identity
from infra.images import Image, ImageBuild, ImageStore, LabImages, image_tag
from infra.lab_function import FunctionSetup
from infra.lab_settings import LabSettings, Target, read_lab_settings
from infra.lambda_source import pack_lambda_source
from infra.monitoring import Monitoring
from infra.notifications import Notifications
from infra.orchestration import Orchestration
from infra.permissions import check_rules
from infra.sagemaker_role import training_grants
from infra.serving import ServedModelRole
from infra.storage import Storage
from traindyno.bundle import pack, training_files
from traindyno.core.lab_names import LabOutput, lab_stack_name

# CreateTrainingJob is limited to one request per second for the account and region, which can't be
# raised.
SECONDS_BETWEEN_STARTS = 1.05


class LabStack(cdk.Stack):
    """All resources of a lab but the images for accelerators.

    ``image_store`` is None in the local cloud, which builds no images.
    """

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
        self._settings = settings
        self._is_local = settings.target is Target.LOCAL
        self._jobs = settings.file.jobs
        self._storage = self._store()
        self._notifications = Notifications(self, "Notifications", email=settings.file.notify_email)
        self._source = s3_assets.Asset(self, "TrainingSource", path=str(training_source))
        code = lambda_.Code.from_asset(str(lambda_source))
        self._identity = self._identify()
        self.image_store: ImageStore | None = None
        dead_letters: DeadLetters | None = None
        images: ImageBuild | None = None
        if not self._is_local:
            dead_letters = DeadLetters(self, "DeadLetters")
            self.image_store = self._image_store(code, dead_letters.queue)
            images = self._cpu_image(self.image_store)
        setup = FunctionSetup(
            lab=settings.lab,
            code=code,
            storage=self._storage,
            dead_letters=dead_letters.queue if dead_letters else None,
        )
        functions = Functions(
            self, "Functions", setup, notifications=self._notifications, launch=self._launch()
        )
        orchestration = self._orchestrate(functions)
        rules = self._event_rules(functions, orchestration, setup.dead_letters)
        monitoring = self._monitor(functions, images, setup.dead_letters)
        serving = ServedModelRole(self, "Serving", setup, jobs=self._jobs)
        guard = Guard(self, "Guard", setup, named=settings.named)
        for part in (self._identity, functions, serving):
            part.node.add_dependency(guard.settings)
        shared = [self._storage, self._notifications, self.image_store, images, dead_letters]
        users = [self._identity, functions, orchestration, rules, monitoring, serving]
        parts = [part for part in shared if part is not None]
        guard.resource.node.add_dependency(*parts, *users, guard.settings)
        self._add_outputs(orchestration)

    def _store(self) -> Storage:
        return Storage(
            self,
            "Storage",
            tags=self._settings.tags,
            empties_bucket=not self._is_local,
            key_arn=self._jobs.output_key_arn,
            keeps_results=self._settings.file.keep_results,
        )

    def _identify(self) -> Identity:
        return Identity(
            self,
            "Identity",
            results=self._storage.results,
            data_buckets=self._settings.file.data_buckets,
            further=training_grants(self._jobs, self._settings.file.data_keys),
        )

    def _orchestrate(self, functions: Functions) -> Orchestration:
        return Orchestration(
            self,
            "Orchestration",
            lab=self._settings.lab,
            functions=functions,
            storage=self._storage,
            concurrency=self._settings.concurrency,
        )

    def _image_store(self, code: lambda_.Code, dead_letters: sqs.IQueue) -> ImageStore:
        return ImageStore(
            self,
            "Images",
            lab=self._settings.lab,
            code=code,
            wanted=self._settings.file.images,
            dead_letters=dead_letters,
        )

    def _cpu_image(self, store: ImageStore) -> ImageBuild:
        build = ImageBuild(self, "CpuImage", store=store, image=Image.CPU)
        # The rule of BuildImage is in effect before the first build can end.
        build.node.add_dependency(store)
        return build

    def _launch(self) -> Launch:
        image_tags = {} if self._is_local else {image.value: image_tag(image) for image in Image}
        return Launch(
            training_role=self._identity.training_role,
            source_s3_uri=self._source.s3_object_url,
            source_arn=self._source.bucket.arn_for_objects(self._source.s3_object_key),
            image_tags=image_tags,
            data_buckets=self._settings.file.data_buckets,
            jobs=self._jobs,
            seconds_between_starts=0.0 if self._is_local else SECONDS_BETWEEN_STARTS,
        )

    def _event_rules(
        self,
        functions: Functions,
        orchestration: Orchestration,
        dead_letters: sqs.IQueue | None,
    ) -> EventRules:
        return EventRules(
            self,
            "EventRules",
            lab=self._settings.lab,
            functions=functions,
            state_machine=orchestration.state_machine,
            sweep_interval=cdk.Duration.minutes(1 if self._is_local else 5),
            dead_letters=dead_letters,
        )

    def _monitor(
        self, functions: Functions, images: ImageBuild | None, dead_letters: sqs.IQueue | None
    ) -> Monitoring:
        return Monitoring(
            self,
            "Monitoring",
            lab=self._settings.lab,
            functions=functions,
            topic=self._notifications.topic,
            dead_letters=dead_letters,
            images=images,
        )

    def _add_outputs(self, orchestration: Orchestration) -> None:
        values: Mapping[LabOutput, str] = {
            LabOutput.STATE_MACHINE_ARN: orchestration.state_machine.state_machine_arn,
            LabOutput.BUCKET: self._storage.results.bucket_name,
            LabOutput.TABLE: self._storage.table.table_name,
            LabOutput.TRAINING_ROLE_ARN: self._identity.training_role.role_arn,
            LabOutput.TOPIC_ARN: self._notifications.topic.topic_arn,
            LabOutput.SOURCE_S3_URI: self._source.s3_object_url,
        }
        for output, value in values.items():
            cdk.CfnOutput(self, output.value, value=value)


def add_lab(
    app: cdk.App, *, staging: Path, labs: Path = Path("labs"), region: str | None = None
) -> None:
    """Adds the stacks of the lab that the app's context names.

    Args:
        app: The app, whose context says what a lab's file does not.
        staging: An empty folder. Assets are copied from it until this call returns.
        labs: The folder of the labs' files.
        region: The region of the deployment, if it is known.
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
    for name, value in settings.tags.items():
        cdk.Tags.of(app).add(name, value)
    if settings.checks_rules:
        check_rules(app)


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
