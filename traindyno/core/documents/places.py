"""Text of a suite or of a job for each place where people read it, in which it stays text.

HTML is written by ``traindyno/report/markup.py``, and JSON by its own escapes.
"""

import re

from traindyno.core.documents.problems import visible

# What a spreadsheet takes for the begin of a formula.
FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\n")
# What Markdown reads as markup within a line (within a word, _ is none), and where a block begins.
MARKUP = re.compile(r"[\\`*\[\]<>|&~$]|(?<![^\W_])_|_(?![^\W_])")
BLOCK_BEGIN = re.compile(r"\A(?:\d+(?=[.)](?:\s|\Z)))?(?=[#+=.)-])")
LINE_ESCAPES = str.maketrans({"\n": r"\n", "\t": r"\t"})


def one_line(text: str) -> str:
    """The text on one line, for a line, of a terminal too, that holds other text."""
    return visible(text).translate(LINE_ESCAPES)


def code_span(text: str) -> str:
    """The text as a code span of Markdown: one line between more backticks than it has together."""
    shown = one_line(text)
    longest = max((len(ticks) for ticks in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    # Markdown takes one space away at both ends.
    space = " " if longest or not shown.strip() else ""
    return f"{fence}{space}{shown}{space}{fence}"


def markdown_text(text: str) -> str:
    """The text behind other text of Markdown, or as a cell of a table."""
    return MARKUP.sub(r"\\\g<0>", one_line(text))


def markdown_line(text: str) -> str:
    """The text as a paragraph or an item of a list."""
    return BLOCK_BEGIN.sub(r"\g<0>\\", markdown_text(text).lstrip())


def spreadsheet_text(text: str) -> str:
    """The text as a cell of a CSV file, which the writer quotes."""
    shown = visible(text)
    return f"'{shown}" if shown.startswith(FORMULA_BEGINS) else shown


def mail_subject(text: str) -> str:
    """The text as a subject: SNS takes ASCII without ends of lines."""
    return one_line(text).encode("ascii", "backslashreplace").decode()
