"""Text of a job is text in each place where it is shown, whatever characters it holds."""

import csv
import io
import json
import random
from collections.abc import Callable
from html.parser import HTMLParser

import boto3
import pytest
from botocore.stub import ANY, Stubber
from markdown_it import MarkdownIt

from tests.unit.core.documents.test_visible_text import LETTERS, OBEYED
from traindyno.aws.notifications import SUBJECT_LENGTH, notify
from traindyno.cli.output import Terminal, markdown_table
from traindyno.core.documents.places import code_span, markdown_line, one_line
from traindyno.core.documents.problems import visible
from traindyno.report.markup import csv_text, element

# Character → what it does where it is not shown as text.
CHARACTERS = {
    "ESC": "\x1b]0;title\x07",
    "direction": "\u202egpj.exe",
    "script": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "link": "[click](http://evil.example) http://evil.example",
    "backtick": "`` ` ```",
    "pipe": "a | b |---|",
    "emphasis": "_a_ __b__ *c* ~~d~~ e_f",
    "heading": "# a",
    "item": "1. a",
    "formula": "=HYPERLINK(1)",
    "plus": "+1",
    "newline": "a\n\n# Heading\n- item",
    "tab": "\t=1",
    "surrogate": "\ud800",
    "accent": "é 測",
}


class Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, _attributes: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def in_terminal(text: str) -> None:
    sink = io.StringIO()
    Terminal(file=sink, width=4000, soft_wrap=True).print(f"value: {one_line(text)}.")
    assert OBEYED.search(sink.getvalue()) is None
    assert sink.getvalue().splitlines() == [f"value: {one_line(text)}."]


def in_html(text: str) -> None:
    page = Texts()
    page.feed(element("p", text, title=text))
    page.close()
    assert (page.tags, page.text) == (["p"], visible(text))
    assert OBEYED.search(page.text) is None


def in_markdown(text: str) -> None:
    """In a list, as versions are."""
    tokens = MarkdownIt("commonmark").enable("table").parse(f"- value: {code_span(text)}.")
    (inline,) = (token for token in tokens if token.type == "inline")
    assert [token.type for token in tokens if token.nesting == 1] == [
        "bullet_list_open",
        "list_item_open",
        "paragraph_open",
    ]
    children = list(inline.children or [])
    assert [child.type for child in children] == ["text", "code_inline", "text"]
    shown = children[1].content
    assert shown == one_line(text)
    assert OBEYED.search(shown) is None


def in_markdown_paragraph(text: str) -> None:
    shown = _shown_in_markdown(markdown_line(text), ["paragraph_open"])
    assert shown == [one_line(text).strip()]


def in_markdown_table(text: str) -> None:
    blocks = ["table", "thead", "tr", "th", "th", "tbody", "tr", "td", "td"]
    table = "\n".join(markdown_table(["cell", text], [[text, "1"]]))
    shown = _shown_in_markdown(table, [f"{block}_open" for block in blocks])
    assert shown == ["cell", one_line(text).strip(), one_line(text).strip(), "1"]


def _shown_in_markdown(document: str, blocks: list[str]) -> list[str]:
    """What its blocks show, as text without markup."""
    tokens = MarkdownIt("commonmark").enable("table").parse(document)
    assert [token.type for token in tokens if token.nesting == 1] == blocks
    shown = []
    for inline in (token for token in tokens if token.type == "inline"):
        children = list(inline.children or [])
        assert {child.type for child in children} <= {"text"}
        shown.append("".join(child.content for child in children))
    return shown


def in_csv(text: str) -> None:
    rows = list(csv.reader(io.StringIO(csv_text(["value"], [[text]]))))
    (_, (cell,)) = rows
    assert cell.removeprefix("'") == visible(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\n"))
    assert OBEYED.search(cell) is None


def in_json(text: str) -> None:
    written = json.dumps({"value": text})
    assert written.isascii()
    assert written.isprintable()
    # JSON reads two halves of a surrogate pair as the character.
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert json.loads(written) == {"value": joined}


def in_mail(text: str) -> None:
    sns = boto3.client("sns", region_name="us-east-1")
    given: dict[str, str] = {}
    sns.meta.events.register(
        "before-parameter-build.sns.Publish", lambda params, **_: given.update(params)
    )
    with Stubber(sns) as stubber:
        stubber.add_response(
            "publish", {"MessageId": "m"}, {"TopicArn": "t", "Subject": ANY, "Message": ANY}
        )
        notify(sns, "t", subject=f"Traindyno: {text}" * 9, text=f"value: {text}")
    assert given["Subject"].isascii()
    assert given["Subject"].isprintable()
    assert len(given["Subject"]) <= SUBJECT_LENGTH
    assert given["Message"] == f"value: {visible(text)}"
    assert OBEYED.search(given["Message"]) is None


PLACES: dict[str, Callable[[str], None]] = {
    "terminal": in_terminal,
    "HTML": in_html,
    "Markdown": in_markdown,
    "a paragraph of Markdown": in_markdown_paragraph,
    "a table of Markdown": in_markdown_table,
    "CSV": in_csv,
    "JSON": in_json,
    "mail": in_mail,
}


@pytest.mark.parametrize("place", PLACES)
def test_each_character_is_text_in_each_place(place: str) -> None:
    for text in CHARACTERS.values():
        PLACES[place](text)
    PLACES[place]("".join(CHARACTERS.values()))


@pytest.mark.parametrize("place", PLACES)
def test_any_mixture_is_text_in_each_place(place: str) -> None:
    dice = random.Random(66)
    parts = [*CHARACTERS.values(), *LETTERS, *"=+-@`|<>&*_#[]()! \n"]
    for _ in range(60):
        PLACES[place]("".join(dice.choices(parts, k=dice.randrange(1, 9))))
