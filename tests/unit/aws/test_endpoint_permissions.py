"""The page of serving names each permission that the calls of endpoints need."""

import inspect
import re
from pathlib import Path

from traindyno.aws.endpoints import Endpoints

PAGE = Path(__file__).parents[3] / "docs" / "serving.md"
CALL = re.compile(r'(?:_sagemaker|_runtime\(\))\.(?:get_paginator\(")?([a-z_]+)[("]')
# Models, configurations and endpoints are created with tags.
BESIDE_CALLS = "sagemaker:AddTags"


def test_the_page_names_the_permission_of_each_call() -> None:
    calls = CALL.findall(inspect.getsource(Endpoints))
    needed = {f"sagemaker:{call.title().replace('_', '')}" for call in calls}
    assert set(re.findall(r"`(sagemaker:\w+)`", PAGE.read_text())) == {BESIDE_CALLS, *needed}
