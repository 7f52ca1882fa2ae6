"""The CDK app: one lab. Its name, target and settings come from the context: cdk.json, or --context lab=my-lab."""

import gc

# Searches for garbage cycles took a sixth of this process's time and found nothing that the memory needs.
gc.disable()

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import aws_cdk as cdk

from infra.lab import add_lab

# The CDK's own validation belongs to the rules, which are checked where the context asks for them.
app = cdk.App(builtin_cloud_formation_validation=False)
with TemporaryDirectory() as staging:
    add_lab(app, staging=Path(staging), region=os.environ.get("CDK_DEFAULT_REGION"))
app.synth()
