"""Finds what looks like a secret in a suite: suites, executions' inputs and jobs' descriptions are read by many."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from traindyno.core.errors import Problem

# The prefixes of the tokens of well-known services.
TOKENS = {
    "a Hugging Face token": re.compile(r"\bhf_[A-Za-z0-9]{20,}"),
    "an AWS access key": re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{16}\b"),
    "a GitHub token": re.compile(r"\b(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{20,})"),
    "an API key": re.compile(r"\bsk-[A-Za-z0-9_\-]{20,}"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"),
}
SECRET_NAME = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|API_KEY|ACCESS_KEY)$", re.IGNORECASE)
# Shorter values are names such as those of special tokens.
SECRET_CHARACTERS = 16
ADVICE = (
    "keep it in AWS Secrets Manager. For a gated model, give the secret's ARN as workload.hub_token_secret;"
    " a script of your own can read the secret itself"
)


def check_secrets(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Check a suite's document before anything else reads it. A message never repeats the value."""
    yield from _check("", document)


def _check(path: str, value: Any) -> Iterator[Problem]:
    match value:
        case str():
            kind = next((name for name, pattern in TOKENS.items() if pattern.search(value)), None)
            kind = kind or ("a secret" if _is_secret_variable(path, value) else None)
            if kind:
                yield Problem(path=path, message=f"this looks like {kind}; {ADVICE}")
        case Mapping():
            for name, inner in value.items():
                yield from _check(f"{path}.{name}" if path else str(name), inner)
        case list() | tuple():
            for index, inner in enumerate(value):
                yield from _check(f"{path}[{index}]", inner)


def _is_secret_variable(path: str, value: str) -> bool:
    section, _, name = path.rpartition(".")
    is_long = len(value) >= SECRET_CHARACTERS and not value.startswith("arn:") and " " not in value
    return section.endswith("environment") and bool(SECRET_NAME.search(name)) and is_long
