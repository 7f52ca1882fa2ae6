"""Names and inputs of executions, by the rules of StartExecution."""

import json

import pytest

from localcloud.ministack_answers import find_start_refusal

# The API reference of StartExecution lists them.
REFUSED = sorted('<>{}[]?*"#%\\^|~`$&,;:/ \t\n\u2003\x00\x1f\x7f\x9f\ufffe\uffff\ud800\udfff')
INPUTS = ["", "{", "nothing", '{"a": 1,}', '{"a": NaN}', "[" * 100_000, "{} {}"]


@pytest.mark.parametrize("name", ["a", "x" * 80, "quick-look-20261123-071500-ab12", "été_1.2", "a=b+c@d!'()"])
def test_a_name_that_aws_takes_is_taken(name: str) -> None:
    assert find_start_refusal({"name": name, "input": "{}"}) is None


@pytest.mark.parametrize("name", [*(f"a{each}b" for each in REFUSED), "../../x", "", "x" * 81], ids=ascii)
def test_a_name_that_aws_refuses_is_refused(name: str) -> None:
    refusal = find_start_refusal({"name": name})
    assert refusal is not None
    assert refusal[0] == "InvalidName"
    assert json.dumps(refusal).isascii()


@pytest.mark.parametrize("given", INPUTS, ids=lambda text: ascii(text)[:12])
def test_an_input_that_is_no_json_is_refused(given: str) -> None:
    refusal = find_start_refusal({"input": given})
    assert refusal is not None
    assert refusal[0] == "InvalidExecutionInput"


@pytest.mark.parametrize("request_", [{}, {"input": "[]"}, {"name": "n", "input": '"text"'}])
def test_any_json_is_taken_and_so_are_missing_fields(request_: dict[str, str]) -> None:
    assert find_start_refusal(request_) is None
