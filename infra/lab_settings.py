"""A lab's settings, from its file ``labs/LAB.toml`` and the context of the CDK.

The context selects the lab, the target and the checks.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any
from unicodedata import category

from cattrs.errors import BaseValidationError

from infra.images import Image
from traindyno.core.documents.converter import strict_converter
from traindyno.core.documents.problems import one_of, problems_of, unknown_field
from traindyno.core.lab_names import (
    LAB_NAME,
    LAB_NAME_RULE,
    LAB_TAG,
    NO_OTHER_PARTITION,
    OTHER_PARTITIONS,
)
from traindyno.sagemaker.job_settings import LabJobs, write_lab_jobs

KEY_ARN = (
    r"arn:aws:kms:[a-z0-9\-]+:[0-9]{12}:key/[A-Za-z0-9\-]+",
    "arn:aws:kms:<region>:<account>:key/<id>",
)
# For each setting, the pattern of its text or of each text in its list, and what is accepted.
PATTERNS = {
    "data_buckets": (r"[a-z0-9][a-z0-9.\-]{2,62}", "a bucket's name, such as my-data"),
    "data_keys": KEY_ARN,
    "subnets": (r"subnet-[0-9a-f]{8,}", "an id such as subnet-0123456789abcdef0"),
    "security_groups": (r"sg-[0-9a-f]{8,}", "an id such as sg-0123456789abcdef0"),
    "volume_key": KEY_ARN,
    "output_key": KEY_ARN,
    "hub_token_secrets": (
        r"arn:aws:secretsmanager:[a-z0-9\-]+:[0-9]{12}:secret:\S+",
        "arn:aws:secretsmanager:<region>:<account>:secret:<name>",
    ),
    "notify_email": (r"[^@\s]+@[^@\s]+", "an address such as me@example.com"),
    "permissions_boundary": (
        r"arn:aws:iam::([0-9]{12}|aws):policy/\S+",
        "arn:aws:iam::<account>:policy/<name>",
    ),
}
# Of a tag in SageMaker's API, beside letters, numbers and separators of any script
TAG_MARKS = "_.:/=+-@"
RESERVED_TAGS = ("aws:", "traindyno:")
LARGEST_VOLUME_GB = 16_384
# SageMaker takes 50; a job has four of the lab's own, an endpoint five.
MOST_TAGS = 45
# A function's variables may have 4,096 bytes; the other variables of the lab take 2,100 at most.
MOST_CHARACTERS = 1_900
CONTEXT = ("lab", "target", "rules", "lanes_at_once", "lane_concurrency")
CONVERTER = strict_converter(())


class LabSettingsInvalid(ValueError):
    """The file or the context of a lab has something that no lab can have."""


class Target(StrEnum):
    AWS = "aws"
    LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedConcurrency:
    """Numbers of parallel lanes, and of parallel runs in each lane, that replace the plan's."""

    lanes: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabFile:
    """The settings in ``labs/LAB.toml``, which docs/lab-in-aws.md describes.

    Empty text means none.
    """

    neuron: bool = False
    data_buckets: tuple[str, ...] = ()
    data_keys: tuple[str, ...] = ()
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    encrypt_traffic: bool = False
    isolate_network: bool = False
    volume_key: str = ""
    output_key: str = ""
    keep_results: bool = False
    termination_protection: bool = False
    volume_gb: int = LabJobs().volume_size_gb
    job_tags: Mapping[str, str] = field(default_factory=dict)
    hub_token_secrets: tuple[str, ...] = ()
    permissions_boundary: str = ""
    notify_email: str = ""

    @property
    def images(self) -> tuple[Image, ...]:
        """The images that are built at deployment."""
        return tuple(Image) if self.neuron else (Image.CPU, Image.EFA)

    @property
    def jobs(self) -> LabJobs:
        return LabJobs(
            subnet_ids=self.subnets,
            security_group_ids=self.security_groups,
            encrypts_traffic=self.encrypt_traffic,
            isolates_network=self.isolate_network,
            volume_key_arn=self.volume_key or None,
            output_key_arn=self.output_key or None,
            volume_size_gb=self.volume_gb,
            tags=self.job_tags,
            hub_token_secrets=self.hub_token_secrets,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabSettings:
    """What a synthesis has to know of its lab."""

    lab: str
    target: Target
    #: None lets each suite's plan decide.
    concurrency: FixedConcurrency | None
    #: Whether synthesis fails on any finding of the security rules, as `make check` asks for it.
    checks_rules: bool
    file: LabFile
    #: The settings that the file names, as JSON, or "" for a default. GuardLab compares them with
    #: the settings of the deployed lab.
    named: Mapping[str, str]

    @property
    def tags(self) -> Mapping[str, str]:
        """The tags of the lab's own resources; jobs and endpoints have theirs by request."""
        return {LAB_TAG: self.lab}


def read_lab_settings(
    context: Mapping[str, Any], *, labs: Path, region: str | None = None
) -> LabSettings:
    """Reads the settings of the lab that the context names.

    Args:
        context: The context of the CDK app.
        labs: The folder of the labs' files.
        region: The region of the deployment, if it is known.

    Raises:
        LabSettingsInvalid: The file or the context has something that no lab can have.
    """
    if region is not None and region.startswith(OTHER_PARTITIONS):
        raise LabSettingsInvalid(f"region {region}: expected {NO_OTHER_PARTITION}")
    lab = str(context.get("lab"))
    if not LAB_NAME.fullmatch(lab):
        raise LabSettingsInvalid(f"context lab={lab!r}: a lab's name is {LAB_NAME_RULE}")
    path = labs / f"{lab}.toml"
    misplaced = [setting.name for setting in fields(LabFile) if setting.name in context]
    if misplaced:
        raise LabSettingsInvalid(
            f"context {', '.join(misplaced)}: the settings of lab {lab} are in {path}, not in the "
            "context"
        )
    # The CDK's own names have a colon or an @
    for name in sorted(name for name in context.keys() - CONTEXT if not re.search("[:@]", name)):
        raise LabSettingsInvalid(str(unknown_field("context", name, CONTEXT)))
    target = Target(_chosen(context, "target", Target))
    # The local cloud's Step Functions doesn't read a Map's concurrency from its input.
    fixed = FixedConcurrency(
        lanes=_count(context, "lanes_at_once"), runs=_count(context, "lane_concurrency")
    )
    written = _read_toml(path)
    file = _structured(path, written)
    return LabSettings(
        lab=lab,
        target=target,
        concurrency=fixed if target is Target.LOCAL else None,
        checks_rules=_chosen(context, "rules", ("off", "on")) == "on",
        file=file,
        named={
            name: "" if getattr(file, name) == getattr(LabFile(), name) else json.dumps(value)
            for name, value in written.items()
        },
    )


def _read_toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise LabSettingsInvalid(
            f"no file {path}: expected the settings of the lab; an empty file means the defaults"
        )
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise LabSettingsInvalid(f"{path} is no TOML: {error}") from error


def _structured(path: Path, written: Mapping[str, Any]) -> LabFile:
    try:
        file = CONVERTER.structure(written, LabFile)
        problems = list(_problems(file))
    except BaseValidationError as error:
        problems = [str(problem) for problem in problems_of(error, "")]
    if problems:
        raise LabSettingsInvalid("; ".join(f"{path}: {problem}" for problem in problems))
    return file


def _problems(file: LabFile) -> Iterator[str]:
    for name, (pattern, accepted) in PATTERNS.items():
        value = getattr(file, name)
        texts = [value] if isinstance(value, str) and value else value
        for text in texts:
            if not re.fullmatch(pattern, text):
                is_secret = name == "hub_token_secrets"
                got = "a text that is not repeated here" if is_secret else repr(text)
                yield f"{name}: got {got}, expected {accepted}"
            if "alias/" in text:
                command = f"aws kms describe-key --key-id {text} --query KeyMetadata.Arn"
                yield (
                    f"{name}: IAM permissions do not accept an alias; find the key's ARN with: "
                    f"{command}"
                )
    for name, value in file.job_tags.items():
        if not _is_tag(name, value):
            yield (
                f"job_tags.{name}: got {value!r}, expected up to 128 and 256 characters, each a "
                f"letter, a digit, a space or one of {TAG_MARKS}, not aws:… or traindyno:…"
            )
    if len(file.job_tags) > MOST_TAGS:
        yield (
            f"job_tags: got {len(file.job_tags)} tags, expected at most {MOST_TAGS} beside the "
            "lab's own"
        )
    if bool(file.subnets) != bool(file.security_groups):
        present = "subnets" if file.subnets else "security_groups"
        yield f"{present}: expected both subnets and security_groups, or neither"
    if not 1 <= file.volume_gb <= LARGEST_VOLUME_GB:
        yield f"volume_gb: got {file.volume_gb}, expected an integer from 1 to {LARGEST_VOLUME_GB}"
    size = len(write_lab_jobs(file.jobs))
    if size > MOST_CHARACTERS:
        yield (
            f"the settings of jobs have {size} characters, expected at most {MOST_CHARACTERS}, "
            "because all variables of a function have 4 KB: give fewer or shorter job_tags, "
            "hub_token_secrets, subnets"
        )


def _is_tag(key: str, value: str) -> bool:
    return (
        1 <= len(key) <= 128
        and len(value) <= 256
        and not key.lower().startswith(RESERVED_TAGS)
        and all(mark in TAG_MARKS or category(mark)[0] in "LNZ" for mark in f"{key}{value}")
    )


def _chosen(context: Mapping[str, Any], name: str, accepted: Iterable[str]) -> str:
    """The choice of the context, which is the first accepted one by default."""
    choices = [*accepted]
    choice = str(context.get(name, choices[0]))
    if choice not in choices:
        raise LabSettingsInvalid(f"context {name}={choice!r}: expected {one_of(choices)}")
    return choice


def _count(context: Mapping[str, Any], name: str) -> int:
    text = str(context.get(name, 1))
    if not text.isdecimal() or int(text) < 1:
        raise LabSettingsInvalid(f"context {name}={text!r}: expected a whole number of at least 1")
    return int(text)
