"""The CDK app: one lab, named and aimed by the context (cdk.json, or --context lab=... --context target=local)."""

from pathlib import Path
from tempfile import TemporaryDirectory

import aws_cdk as cdk

from infra.lab import add_lab

app = cdk.App()
with TemporaryDirectory() as staging:
    add_lab(app, staging=Path(staging))
app.synth()
