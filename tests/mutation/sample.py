"""Which mutants of the core are tried: a seeded sample, or all of a file."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.mutants import Mutant, find_mutants

CORE = "traindyno/core"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``key`` holds a digest of the file, so that a result counts for this content only."""

    file: str
    mutant: Mutant
    key: str

    @property
    def text(self) -> str:
        mutant = self.mutant
        return f"{self.file}:{mutant.line} {mutant.function}: {mutant.before} → {mutant.after}"

    @property
    def name(self) -> str:
        """Without the line, so that a reason outlives an edit above it."""
        return f"{self.file} {self.mutant.function}: {self.mutant.before} → {self.mutant.after}"


def sample(root: Path, count: int, seed: int) -> list[Case]:
    """``count`` mutants of the core, each ranked by its own digest: an edit elsewhere keeps the others."""
    cases = [case for path in sorted((root / CORE).rglob("*.py")) for case in _cases(root, path)]
    return sorted(cases, key=lambda case: _digest(f"{seed} {case.name} {case.mutant.path}"))[:count]


def cases_at(root: Path, place: str) -> list[Case]:
    """Every mutant of ``FILE`` or ``FILE:LINE``."""
    file, _, line = place.partition(":")
    return [case for case in _cases(root, root / file) if not line or case.mutant.line == int(line)]


def _cases(root: Path, path: Path) -> list[Case]:
    source, file = path.read_text(), path.relative_to(root).as_posix()
    return [
        Case(file=file, mutant=mutant, key=f"{file} {_digest(source)[:12]} {mutant.path} {mutant.after}")
        for mutant in find_mutants(source)
    ]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
