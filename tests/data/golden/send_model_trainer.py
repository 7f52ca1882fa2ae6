"""Reads requests of the lab, and writes what the ModelTrainers of the SDK 3 made of them send.

It runs with sagemaker-train, whose clients send nothing.
"""

import json
import sys

import boto3
from sagemaker.core.helper.session_helper import Session
from sagemaker.train import defaults

from traindyno.sagemaker.sdk_jobs import build_model_trainer

defaults.TrainDefaults.get_role = staticmethod(lambda role, sagemaker_session=None: role)
session = Session(boto_session=boto3.Session("key", "secret", region_name="us-east-1"))
session.default_bucket = lambda: "your-bucket"
sent = {
    name: build_model_trainer(request, session=session)._create_training_job_args(boto3=True)
    for name, request in json.load(sys.stdin).items()
}
json.dump(sent, sys.stdout)
