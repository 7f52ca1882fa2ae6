"""Each call that a function makes is allowed by its role, and each permission is needed by a
call.
"""

from dataclasses import replace

import pytest

from tests.infra.synthesis import KEY, OTHER_LAB, VPC, lab, properties
from tests.permissions.calls import recorded_calls
from tests.permissions.policies import Allowed, FunctionPolicy
from tests.permissions.unsent import UNSENT

CALLS = recorded_calls() | UNSENT.keys()
FUNCTIONS = sorted({call.function for call in CALLS})
CONTEXTS = {
    "default": {"target": "aws"},
    "vpc": {"target": "aws", "file": VPC},
    "keys": {
        "target": "aws",
        "file": f'volume_key = "{KEY}-of-volumes"\noutput_key = "{KEY}-of-outputs"',
    },
    "neuron": {"target": "aws", "file": "neuron = true"},
    "everything": OTHER_LAB,
}
EVERY_TEMPLATE = pytest.mark.parametrize("context", CONTEXTS)
EVERY_FUNCTION = pytest.mark.parametrize("function", FUNCTIONS)


def policy_of(function: str, context: str) -> FunctionPolicy:
    buckets = ["my-data", "more"] if context == "everything" else []
    return FunctionPolicy(lab(**CONTEXTS[context]), function, data_buckets=buckets)


def needed(policy: FunctionPolicy, function: str) -> set[Allowed]:
    calls = [policy.needed_by(call) for call in CALLS if call.function == function]
    return set().union(*calls, policy.needed_by_lambda())


def missing(allowed: frozenset[Allowed], needs: set[Allowed]) -> list[Allowed]:
    return sorted(need for need in needs if not any(grant.covers(need) for grant in allowed))


@EVERY_TEMPLATE
@EVERY_FUNCTION
def test_a_role_allows_every_call_of_its_function(function: str, context: str) -> None:
    policy = policy_of(function, context)
    assert missing(policy.allowed(), needed(policy, function)) == []


@EVERY_TEMPLATE
@EVERY_FUNCTION
def test_without_any_one_permission_a_call_of_the_function_is_denied(
    function: str, context: str
) -> None:
    """A role then holds nothing that no call needs, and the test above finds each permission that a
    role loses.
    """
    policy = policy_of(function, context)
    allowed = policy.allowed()
    needs = needed(policy, function)
    assert [grant for grant in sorted(allowed) if not missing(allowed - {grant}, needs)] == []
    assert [
        grant for grant in sorted(allowed - needs) if not grant.action.startswith("logs:")
    ] == [], "it reaches further"


def test_every_function_of_the_lab_has_calls_in_the_record() -> None:
    functions = properties(lab(**CONTEXTS["neuron"]), "AWS::Lambda::Function").values()
    handlers = {
        function["Handler"].split(".")[1]
        for function in functions
        if function["Handler"].startswith("lambdas.")
    }
    assert handlers == set(FUNCTIONS)


def test_a_call_on_a_resource_of_another_lab_is_denied() -> None:
    policy = policy_of("submit_run", "default")
    (start,) = (
        call for call in CALLS if str(call).startswith("submit_run sagemaker:CreateTrainingJob")
    )
    others = replace(start, parameters=(*start.parameters, ("TrainingJobName", "another--job")))
    denied = [need.action for need in missing(policy.allowed(), set(policy.needed_by(others)))]
    assert denied == ["sagemaker:AddTags", "sagemaker:CreateTrainingJob"]


def test_wildcards_cover_the_same_as_in_iam() -> None:
    pattern = Allowed("s3:GetObject", "arn:aws:s3:::a.b/runs/*")
    assert pattern.covers(Allowed("s3:GetObject", "arn:aws:s3:::a.b/runs/x/y"))
    assert not pattern.covers(Allowed("s3:GetObject", "arn:aws:s3:::acb/runs/x"))
    assert not pattern.covers(Allowed("s3:PutObject", "arn:aws:s3:::a.b/runs/x"))
