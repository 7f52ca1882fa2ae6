"""`traindyno doctor`: what is missing on this machine or in an AWS account, and what to do about
it.
"""

import json
from pathlib import Path
from typing import Annotated

import boto3
import typer

from traindyno.api.checkout import require_checkout
from traindyno.api.suite_text import InputFileInvalid
from traindyno.cli.inputs.doctor_checks import (
    DEFAULT_QUALIFIER,
    Check,
    check_account,
    check_machine,
)
from traindyno.cli.lab_choice import LabOption, ProfileOption, RegionOption
from traindyno.cli.option_rules import need, with_rules
from traindyno.cli.output import STANDARD_OUTPUT, tell
from traindyno.core.costs.quantity_text import share_text
from traindyno.core.lab_names import DEFAULT_LAB

QUALIFIER_CONTEXT = "@aws-cdk/core:bootstrapQualifier"


@with_rules(
    need(
        "lab",
        "region",
        "profile",
        option="aws",
        why="without it only this machine is checked",
    )
)
def doctor(
    aws: Annotated[
        bool, typer.Option("--aws", help="Check the AWS account too; nothing in it is changed.")
    ] = False,
    noise: Annotated[
        bool,
        typer.Option(
            "--noise",
            help="Also time five equal runs, half a minute, and keep by how much they differ: "
            "suites with --local assume it of single runs, in place of 12 %.",
        ),
    ] = False,
    lab: LabOption = DEFAULT_LAB,
    region: RegionOption = None,
    profile: ProfileOption = None,
) -> None:
    """Check this machine, and with --aws the account, for what a lab needs.

    Exit status 1 if something is missing; each line of it says what to do.
    """
    checks = [*check_machine(Path.cwd())]
    if noise:
        checks.append(_noise())
    if aws:
        session = boto3.Session(profile_name=profile, region_name=region)
        checks += check_account(
            lambda service: session.client(
                service, region_name="us-east-1" if service == "pricing" else None
            ),  # type: ignore[call-overload]
            region=session.region_name,
            lab=lab,
            qualifier=bootstrap_qualifier(Path.cwd()),
        )
    for check in checks:
        STANDARD_OUTPUT.print(line_of(check), soft_wrap=True)
    if any(check.advice for check in checks):
        raise typer.Exit(1)


def _noise() -> Check:
    require_checkout("traindyno doctor --noise")
    from localcloud import run_repeats  # noqa: PLC0415  # the wheel lacks it
    from localcloud.home import Home  # noqa: PLC0415

    home = Home.from_environment()
    measured = [run_repeats.measure(tell=tell)]
    run_repeats.keep(home, run_repeats.DOCTOR, measured)
    now = share_text(run_repeats.scatter_in(measured))
    with_earlier = share_text(run_repeats.measured_share(home))
    return Check(
        subject="scatter of single runs",
        found=f"{now} now; suites with --local assume {with_earlier}, with earlier ones",
    )


def bootstrap_qualifier(folder: Path) -> str:
    """The qualifier in the folder's cdk.json, which `cdk deploy` uses, or the CDK's own.

    Raises InputFileInvalid.
    """
    path = folder / "cdk.json"
    if not path.is_file():
        return DEFAULT_QUALIFIER
    try:
        context = json.loads(path.read_text(encoding="utf-8")).get("context", {})
    except (ValueError, AttributeError) as error:
        raise InputFileInvalid(f"{path}: the text is no JSON object: {error}") from error
    return str(context.get(QUALIFIER_CONTEXT, DEFAULT_QUALIFIER))


def line_of(check: Check) -> str:
    mark = "ok     " if check.advice is None else "missing"
    what_to_do = f"\n        → {check.advice}" if check.advice else ""
    return f"{mark} {check.subject}: {check.found}{what_to_do}"
