"""What of a folder may leave this machine: generated trees, git's own reading of ignore files, and
the sentence.
"""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from traindyno.travelling_files import allowed_paths, find_travelling, travelling_data

PLAIN = (
    "train.py",
    "data.csv",
    "tokens.txt",
    "tokenizer.json",
    "secret_garden.txt",
    "keys.py",
    "a b.txt",
    "token.py",
)
PLAIN_FOLDERS = ("src", "part-1", "tokens", "keys", "data.d")
CREDENTIALS = (
    ".env",
    ".env.local",
    "prod.env",
    ".netrc",
    "id_rsa",
    "id_ed25519.pub",
    "server.PEM",
    "tls.key",
    "hf_token",
    "token.txt",
    "secrets.yaml",
    "credentials.json",
    "service-account-1.json",
    "kubeconfig",
)
HIDDEN = (".hidden", ".DS_Store", ".cache.json")
HIDDEN_FOLDERS = (".aws", ".git", ".ssh", ".config")
IGNORED = ("out.log", "private.csv")
IGNORED_FOLDERS = ("build", "wandb")
RULES = "*.log\n/private.csv\nsrc/**/private.csv\n**/private.csv\nbuild/\n# a comment\n!\n\nwandb\n"


def grow(
    folder: Path,
    chance: random.Random,
    kept: set[Path],
    left: set[Path],
    *,
    depth: int = 3,
    stays: bool = False,
) -> None:
    """Fills a folder; each file is noted as one that travels, or as one that stays here."""
    folder.mkdir(exist_ok=True)
    for name in chance.sample(PLAIN, 3):
        note(folder / name, kept if not stays else left)
    for name in (chance.choice(CREDENTIALS), chance.choice(HIDDEN), chance.choice(IGNORED)):
        note(folder / name, left)
    if depth:
        grow(
            folder / chance.choice(PLAIN_FOLDERS), chance, kept, left, depth=depth - 1, stays=stays
        )
        grow(
            folder / chance.choice(HIDDEN_FOLDERS), chance, kept, left, depth=depth - 1, stays=True
        )
        grow(
            folder / chance.choice(IGNORED_FOLDERS), chance, kept, left, depth=depth - 1, stays=True
        )


def note(path: Path, files: set[Path]) -> None:
    path.write_text(path.name)
    files.add(path)


def link(folder: Path, chance: random.Random, kept: set[Path], left: set[Path]) -> None:
    """Links to a file that travels, to one that stays, out of the folder, to a folder, to nothing,
    and to itself.
    """
    outside = folder.parent / "outside.txt"
    outside.write_text("private")
    inner = folder / "links"
    inner.mkdir()
    (inner / "fine").symlink_to(chance.choice(sorted(kept)))
    for name, target in {
        "stays": chance.choice(sorted(left)),
        "out": outside,
        "relative": Path("../../outside.txt"),
        "folder": folder,
        "nothing": folder / "nothing",
        "loop": inner / "loop",
        "twice": inner / "out",
    }.items():
        (inner / name).symlink_to(target)
        left.add(inner / name)
    kept.add(inner / "fine")


def names(paths: set[Path], folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in paths}


@pytest.mark.parametrize("is_source", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_nothing_hidden_ignored_secret_or_linked_travels_and_all_else_does(
    tmp_path: Path, seed: int, is_source: bool
) -> None:
    chance = random.Random(seed)
    folder = tmp_path / "folder"
    kept: set[Path] = set()
    left: set[Path] = set()
    grow(folder, chance, kept, left)
    link(folder, chance, kept, left)
    (folder / ".gitignore").write_text(RULES)
    travelling = find_travelling(folder, is_source=is_source)
    assert set(travelling.files) == names(kept, folder)
    for name in names(left, folder):
        assert any(
            name == out or (name.startswith(out) and out.endswith("/"))
            for out in travelling.left_out
        ), name


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge")
@pytest.mark.parametrize("seed", range(20))
def test_ignore_files_are_read_as_git_reads_them(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    folders = [tmp_path / part for part in ("", "a", "b", "a/b", "a/c", "b/a/b")]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("x.txt", "y.txt", "z.csv"):
            (folder / name).write_text("")
    patterns = [
        "*.txt",
        "!x.txt",
        "/y.txt",
        "b/",
        "!b/",
        "a/*",
        "**/c",
        "*",
        "!*/",
        "!z.csv",
        "/a/b",
        "z.*",
        "!a/b/y.txt",
        "a/**/x.txt",
        "[xy].*",
    ]
    for folder in chance.sample(folders, 3):
        (folder / ".gitignore").write_text("\n".join(chance.sample(patterns, 3)) + "\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    listed = ["git", "ls-files", "--others", "--exclude-standard", "-z"]
    answer = subprocess.run(listed, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    expected = {name for name in answer.split("\0") if name and not name.endswith(".gitignore")}
    assert set(find_travelling(tmp_path, is_source=False).files) == expected


def test_a_source_obeys_its_repository_and_data_do_not(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.ckpt\n/ignored/\n")
    for folder in (tmp_path / "src", tmp_path / "ignored"):
        folder.mkdir()
        (folder / "old.ckpt").write_text("")
        (folder / "train.py").write_text("")
    assert set(find_travelling(tmp_path / "src", is_source=True).files) == {"train.py"}
    assert set(find_travelling(tmp_path / "src", is_source=False).files) == {"train.py", "old.ckpt"}
    # It is named in spite of the rule.
    assert set(find_travelling(tmp_path / "ignored", is_source=True).files) == {
        "train.py",
        "old.ckpt",
    }


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (".env.example", {".env.example"}),
        (".aws/config", {".aws/config"}),
        (".aws", {".aws/config", ".aws/notes.txt"}),  # its credentials are not named
        ("build", {"build/a.txt"}),
        ("link", {"link"}),
        ("folder", set()),  # a link, too
    ],
)
def test_only_allowed_files_travel_beside_the_rest(
    tmp_path: Path, wanted: str, expected: set[str]
) -> None:
    folder = tmp_path / "folder"
    for name in (
        ".env",
        ".env.example",
        ".aws/config",
        ".aws/notes.txt",
        ".aws/credentials",
        ".aws/.env",
        "build/a.txt",
        "train.py",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (tmp_path / "outside").write_text("")
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "folder").symlink_to(tmp_path)
    (folder / ".gitignore").write_text("build/\n")
    allowed = allowed_paths([folder / wanted])
    assert set(find_travelling(folder, allowed=allowed, is_source=False).files) == {
        "train.py",
        *expected,
    }


def test_a_folder_without_such_files_keeps_its_order_and_thereby_its_digest(tmp_path: Path) -> None:
    for name in (
        "a/b.csv",
        "a.csv",
        "a-b/c.csv",
        "B.csv",
        "a/B/x",
        "node_modules/x.js",
        "__pycache__/x.pyc",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    before = [
        path.relative_to(tmp_path).as_posix()
        for path in sorted(tmp_path.rglob("*"))
        if path.is_file()
    ]
    assert list(travelling_data(tmp_path).files) == before


def test_the_sentence_counts_travelling_and_remaining_files_with_some_names(tmp_path: Path) -> None:
    for name in (".a", ".b", ".c", ".d", ".e", ".f", ".env", "out.log", "train.py"):
        (tmp_path / name).write_text("x" * 1536)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / ".gitignore").write_text("*.log\n")
    assert find_travelling(tmp_path, is_source=True).sentence() == (
        "1 file (1.5 KiB) travels; left out: 1 named like a credential (.env), 7 hidden (.a, .b, "
        ".c, .d, .e, .f and 1 more), 1 named by .gitignore (out.log), 1 of caches (__pycache__/), "
        "1 not followed as links (link)"
    )
    (tmp_path / "data").mkdir()
    for name in ("x", "y"):
        (tmp_path / "data" / name).write_text("x" * 2**20)
    assert travelling_data(tmp_path / "data").sentence() == "2 files (2.0 MiB) travel"
    assert (
        travelling_data(tmp_path / ".env").sentence() == "1 file (1.5 KiB) travels"
    )  # it was named itself
