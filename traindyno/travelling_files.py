"""Which files of a folder leave this machine: one rule for a script's source and for data, a model
or a channel.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import translate
from pathlib import Path

from pathspec.patterns.gitignore import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

IGNORE_FILE = ".gitignore"
SHOWN_NAMES = 6
CACHES = {"__pycache__", "node_modules"}
# Names of files that hold a secret by convention. Tokenizers have files such as tokens.txt, which
# are none.
CREDENTIALS = (
    ".env*",
    "*.env",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    "*htpasswd",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*.pem",
    "*.key",
    "*.ppk",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "kubeconfig",
    "credentials",
    "credentials.*[!y]",
    "*accesskeys.csv",
    "rootkey.csv",
    "token",
    "token.txt",
    "token.json",
    "*.token",
    "*[-_]token",
    "*[-_]token.txt",
    "*[-_]token.json",
    "secret.[!p]*",
    "secrets.[!p]*",
    "client_secret*.json",
    "service[-_]account*.json",
    "application_default_credentials.json",
)
IS_CREDENTIAL = re.compile("|".join(map(translate, CREDENTIALS)), re.IGNORECASE)


# What Trainer, FSDP and DeepSpeed write beside a model, to go on with its training
OF_TRAINING = re.compile(
    r"(optimizer|scheduler|scaler)\.(pt|bin)|rng_state\w*\.pth|training_args\.bin"
    r"|trainer_state\.json|(global_step|optimizer_)\d+/.+"
)


class Reason(StrEnum):
    """Why a file or folder stays here, in the words of the sentence that counts them."""

    CREDENTIAL = "named like a credential"
    HIDDEN = "hidden"
    IGNORED = f"named by {IGNORE_FILE}"
    CACHE = "of caches"
    TRAINING = "of the training that made the model"
    LINK = "not followed as links"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Travelling:
    """Files that leave this machine, and files that stay.

    ``files`` has them by their names in the folder. ``left_out`` has the reason for each name; a
    folder's name ends with a slash.
    """

    files: Mapping[str, Path]
    left_out: Mapping[str, Reason] = field(default_factory=dict)

    def sentence(self) -> str:
        """How many files of what size travel, and how many are left out, with some of their
        names.
        """
        size = sum(path.stat().st_size for path in self.files.values())
        size_text = f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 2**10:.1f} KiB"
        count = "1 file" if len(self.files) == 1 else f"{len(self.files)} files"
        by_reason = {
            reason: [name for name, why in self.left_out.items() if why is reason]
            for reason in Reason
        }
        parts = [
            f"{len(names)} {reason} ({listed(names)})"
            for reason, names in by_reason.items()
            if names
        ]
        left_out = f"; left out: {', '.join(parts)}" if parts else ""
        return f"{count} ({size_text}) {'travels' if len(self.files) == 1 else 'travel'}{left_out}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ignored:
    """The rules of one ignore file, which hold for everything below its folder."""

    folder: Path
    rules: Sequence[GitIgnoreSpecPattern]

    def names(self, path: Path, *, is_folder: bool) -> bool | None:
        """Whether the last rule that matches the path leaves it out; None if no rule matches.

        A rule that matches a folder also matches what is below it. The walk has asked about the
        folder, and as in git a rule of a lower file may have taken it back, so that only matches of
        the whole path count here.
        """
        name = path.relative_to(self.folder).as_posix() + ("/" if is_folder else "")
        for rule in reversed(self.rules):
            matches = rule.regex.finditer(name) if rule.regex else ()
            if any(match.lastindex is None or match.end() == len(name) for match in matches):
                return rule.include
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """A walk through ``root``. ``allowed`` are paths that travel whatever the rule says of them."""

    root: Path
    allowed: Collection[Path]
    is_source: bool

    def entries(
        self, folder: Path, above: tuple[_Ignored, ...], inherited: Reason | None = None
    ) -> Iterator[tuple[str, Path, Reason | None]]:
        """Files, and folders that are left out whole.

        ``inherited`` is why the folder itself is left out.
        """
        try:
            children = sorted(folder.iterdir())
        except OSError:
            yield f"{self._name(folder)}/", folder, Reason.UNREADABLE
            return
        ignored = (*above, *_ignored_in(folder))
        for path in children:
            is_folder = path.is_dir() and not path.is_symlink()
            reason = inherited or self._reason(path, ignored, is_folder=is_folder)
            reason = None if path in self.allowed else reason
            if not is_folder:
                yield self._name(path), path, reason
            elif reason is None or any(path in other.parents for other in self.allowed):
                yield from self.entries(path, ignored, reason)
            else:
                yield f"{self._name(path)}/", path, reason

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _reason(
        self, path: Path, ignored: tuple[_Ignored, ...], *, is_folder: bool
    ) -> Reason | None:
        if not is_folder and IS_CREDENTIAL.match(path.name):
            return Reason.CREDENTIAL
        if self.is_source and (path.name in CACHES or path.suffix == ".pyc"):
            return Reason.CACHE
        if path.name.startswith("."):
            return Reason.HIDDEN
        answers = (rules.names(path, is_folder=is_folder) for rules in reversed(ignored))
        return (
            Reason.IGNORED
            if next((answer for answer in answers if answer is not None), False)
            else None
        )


def find_travelling(folder: Path, *, allowed: Collection[Path] = (), is_source: bool) -> Travelling:
    """The files below ``folder`` that may leave this machine, in the order of their paths.

    For a source also the ignore files of the repository around it count, and caches are left out.
    Data are often ignored by the repository on purpose, so for them only the ignore files in their
    own folder count. ``allowed`` are paths as ``allowed_paths`` returns them.
    """
    root = folder.resolve()
    above = tuple(_ignored_around(root)) if is_source else ()
    entries = list(_Walk(root=root, allowed=allowed, is_source=is_source).entries(root, above))
    own = {path for _, path, reason in entries if reason is None and not path.is_symlink()}
    reasons = {name: reason or _link_reason(path, own, allowed) for name, path, reason in entries}
    left_out = {name: reason for name, reason in reasons.items() if reason}
    files = {name: path for name, path, _ in entries if name not in left_out and path.is_file()}
    in_order = sorted(files, key=lambda name: name.split("/"))
    return Travelling(files={name: files[name] for name in in_order}, left_out=left_out)


def _link_reason(path: Path, own: Collection[Path], allowed: Collection[Path]) -> Reason | None:
    """Why a link stays here. Links to folders are not followed.

    ``own`` are the files that travel and are no links.
    """
    if not path.is_symlink():
        return None
    is_safe = path in allowed or Path(os.path.realpath(path)) in own
    return None if is_safe and not path.is_dir() else Reason.LINK


def travelling_data(
    local: Path, *, allowed: Collection[Path] = (), is_pretrained: bool = False
) -> Travelling:
    """The files of a folder of data; a file that is named itself always travels.

    ``is_pretrained`` says that it is a model or a tokenizer that a built-in task loads.
    """
    if local.is_file():
        return Travelling(files={local.name: local})
    travelling = find_travelling(local, allowed=allowed, is_source=False)
    unused = {
        name: Reason.TRAINING
        for name, path in travelling.files.items()
        if is_pretrained and OF_TRAINING.fullmatch(name) and path not in allowed
    }
    files = {name: path for name, path in travelling.files.items() if name not in unused}
    return Travelling(files=files, left_out={**travelling.left_out, **unused})


def allowed_paths(paths: Iterable[str | os.PathLike[str]]) -> frozenset[Path]:
    """The paths as a walk meets them: absolute, with all links followed but a last one."""
    return frozenset(path.parent.resolve() / path.name for path in map(Path, paths))


def _ignored_in(folder: Path) -> Iterator[_Ignored]:
    path = folder / IGNORE_FILE
    if path.is_file():
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        yield _Ignored(folder=folder, rules=[rule for line in lines for rule in _rules_of(line)])


def _rules_of(line: str) -> Iterator[GitIgnoreSpecPattern]:
    """The rule of a line, if the line is a pattern; git skips other lines too."""
    with suppress(GitIgnorePatternError):
        yield GitIgnoreSpecPattern(line)


def _ignored_around(folder: Path) -> Iterator[_Ignored]:
    """The rules above ``folder``, up to the top of its repository; none of a repository that
    ignores the folder.
    """
    tops = [parent for parent in folder.parents if (parent / ".git").exists()]
    if (folder / ".git").exists() or not tops:
        return
    for parent in reversed(folder.parents[: folder.parents.index(tops[0]) + 1]):
        for rules in _ignored_in(parent):
            if not rules.names(folder, is_folder=True):
                yield rules


def listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more
