"""An execution that reached its amount, and the one that continues it with a larger one."""

from decimal import Decimal

import pytest

from tests.local.forked_programs import Answer
from tests.local.local_lab import LocalLab
from tests.local.test_money_commands import SCRIPT, suite_of
from traindyno.cli.commands.run_commands import REFUSED
from traindyno.core.costs.prices import cost_usd

pytestmark = pytest.mark.local

# The worst case of one job: 30 s of work, 120 s of stopping, 300 s of upload, 60 s of margin
ONE_JOB_USD = "0.014167"


def test_a_continuation_measures_the_rest_and_pays_nothing_twice(lab: LocalLab) -> None:
    document = suite_of(lab, [5, 40], examples=900_000)
    limits = {**document["limits"], "max_usd": ONE_JOB_USD}
    small = lab.write_suite("continued", {**document, "limits": limits})
    first = lab.traindyno("run", str(small), "--local", "--name", "part", "--format", "json")
    ended = [result["outcome"] for result in first.json()["results"]]
    assert sorted(ended) == ["completed", *["cost_stopped"] * 3]
    said = "to measure the rest: traindyno run SUITE --continue part --local"
    assert said in " ".join(first.errors.split())

    def go_on(name: str) -> Answer:
        suite = str(lab.write_suite("continued", document))
        return lab.traindyno(
            "run", suite, "--local", "--name", name, "--continue", "part", "--format", "json"
        )

    lab.write_script("money", f"{SCRIPT}# another one\n")
    other = go_on("other")
    assert other.status == REFUSED
    assert "workload.source: it is another one than in part" in other.errors
    lab.write_script("money", SCRIPT)
    rest = go_on("rest")
    assert rest.status == 0, rest.errors
    results = rest.json()["results"]
    assert [result["outcome"] for result in results] == ["completed"] * 4
    own = [result for result in results if result["run"]["execution_id"] == "rest"]
    assert len(own) == 3

    billed = lab.billed_seconds("--continued-")
    assert len(billed) == 4
    lines = lab.receipt("rest")["receipt"]["lines"]
    price = Decimal(lines[0]["usd_per_instance_hour"])
    paid = sum((cost_usd(seconds, 1, price) for seconds in billed.values()), Decimal(0))
    assert sum(Decimal(line["exact_usd"]) for line in lines) == pytest.approx(paid)
    assert {line["job_name"] for line in lines} == billed.keys()
    second = go_on("second")
    assert second.status == REFUSED
    assert "part is continued by rest already: continue rest" in second.errors
