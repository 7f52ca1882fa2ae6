"""A request's body that no job could come of is refused as AWS refuses it, not by an error of the
service.
"""

import pytest

from localcloud.gated_server import read_length
from localcloud.sagemaker_service.api.http_server import read_document
from localcloud.sagemaker_service.api_error import ApiError

REFUSED = {
    "no JSON": (b"{", "the body is not valid JSON"),
    "a list": (b"[]", "the body is not a JSON object"),
    "3,000 levels": (b'{"a": ' + b"[" * 3000 + b"]" * 3000 + b"}", "expected at most 100"),
    "300 levels": (b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}", "expected at most 100"),
    "an integer of 5,000 digits": (b'{"a": ' + b"9" * 5000 + b"}", "the body is not valid JSON"),
    "an integer of 100 digits": (
        b'{"a": ' + b"9" * 100 + b"}",
        "expected a finite number within 64 bits",
    ),
    "no number": (b'{"a": NaN}', "a: got NaN, expected a finite number within 64 bits"),
}


@pytest.mark.parametrize(("body", "says"), REFUSED.values(), ids=REFUSED)
def test_a_body_without_a_request_is_refused(body: bytes, says: str) -> None:
    with pytest.raises(ApiError) as refused:
        read_document(body)
    assert refused.value.code == "SerializationException"
    assert says in str(refused.value)


def test_an_empty_body_is_an_empty_request() -> None:
    assert read_document(b"") == {}


@pytest.mark.parametrize("header", ["-1", "+1", "1.5", "abc", "1_0", "9" * 5000, "٣"])
def test_a_length_without_a_number_of_bytes_is_refused(header: str) -> None:
    with pytest.raises(ValueError, match="expected a number of bytes") as refused:
        read_length(header)
    assert len(str(refused.value)) < 200


def test_the_length_of_a_body_is_its_number_of_bytes() -> None:
    assert [read_length(header) for header in (None, "", "0", "4096")] == [0, 0, 0, 4096]
