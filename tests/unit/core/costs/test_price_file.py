"""Prices from a file: exact, strict, and every problem named with its place."""

from decimal import Decimal
from pathlib import Path

import pytest

from traindyno.api.plan_inputs import read_price_file
from traindyno.api.suite_text import InputFileInvalid, SuiteUnreadable

GOOD = (
    "region: us-west-2\n"
    "as_of: 2026-11-21\n"
    "prices:\n"
    "  ml.trn1.32xlarge: 24.725\n"
    "  ml.p4d.24xlarge: '25.251286'\n"
)


def write(folder: Path, text: str) -> Path:
    path = folder / "prices.yaml"
    path.write_text(text)
    return path


def test_a_price_is_the_written_number(tmp_path: Path) -> None:
    prices = read_price_file(write(tmp_path, GOOD))
    assert prices["ml.trn1.32xlarge"].usd_per_hour == Decimal("24.725")
    assert prices["ml.p4d.24xlarge"].usd_per_hour == Decimal("25.251286")


def test_an_unnamed_source_is_the_file(tmp_path: Path) -> None:
    price = read_price_file(write(tmp_path, GOOD))["ml.trn1.32xlarge"]
    assert (price.region, price.as_of, price.source) == ("us-west-2", "2026-11-21", "prices.yaml")
    agreed = read_price_file(write(tmp_path, GOOD + "source: our agreement\n"))["ml.trn1.32xlarge"]
    assert agreed.source == "our agreement"


def test_json_will_do_as_well(tmp_path: Path) -> None:
    text = '{"region": "us-west-2", "as_of": "2026-11-21", "prices": {"ml.g5.xlarge": 1.408}}'
    assert read_price_file(write(tmp_path, text))["ml.g5.xlarge"].usd_per_hour == Decimal("1.408")


def test_all_problems_come_at_once_with_their_lines(tmp_path: Path) -> None:
    text = (
        "as_of: yesterday\n"
        "prices:\n"
        "  p4d.24xlarge: 25\n"
        "  ml.g5.xlarge: -1\n"
        "  ml.g5.2xlarge: cheap\n"
        "  ml.g5.4xlarge: .inf\n"
        "extra: 1\n"
    )
    with pytest.raises(InputFileInvalid) as caught:
        read_price_file(write(tmp_path, text))
    said = str(caught.value)
    for expected in (
        'prices.yaml:1: as_of: got "yesterday", expected a date such as 2026-11-21',
        "prices.yaml:3: prices.p4d.24xlarge: got",
        'did you mean "ml.p4d.24xlarge"',
        "prices.yaml:4: prices.ml.g5.xlarge: got -1, expected USD per hour above 0",
        'prices.yaml:5: prices.ml.g5.2xlarge: got "cheap", expected a number',
        "prices.yaml:6: prices.ml.g5.4xlarge: got",
        (
            'prices.yaml:7: extra: unknown field "extra", expected one of region, as_of, prices, '
            "source"
        ),
        "region: got nothing, expected text",
    ):
        assert expected in said


def test_a_list_of_prices_must_hold_one(tmp_path: Path) -> None:
    with pytest.raises(InputFileInvalid, match="expected at least one instance type"):
        read_price_file(write(tmp_path, "region: us-east-1\nas_of: 2026-11-21\nprices: {}\n"))


def test_a_wrong_value_gets_the_expected_mapping(tmp_path: Path) -> None:
    with pytest.raises(
        SuiteUnreadable, match=r"found a list; expected a mapping with region, as_of and prices"
    ):
        read_price_file(write(tmp_path, "- ml.g5.xlarge\n"))
