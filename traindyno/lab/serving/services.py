"""The services that deployments use, bound to one lab, and the variables of DeployModel."""

from dataclasses import dataclass

from traindyno.aws import clients
from traindyno.aws.endpoints import Endpoints
from traindyno.aws.table import Table
from traindyno.lab.environment import BucketEnvironment
from traindyno.sagemaker.job_settings import read_lab_jobs
from traindyno.sagemaker.serving import ServingSettings
from traindyno.store.deployments import DeploymentRows
from traindyno.store.results_bucket import ResultsBucket


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingEnvironment(BucketEnvironment):
    """The variables of DeployModel. ``lab_jobs`` is JSON."""

    aws_region: str
    serving_role_arn: str
    lab_jobs: str = "{}"

    @property
    def settings(self) -> ServingSettings:
        return ServingSettings(
            region=self.aws_region,
            role_arn=self.serving_role_arn,
            bucket=self.bucket,
            lab=self.lab,
            jobs=read_lab_jobs(self.lab_jobs),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    lab: str
    bucket: ResultsBucket
    deployments: DeploymentRows
    endpoints: Endpoints


def open_serving(environment: BucketEnvironment) -> Serving:
    return Serving(
        lab=environment.lab,
        bucket=ResultsBucket(clients.s3(), environment.bucket),
        deployments=DeploymentRows(Table(clients.table(environment.table))),
        endpoints=Endpoints(clients.sagemaker(), clients.sagemaker_runtime),
    )
