import pytest
from aws_cdk.assertions import Template

from tests.infra.synthesis import lab


@pytest.fixture(scope="module")
def template() -> Template:
    return lab(target="aws")
