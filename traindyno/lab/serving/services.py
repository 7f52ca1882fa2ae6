"""The services that deployments use, bound to one lab, and the variables of DeployModel."""

from dataclasses import dataclass
from functools import partial

from traindyno.aws import clients
from traindyno.aws.endpoints import Endpoints
from traindyno.core.s3_keys import MODELS_PREFIX, deployment_key, served_model_key
from traindyno.core.serving.deployment import ModelDeployment, parse_deployment
from traindyno.lab.environment import BucketEnvironment
from traindyno.sagemaker.job_settings import read_lab_jobs
from traindyno.sagemaker.serving import ServingSettings
from traindyno.store.results_bucket import ResultsBucket


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingEnvironment(BucketEnvironment):
    """The variables of DeployModel. ``lab_jobs`` is JSON."""

    aws_region: str
    serving_role_arn: str
    lab_jobs: str = "{}"

    @property
    def settings(self) -> ServingSettings:
        jobs = read_lab_jobs(self.lab_jobs)
        role_arn = self.serving_role_arn
        return ServingSettings(region=self.aws_region, role_arn=role_arn, bucket=self.bucket, lab=self.lab, jobs=jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    lab: str
    bucket: ResultsBucket
    endpoints: Endpoints

    def find(self, name: str) -> ModelDeployment | None:
        return self.bucket.find_as(deployment_key(name), partial(parse_deployment, lab=self.lab))

    def names(self) -> list[str]:
        """Deployments that have a record or a copy of their model."""
        parts = ((key, key.split("/")[1]) for key in self.bucket.list_keys(MODELS_PREFIX))
        return sorted({name for key, name in parts if key in (deployment_key(name), served_model_key(name))})


def open_serving(environment: BucketEnvironment) -> Serving:
    return Serving(
        lab=environment.lab,
        bucket=ResultsBucket(clients.s3(), environment.bucket),
        endpoints=Endpoints(clients.sagemaker(), clients.sagemaker_runtime),
    )
