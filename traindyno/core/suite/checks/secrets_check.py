"""Find what looks like a secret in a suite or a job, since many people read suites and descriptions
of jobs.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from traindyno.core.errors import Problem

# What a value shows by itself: the prefixes of the tokens of well-known services, and addresses
# with a password.
KINDS = {
    "a Hugging Face token": re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{20,}"),
    "an AWS access key": re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{16}\b"),
    "a GitHub token": re.compile(
        r"(?<![A-Za-z0-9])(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{20,})"
    ),
    "a bearer token": re.compile(r"\bbearer\s+[A-Za-z0-9._~+/\-]{16,}", re.IGNORECASE),
    "an API key": re.compile(r"\bsk-[A-Za-z0-9_\-]{20,}"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"),
    "an address with a password": re.compile(
        r"[A-Za-z][A-Za-z0-9+.\-]*://[^\s/?#@:]*:(?!\d{1,5}/)[^\s@]+@"
    ),
}
# The sections of a suite, and of a job, whose names say what a value is.
NAMED_SECTIONS = ("environment", "hyperparameters")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Ends of a name's last word, as singulars; in DB_PASSWD and in PGPASSWORD.
PASSWORDS = ("password", "passwd", "passphrase", "passcode", "credential", "secret")
# They are no secrets alone: PWD is a folder, and a key is often a name.
PASSWORDS_AFTER_A_WORD = ("pwd", "pw", "pass")
KEYS_AFTER = ("api", "access", "secret", "private", "account", "auth", "signing")
# Services make them; a person can choose the others.
TOKENS = ("token", "jwt", "pat", "apikey", "accesskey", "secretkey")
# Shorter values are names, such as the names of special tokens.
TOKEN_CHARACTERS = 16
SPECIAL_TOKEN = re.compile(r"[<\[].*[>\]]")
# Flags and counts.
NO_SECRET = re.compile(r"|true|false|none|null|yes|no|on|off|-?\d{1,3}", re.IGNORECASE)
# ``password=…``, ``"password": "…"`` and ``--password …`` inside a text.
ASSIGNMENT = re.compile(
    r"""(?:(?P<name>[A-Za-z][\w.\-]*)["']?\s*[=:]|--(?P<option>[A-Za-z][\w.\-]*)\s)\s*["']?(?P<value>[^\s"'&;,})\]]+)"""
)
ADVICE = (
    "keep it in AWS Secrets Manager. For a gated model, give the secret's ARN as "
    "workload.hub_token_secret; a script of your own can read the secret itself"
)


def check_secrets(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Check a suite's document before anything else reads it. A message never repeats the value."""
    for path, kind in find_secrets(document):
        yield Problem(path=path, message=f"this looks like {kind}; {ADVICE}")


def find_secrets(
    value: Any, path: str = "", *, name: str | None = None
) -> Iterator[tuple[str, str]]:
    """The path and the kind of each text or number that looks like a secret.

    ``name`` is the name of the variable or argument with this value, or None outside of
    NAMED_SECTIONS, where a name says nothing.
    """
    match value:
        case Mapping():
            for key, inner in value.items():
                place = f"{path}.{key}" if path else str(key)
                yield from find_secrets(inner, place, name=_inner_name(name, str(key)))
        case list() | tuple():
            for index, inner in enumerate(value):
                yield from find_secrets(inner, f"{path}[{index}]", name=name)
        case str():
            kind = secret_kind(value, name=name)
            if kind:
                yield path, kind
        case int() | float() if (
            not isinstance(value, bool) and name is not None and is_secret(name, str(value))
        ):
            yield path, "a secret"


def secret_kind(text: str, *, name: str | None = None) -> str | None:
    """What the text looks like, by itself and by its name; None for no secret."""
    kind = next((kind for kind, pattern in KINDS.items() if pattern.search(text)), None)
    if kind is None and name is not None and (is_secret(name, text) or _assigns_secret(text)):
        return "a secret"
    return kind


def is_secret(name: str, text: str) -> bool:
    """Whether a variable or argument of this name with this value holds a secret."""
    words = _words(name)
    if not words or NO_SECRET.fullmatch(text.strip()) or text.startswith("arn:"):
        return False
    if _is_password(words):
        return True
    is_long = (
        len(text) >= TOKEN_CHARACTERS and " " not in text and not SPECIAL_TOKEN.fullmatch(text)
    )
    return _is_token(words) and is_long


def _words(name: str) -> list[str]:
    return [word.lower() for word in WORD.findall(name)]


def _is_password(words: list[str]) -> bool:
    return words[-1].removesuffix("s").endswith(PASSWORDS) or (
        len(words) > 1 and words[-1] in PASSWORDS_AFTER_A_WORD
    )


def _is_token(words: list[str]) -> bool:
    return words[-1].endswith(TOKENS) or (
        words[-1] == "key" and len(words) > 1 and words[-2] in KEYS_AFTER
    )


def _assigns_secret(text: str) -> bool:
    return any(
        is_secret(assignment["name"] or assignment["option"], assignment["value"])
        for assignment in ASSIGNMENT.finditer(text)
    )


def _inner_name(outer: str | None, key: str) -> str | None:
    """A part of what has a secret's name has this name too."""
    if outer is None:
        return key if key.partition(".")[0] in NAMED_SECTIONS else None
    words = _words(outer)
    return outer if words and (_is_password(words) or _is_token(words)) else key
