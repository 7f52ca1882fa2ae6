"""What the pages name exists: files, decisions, and the names of code in the lists for
contributors.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from traindyno.cli.main import commands

REPO_ROOT = Path(__file__).resolve().parents[2]
DECISIONS = REPO_ROOT / "docs" / "decisions"
PAGES = sorted(
    page
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "experiments/**/*.md",
        "tests/**/*.md",
        ".github/**/*.md",
    )
    for page in REPO_ROOT.glob(pattern)
)
# ARCHITECTURE.md and CONTRIBUTING.md are maps: each name that looks like a file is one of this
# repository.
MAPS = ("ARCHITECTURE.md", "CONTRIBUTING.md")
PACKAGES = tuple(sorted(path.parent.name for path in REPO_ROOT.glob("*/__init__.py")))
FOLDERS = (*PACKAGES, "docs", "images", "requirements", "suites")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
QUOTED = re.compile(r"`([^`\n]+)`")
FILE_NAME = re.compile(r"[\w<>./-]*(?:/|\.(?:json|md|py|txt|yaml))[\w<>./-]*")
PLACEHOLDER = re.compile(r"<\w+>")
# Objects in S3 and the folder of the local cloud's state: the code makes them.
MADE = ("code/", "models/", "runs/", "suites/<execution>", "transforms/", ".traindyno/")


def named(page: Path) -> str:
    return page.relative_to(REPO_ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_link_of_a_page_leads_to_a_file(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text()) if ":" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in (*MAPS, "CHANGELOG.md")], ids=named
)
def test_a_path_named_on_a_page_exists(page: Path) -> None:
    words = [word for text in QUOTED.findall(page.read_text()) for word in text.split()]
    paths = [
        word.rstrip(".,:")
        for word in words
        if word.startswith(tuple(f"{folder}/" for folder in FOLDERS))
    ]
    plain = [
        path for path in paths if re.fullmatch(r"[\w./-]+", path) and path != "suites/mine.yaml"
    ]
    assert [path for path in plain if not (REPO_ROOT / path).exists()] == []


@pytest.mark.parametrize("name", MAPS)
def test_every_file_named_in_a_map_exists(name: str) -> None:
    files = list(files_of(REPO_ROOT / name))
    assert len(files) > 50
    assert [
        file for file, folders in files if not any(exists(f"{folder}/{file}") for folder in folders)
    ] == []


def files_of(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Each name with the folders that it may be in: the root, ``traindyno``, and those of the names
    before it in its paragraph or its row of a table.
    """
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for block in re.split(r"\n\n|\n(?=\|)", text):
        folders = [".", "traindyno"]
        for file in filter(FILE_NAME.fullmatch, QUOTED.findall(block)):
            if not file.startswith(MADE):
                yield file, [*folders]
                folders += [
                    f"{base}/{Path(file).parent}"
                    for base in (".", "traindyno")
                    if exists(f"{base}/{file}")
                ]


def exists(path: str) -> bool:
    """With a placeholder, such as ``<state>``: whether there is a file for one of its values."""
    return (
        any(REPO_ROOT.glob(PLACEHOLDER.sub("*", path)))
        if "<" in path
        else (REPO_ROOT / path).exists()
    )


def test_the_tree_of_the_packages_matches_the_repository() -> None:
    (tree,) = re.findall(
        r"## Packages\n\n```\n(.*?)```", (REPO_ROOT / "ARCHITECTURE.md").read_text(), re.DOTALL
    )
    paths: list[str] = []
    above = [""]
    for line in tree.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        if depth <= 2:  # deeper lines continue the text of the line before
            names = line.split("  ")[depth].split()
            paths += ["/".join([*above[1 : depth + 1], name]) for name in names]
            above[depth + 1 :] = [names[0].rstrip("/")]
    assert [path for path in paths if not (REPO_ROOT / path).exists()] == []
    rooms = {
        path.name for path in (REPO_ROOT / "traindyno").iterdir() if (path / "__init__.py").exists()
    }
    assert rooms == {path.split("/")[1] for path in paths if re.fullmatch(r"traindyno/\w+/", path)}
    assert {path.split("/")[0] for path in paths} >= {*PACKAGES}


def test_names_of_code_in_contributors_lists_occur_in_a_file_of_the_item() -> None:
    text = (REPO_ROOT / "CONTRIBUTING.md").read_text().split("## Add a command")[1]
    items = [QUOTED.findall(item) for item in re.split(r"\n(?=\d\. |- |\n)", text)]
    sources = [
        [REPO_ROOT / name for name in item if re.fullmatch(r"[\w/.-]+\.py", name)] for item in items
    ]
    named_code = [
        (name, files)
        for item, files in zip(items, sources, strict=True)
        for name in item
        if files and re.fullmatch(r"\w*([A-Z]|\w_\w)\w*", name)
    ]
    assert len(named_code) > 30
    texts = {file: file.read_text() for files in sources for file in files}
    assert [
        name
        for name, files in named_code
        if not any(re.search(rf"\b{name}\b", texts[file]) for file in files)
    ] == []


def test_the_table_of_commands_has_each_command_of_the_program_once() -> None:
    text = (REPO_ROOT / "docs/README.md").read_text().split("## Commands")[1]
    listed = re.findall(r"^\| `traindyno ([a-z ]+[a-z])", text, re.MULTILINE)
    assert sorted(listed) == sorted(words_of(typer.main.get_command(commands)))


def words_of(command: Any, *words: str) -> Iterator[str]:
    """The words of each command of a group, such as ``local up``."""
    if not hasattr(command, "commands"):
        yield " ".join(words)
    for name, inner in getattr(command, "commands", {}).items():
        yield from words_of(inner, *words, name)


def test_the_readme_of_the_decisions_lists_each_of_them_once() -> None:
    listed = LINK.findall((DECISIONS / "README.md").read_text())
    assert sorted(listed) == sorted(
        path.name for path in DECISIONS.glob("*.md") if path.name != "README.md"
    )


def test_decisions_have_numbers_of_their_own_and_say_them_in_their_titles() -> None:
    pages = [path for path in DECISIONS.glob("*.md") if path.name != "README.md"]
    numbers = [int(path.name[:4]) for path in pages]
    assert len(set(numbers)) == len(numbers)
    titles = [re.match(r"# (\d+)\. \S", path.read_text()) for path in pages]
    assert [int(title[1]) if title else None for title in titles] == numbers


def test_a_decision_named_by_its_number_exists() -> None:
    numbers = {int(path.name[:4]) for path in DECISIONS.glob("0*.md")}
    sources = [path for package in PACKAGES for path in (REPO_ROOT / package).rglob("*.py")]
    missing = [
        f"{named(file)}: decision {number}"
        for file in [*PAGES, *sources]
        for number in re.findall(r"\bdecision (\d+)\b", file.read_text(), re.IGNORECASE)
        if int(number) not in numbers
    ]
    assert missing == []
