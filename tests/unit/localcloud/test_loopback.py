"""The local cloud runs code for whoever may call it: programs of this machine may, pages in its browser may not."""

import pytest

from localcloud.loopback import find_refusal


@pytest.mark.parametrize("host", ["127.0.0.1:4566", "localhost:4566", "127.0.0.1", "localhost"])
def test_a_program_of_this_machine_is_answered(host: str) -> None:
    assert find_refusal(host=host, origin=None, fetch_site=None) is None


@pytest.mark.parametrize(
    "host", ["evil.example:4566", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "[::1]:80"]
)
def test_another_name_of_this_address_is_refused(host: str) -> None:
    assert "host" in str(find_refusal(host=host, origin=None, fetch_site=None))


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://127.0.0.1:4566"])
def test_any_origin_is_refused(origin: str) -> None:
    assert "refuses requests from web pages" in str(find_refusal(host="127.0.0.1:4566", origin=origin, fetch_site=None))


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_a_request_that_a_page_makes_without_an_origin_is_refused(site: str) -> None:
    assert "other sites" in str(find_refusal(host="127.0.0.1:4566", origin=None, fetch_site=site))


def test_an_address_that_a_person_types_is_answered() -> None:
    assert find_refusal(host="127.0.0.1:4566", origin=None, fetch_site="none") is None
