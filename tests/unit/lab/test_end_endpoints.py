"""Every endpoint of the lab ends in time, whatever fails meanwhile, and no endpoint without its tag is touched."""

import random
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.lab_in_memory import NOW
from tests.unit.serving_in_memory import DEPLOYMENT, NAME, SETTINGS, MemoryServing, client_error
from traindyno.aws.endpoints import EndpointBusy
from traindyno.core.s3_keys import served_model_key
from traindyno.core.serving.deployment import NOTICE_SECONDS, deployment_document
from traindyno.lab.serving.deploy_model import deploy_model
from traindyno.lab.serving.end_endpoints import (
    CREATED_WITHIN_SECONDS,
    GONE,
    NOT_OURS,
    SweptEndpoints,
    names_in_use,
    remove_all,
    remove_endpoint,
    sweep_endpoints,
)
from traindyno.sagemaker.serving import ends_at_text
from traindyno.store.deployments import DeploymentRow

SWEEP_SECONDS = 300
OURS, OTHERS = {"traindyno_lab": "traindyno"}, {"traindyno_lab": "another"}


class Killed(BaseException):
    """The function was ended, as by its time limit."""


def deployed(lab: MemoryServing, now: float = NOW, **changes: Any) -> str:
    deployment = replace(DEPLOYMENT, **changes)
    deploy_model(deployment_document(deployment), serving=lab.serving, settings=SETTINGS, clock=lambda: now)
    return deployment.name


def sweep(lab: MemoryServing, now: float) -> SweptEndpoints:
    swept = sweep_endpoints(lab.serving, now=now)
    if swept.errors:
        raise swept.errors[0]
    return swept


class Chaos:
    """A lab with endpoints of all kinds, whose sweeps meet a fault in every second round at most."""

    def __init__(self, seed: int) -> None:
        self.source, self.lab, self.now = random.Random(seed), MemoryServing(), NOW
        self.due: dict[str, float] = {}  # from when on each must be gone within two sweeps
        self.had_fault = False
        sagemaker = self.lab.sagemaker
        for number in range(6):
            name = f"{NAME}-{number}"
            sagemaker.first_status = self.source.choice(["Creating", "InService", "Failed"])
            expires_at = NOW + self.source.uniform(60, 7200)
            max_usd = self.source.choice([None, Decimal("0.10"), Decimal("0.30")])
            deployed(self.lab, name=name, expires_at=expires_at, max_usd=max_usd)
            self.due[name] = self.lab.row(name).ends_at or 0
        # Without a row: the table was restored from a backup
        sagemaker.add("traindyno--no-row", **OURS, traindyno_ends_at=ends_at_text(NOW + 1000))
        self.due["traindyno--no-row"] = NOW + 1000
        self.kept = {deployed(self.lab, name=f"{NAME}-kept", expires_at=None)}
        for name, tags in (("traindyno--mine", {}), ("traindyno--other", OTHERS), (f"x-{NAME}", OURS)):
            sagemaker.add(name, **tags, traindyno_ends_at=ends_at_text(NOW - 9000))
            self.kept.add(name)

    def round(self) -> None:
        """What happens between two sweeps, and a sweep."""
        sagemaker = self.lab.sagemaker
        for name, endpoint in sagemaker.endpoints.items():
            if endpoint["EndpointStatus"] == "Creating" and self.source.random() < 0.5:
                endpoint["EndpointStatus"] = "InService"
            elif endpoint["EndpointStatus"] == "Creating" and name in self.due:
                # SageMaker refuses to delete it: the time counts from its end.
                self.due[name] = max(self.due[name], self.now + 1)
        open_names = sorted(set(self.due) & set(sagemaker.endpoints) - {"traindyno--no-row"})
        if open_names and self.source.random() < 0.3:
            self._create_late(self.source.choice(open_names))
        fault = None if self.had_fault else self.source.choice([None, "throttled", "killed"])
        self.had_fault = fault is not None
        calls = self.source.randrange(25)
        sagemaker.fault = self._fault(fault, calls) if fault else lambda _operation, _name: None
        self.now += SWEEP_SECONDS
        try:
            sweep_endpoints(self.lab.serving, now=self.now)
        except Killed:
            assert fault == "killed"

    def _create_late(self, name: str) -> None:
        """`traindyno undeploy` removes it, and a copy of DeployModel that is still under way creates it again."""
        endpoint = self.lab.sagemaker.endpoints[name]
        self.lab.sagemaker.fault = lambda _operation, _name: None
        try:
            remove_endpoint(name, self.lab.serving, now=self.now, message="removed by traindyno undeploy")
        except EndpointBusy:
            return
        self.lab.sagemaker.endpoints[name] = {**endpoint, "EndpointStatus": self.source.choice(["Creating", "Failed"])}
        self.lab.objects.contents[served_model_key(name)] = b"late"
        self.due[name] = self.now

    def _fault(self, kind: str, calls: int) -> Any:
        left = [calls]

        def fault(operation: str, _name: str) -> None:
            left[0] -= 1
            if left[0] < 0 and kind == "killed":
                raise Killed
            if left[0] < 0 and operation in {"DeleteEndpoint", "ListTags", "DeleteModel", "ListEndpoints"}:
                raise client_error("ThrottlingException", "Rate exceeded", operation)

        return fault


@pytest.mark.parametrize("seed", range(40))
def test_no_endpoint_outlives_its_time_by_more_than_two_sweeps(seed: int) -> None:
    chaos = Chaos(seed)
    for _ in range(40):
        chaos.round()
        late = [
            name
            for name in chaos.lab.sagemaker.endpoints
            if name in chaos.due and chaos.now - chaos.due[name] > 2 * SWEEP_SECONDS
        ]
        assert not late, (chaos.now - NOW, {name: chaos.due[name] - NOW for name in late})
        assert chaos.kept <= set(chaos.lab.sagemaker.endpoints)
    # Without a row nothing leads to the model of an endpoint that a killed sweep has deleted; SageMaker bills no model.
    models = set(chaos.lab.sagemaker.models) - {"traindyno--no-row"}
    assert set(chaos.lab.sagemaker.endpoints) == models == chaos.kept
    copies = {key for key in chaos.lab.objects.contents if key.startswith("models/")}
    assert copies == {served_model_key(f"{NAME}-kept")}
    assert {chaos.lab.row(f"{NAME}-{number}").status for number in range(6)} == {"removed"}


def test_an_endpoint_costs_at_most_its_amount_and_its_longest_life() -> None:
    source = random.Random(1)
    for _ in range(200):
        price, count = Decimal(source.randrange(1, 10**6)) / 10**4, source.randrange(1, 9)
        asked = price * count * source.randrange(1200, 10**5) / 3600 + Decimal("0.000001")
        deployment = replace(DEPLOYMENT, usd_per_hour=price, instance_count=count, expires_at=None, max_usd=asked)
        row = DeploymentRow(deployment=deployment, created_at=NOW)
        assert row.ends_at is not None
        paid = row.cost_so_far_usd(row.ends_at + NOTICE_SECONDS)
        assert paid is not None
        assert asked - price * count / 1800 < paid <= asked
        hours = replace(deployment, expires_at=NOW + source.randrange(60, 10**6))
        assert (hours.ends_at(NOW) or 0) <= row.ends_at
        assert (hours.most_usd(NOW) or 0) <= asked


def test_the_sweep_says_why_and_counts_what_is_open_and_overdue() -> None:
    lab = MemoryServing()
    deployed(lab, max_usd=Decimal("0.10"), expires_at=None)
    assert sweep(lab, NOW + 60) == SweptEndpoints(open=1)
    lab.sagemaker.endpoints[NAME]["EndpointStatus"] = "Creating"
    assert sweep(lab, NOW + 3000) == SweptEndpoints(open=1, overdue=1)  # nothing can delete it yet
    lab.sagemaker.endpoints[NAME]["EndpointStatus"] = "InService"
    assert sweep(lab, NOW + 3300) == SweptEndpoints(overdue=1, removed=1)
    assert lab.row().message == "the lab ended it before it could cost more than its max_usd of $0.10"
    assert sweep(lab, NOW + 3600).open == 0


def test_what_is_gone_or_no_longer_ours_has_its_row_closed() -> None:
    lab = MemoryServing()
    deployed(lab, expires_at=None)
    del lab.sagemaker.endpoints[NAME]
    assert sweep(lab, NOW + 600).removed == 0  # DeployModel may still create it
    assert sweep(lab, NOW + CREATED_WITHIN_SECONDS).removed == 1
    assert lab.row().message == GONE
    untagged = deployed(lab, name=f"{NAME}-2")
    lab.sagemaker.endpoints[untagged]["Tags"] = []
    sweep(lab, NOW + 9000)
    assert remove_endpoint(untagged, lab.serving, now=NOW + 9000, message="removed by traindyno undeploy")
    assert untagged in lab.sagemaker.endpoints
    assert served_model_key(untagged) in lab.objects.contents
    assert NOT_OURS in (lab.row(untagged).message or "")


def test_one_that_can_not_be_read_or_ended_keeps_no_other() -> None:
    lab = MemoryServing()
    names = [deployed(lab, name=f"{NAME}-{number}") for number in range(3)]
    key = ("model-deployments", f"deployment#{names[0]}")
    del lab.table.items[key]["deployment"]

    def fault(operation: str, name: str) -> None:
        if operation == "DeleteEndpoint" and name == names[1]:
            raise client_error("AccessDeniedException", "not authorized")

    lab.sagemaker.fault = fault
    swept = sweep_endpoints(lab.serving, now=NOW + 4000)
    assert set(lab.sagemaker.endpoints) == {names[1]}
    assert [type(error).__name__ for error in swept.errors] == ["RowUnreadable", "ClientError"]


def test_a_lab_is_kept_by_endpoints_that_would_outlive_it() -> None:
    lab = MemoryServing()
    expiring = deployed(lab)
    assert names_in_use(lab.serving, now=NOW) == []
    kept = deployed(lab, name=f"{NAME}-kept", expires_at=None)
    lab.sagemaker.add("traindyno--kept", **OURS, traindyno_ends_at="kept")
    lab.sagemaker.add("traindyno--mine", status="Creating")
    copying = replace(DEPLOYMENT, name=f"{NAME}-copying")
    lab.serving.deployments.create(DeploymentRow(deployment=copying, created_at=NOW))
    starting = deployed(lab, name=f"{NAME}-starting")
    lab.sagemaker.endpoints[starting]["EndpointStatus"] = "Creating"
    assert names_in_use(lab.serving, now=NOW) == ["traindyno--kept", copying.name, kept, starting]
    for name in (kept, starting):
        lab.sagemaker.endpoints[name]["EndpointStatus"] = "InService"
    assert remove_all(lab.serving, now=NOW, message="the lab was destroyed") == 5
    assert set(lab.sagemaker.endpoints) == {"traindyno--mine"}
    assert lab.row(expiring).message == "the lab was destroyed"
