"""Every endpoint of the lab ends in time, whatever fails meanwhile, and no endpoint without its tag
is touched.
"""

import random
from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.lab_in_memory import NOW
from tests.unit.serving_in_memory import DEPLOYMENT, NAME, MemoryServing, client_error
from traindyno.aws.endpoints import EndpointBusy
from traindyno.core.s3_keys import MODELS_PREFIX, deployment_key, served_model_key
from traindyno.core.serving.deployment import CREATED_WITHIN_SECONDS
from traindyno.lab.end_endpoints import (
    EndpointOverdue,
    names_in_use,
    remove_all,
    remove_endpoint,
    sweep_endpoints,
)

SWEEP_SECONDS = 300


class Killed(BaseException):
    """The function was ended, as by its time limit."""


class Chaos:
    """A lab with endpoints of all kinds, whose sweeps meet a fault in every second round at
    most.
    """

    def __init__(self, seed: int) -> None:
        self.source = random.Random(seed)
        self.lab = MemoryServing()
        self.now = NOW
        self.due: dict[str, float] = {}  # from when on each must be gone within two sweeps
        self.had_fault = False
        sagemaker = self.lab.sagemaker
        for number in range(6):
            name = f"{NAME}-{number}"
            sagemaker.first_status = self.source.choice(["Creating", "InService", "Failed"])
            max_usd = self.source.choice([None, Decimal("0.10"), Decimal("0.30")])
            deployment = replace(
                DEPLOYMENT, name=name, hours=self.source.uniform(0.02, 2), max_usd=max_usd
            )
            self.lab.deploy(deployment)
            self.due[name] = deployment.ends_at
        self.kept = {self.lab.deploy(name=f"{NAME}-kept", hours=9)}
        for name, lab in (
            ("traindyno--mine", ""),
            ("traindyno--other", "another"),
            (f"x-{NAME}", "traindyno"),
        ):
            sagemaker.add(name, traindyno_lab=lab, traindyno_ends_at="2026-01-01T00:00:00Z")
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
        open_names = sorted(set(self.due) & set(sagemaker.endpoints))
        if open_names and self.source.random() < 0.3:
            self._create_late(self.source.choice(open_names))
        fault = None if self.had_fault else self.source.choice([None, "throttled", "killed"])
        self.had_fault = fault is not None
        calls = iter(range(self.source.randrange(25)))

        def strike(operation: str, _name: str) -> None:
            if next(calls, None) is not None:
                return
            if fault == "killed":
                raise Killed
            if fault and operation in {
                "DeleteEndpoint",
                "ListTags",
                "DeleteModel",
                "ListEndpoints",
            }:
                raise client_error("ThrottlingException", "Rate exceeded", operation)

        sagemaker.fault = strike
        self.now += SWEEP_SECONDS
        try:
            sweep_endpoints(self.lab.serving, now=self.now)
        except Killed:
            assert fault == "killed"
        sagemaker.fault = lambda *_: None

    def _create_late(self, name: str) -> None:
        """`traindyno undeploy` removes it, and a `deploy` that is still under way creates it
        again.
        """
        sagemaker = self.lab.sagemaker
        late = {kind: kept.get(name, {}) for kind, kept in sagemaker.kept.items()}
        try:
            remove_endpoint(name, self.lab.serving)
        except EndpointBusy:
            return
        for kind, kept in sagemaker.kept.items():
            kept[name] = late[kind]
        sagemaker.endpoints[name] |= {"EndpointStatus": self.source.choice(["Creating", "Failed"])}
        self.lab.objects.contents[served_model_key(name)] = b"late"
        self.due[name] = self.now


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
    assert (
        set(chaos.lab.sagemaker.endpoints) == set(chaos.lab.sagemaker.kept["Model"]) == chaos.kept
    )
    copies = {key for key in chaos.lab.objects.contents if key.startswith(MODELS_PREFIX)}
    assert copies == {served_model_key(f"{NAME}-kept"), deployment_key(f"{NAME}-kept")}


def test_an_endpoint_costs_at_most_its_amount_and_its_longest_life() -> None:
    source = random.Random(1)
    for _ in range(200):
        price = Decimal(source.randrange(1, 10**6)) / 10**4
        asked = price * source.randrange(1200, 10**5) / 3600 + Decimal("0.000001")
        deployment = replace(DEPLOYMENT, usd_per_hour=price, hours=1e6, max_usd=asked)
        paid = deployment.most_usd
        assert paid is not None
        assert asked - price / 1800 < paid <= asked
        both = replace(deployment, hours=source.uniform(0.01, 300))
        assert both.ends_at == min(both.created_at + both.hours * 3600, deployment.ends_at)


def test_the_sweep_reports_overdue_endpoints_and_ends_failed_starts() -> None:
    lab = MemoryServing()
    lab.sagemaker.add(
        "traindyno--mine", traindyno_ends_at="2026-01-01T00:00:00Z"
    )  # without the lab's tag
    lab.deploy(max_usd=Decimal("0.10"))
    assert sweep_endpoints(lab.serving, now=NOW + 60) == (0, [])
    lab.sagemaker.endpoints[NAME]["EndpointStatus"] = "Creating"
    for status, removed in (("Creating", 0), ("InService", 1)):
        lab.sagemaker.endpoints[NAME]["EndpointStatus"] = status
        swept, (error,) = sweep_endpoints(lab.serving, now=NOW + 3000)
        assert (swept, type(error)) == (removed, EndpointOverdue)
        assert f"{NAME} was due 1836 s ago and is {status}" in str(error)
    lab.deploy()
    del lab.sagemaker.endpoints[NAME]
    assert sweep_endpoints(lab.serving, now=NOW + 600) == (0, [])  # `deploy` may still create it
    assert sweep_endpoints(lab.serving, now=NOW + CREATED_WITHIN_SECONDS) == (1, [])
    assert all(set(kept) == {"traindyno--mine"} for kept in lab.sagemaker.kept.values())


def test_an_unreadable_or_unendable_endpoint_keeps_no_other() -> None:
    lab = MemoryServing()
    names = [lab.deploy(name=f"{NAME}-{number}") for number in range(3)]
    lab.deploy(name=f"{NAME}-lost")
    del lab.sagemaker.endpoints[f"{NAME}-lost"]
    for name in (names[0], f"{NAME}-lost"):
        lab.objects.contents[deployment_key(name)] = b"{}"
    lab.sagemaker.refuse("DeleteEndpoint", "AccessDeniedException", "not authorized", names[1])
    _, errors = sweep_endpoints(lab.serving, now=NOW + 4000)
    assert set(lab.sagemaker.endpoints) == {names[1]}
    assert [type(error).__name__ for error in errors] == ["ClientError", "StoredDocumentDamaged"]


def test_a_lab_is_kept_by_endpoints_outliving_it() -> None:
    lab = MemoryServing()
    lab.deploy()
    assert names_in_use(lab.serving, now=NOW) == []
    copying, starting = (lab.deploy(name=f"{NAME}-{end}") for end in ("new", "starting"))
    lab.sagemaker.add("traindyno--mine", status="Creating")
    del lab.sagemaker.endpoints[copying]
    lab.sagemaker.endpoints[starting]["EndpointStatus"] = "Creating"
    assert names_in_use(lab.serving, now=NOW) == [copying, starting]
    lab.sagemaker.endpoints[starting]["EndpointStatus"] = "InService"
    assert remove_all(lab.serving) == 3
    assert set(lab.sagemaker.endpoints) == {"traindyno--mine"}
