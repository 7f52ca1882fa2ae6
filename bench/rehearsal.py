"""Rehearse a pack at full size: ``python -m bench.rehearsal albert-scaling``.

Every figure is simulated.
"""

import json
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.own_cloud import OwnCloud, own_cloud
from bench.rehearsal_findings import differences
from bench.rehearsal_traces import PACKS, PRICES
from localcloud import cloud as local_cloud
from localcloud import deployment
from localcloud.home import REPO_ROOT

SUITES = REPO_ROOT / "suites"
QUOTA = 64
SERVICE_OPTIONS = ("--simulate-all", "--grant-quotas", str(QUOTA), "--speed-up", "3000")


def main(packs: Sequence[str]) -> int:
    unknown = [name for name in packs if name not in PACKS]
    if unknown:
        tell(f"expected packs of {', '.join(PACKS)}, got {', '.join(unknown)}")
        return 2
    # A time limit's signal ends the local cloud too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with own_cloud() as cloud:
        start(cloud, packs or tuple(PACKS))
        wrong = [line for pack in packs or PACKS for line in show(cloud, pack)]
        local_cloud.stop(cloud.home)
    for line in wrong:
        tell(line)
    return 1 if wrong else 0


def show(cloud: OwnCloud, pack: str) -> list[str]:
    """Prints what a rehearsal found, and returns what differs from the posts' own tables."""
    report = rehearse(cloud, pack)
    for line in report_lines(pack, report):
        tell(line)
    return [*differences(pack, findings(report))]


def start(cloud: OwnCloud, packs: Sequence[str]) -> None:
    """A local cloud that plays the packs' traces at the posts' prices, with quotas for all of
    them.
    """
    options = (*SERVICE_OPTIONS, *write_traces(cloud.folder, packs))
    ports = local_cloud.start(cloud.home, tell=lambda _: None, service_options=options)
    deployment.deploy(cloud.home, ports, tell=lambda _: None)


def write_traces(folder: Path, packs: Sequence[str]) -> tuple[str, ...]:
    """The options that make a local SageMaker service play the packs' traces at the posts'
    prices.
    """
    traces = folder / "traces"
    traces.mkdir()
    for pack in packs:
        for document in PACKS[pack]():
            (traces / f"{pack}-{document['name']}.json").write_text(json.dumps(document))
    prices = folder / "prices.json"
    prices.write_text(json.dumps(PRICES))
    return "--traces", str(traces), "--prices", str(prices)


def rehearse(cloud: OwnCloud, pack: str, suite: Path | None = None) -> Any:
    """The report's data of one execution."""
    tell(f"{pack}: every figure below is simulated, from traces made of published figures")
    began = time.monotonic()
    suite = suite or SUITES / pack / "rehearsal.yaml"
    report = cloud.run_suite(suite, f"rehearsal-{pack}").json()
    tell(f"{pack}: {len(report['results'])} simulated runs in {time.monotonic() - began:.0f} s")
    return report


def findings(report: Any) -> dict[str, str]:
    """The finding of each claim, by its id."""
    return {row["claim"]["claim_id"]: row["finding"] for row in report["claims"]}


def report_lines(pack: str, report: Any) -> Iterator[str]:
    yield (
        f"{pack}: simulated: {report['verdict']['is_simulated']}; recommended: "
        f"{_recommended(report)}"
    )
    for row in report["claims"]:
        measured = row["measured"]
        value = "none" if measured is None else f"{measured['mean']:.5g} (simulated)"
        claim = row["claim"]
        yield (
            f"  {claim['claim_id']}: published {claim['published']:.5g}, measured {value}: "
            f"{row['finding']}"
        )


def _recommended(report: Any) -> str:
    labels = {cell["cell_id"]: cell["label"] for cell in report["cells"]}
    return str(labels.get(report["verdict"]["recommended"], "no cell"))


def tell(message: str) -> None:
    sys.stdout.write(f"{message}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
