"""A receipt of cents shows what was paid for what, not "$0.00"."""

import io
from decimal import Decimal

import pytest

from tests.unit.run_samples import PRICE, completed_result, make_cell
from traindyno.cli.display.receipt_table import print_receipt
from traindyno.cli.inputs.execution_receipt import ExecutionReceipt
from traindyno.cli.output import Terminal
from traindyno.core.costs.receipt import exact_phase_usd, write_receipt
from traindyno.core.measurement.run_result import PaidPrice

CHEAP = PaidPrice(usd_per_instance_hour=Decimal("0.10"))


def printed(price: PaidPrice) -> tuple[str, ExecutionReceipt]:
    receipt = write_receipt([completed_result(make_cell(), trial, price=price) for trial in (1, 2)])
    found = ExecutionReceipt(
        execution_id="demo", status="SUCCEEDED", receipt=receipt, is_final=True, is_simulated=False, running_jobs=()
    )
    sink = io.StringIO()
    print_receipt(Terminal(file=sink, width=160), found)
    return sink.getvalue(), found


def test_amounts_below_a_dollar_are_shown_to_three_digits() -> None:
    text, found = printed(CHEAP)
    # Two jobs of 170 billed seconds at $0.10 an hour: 2 x 170 / 3,600 x 0.10.
    assert "total $0.00944 for 2 training jobs" in text
    assert "$0.00472" in text
    assert "$0.00\n" not in text
    whole = sum(line.exact_usd for line in found.receipt.lines if line.exact_usd is not None)
    assert float(sum(exact_phase_usd(found.receipt.lines).values())) == pytest.approx(float(whole))


def test_larger_receipts_stay_in_whole_cents() -> None:
    text, _ = printed(PRICE)
    # 2 x 170 / 3,600 x $36.
    assert "total $3.40 for 2 training jobs" in text
