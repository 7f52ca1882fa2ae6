"""docs/performance.md says of each section whether the code that it measured has changed since."""

from bench import __main__ as bench
from bench import document
from bench.measured_code import digests_by_title


def test_the_page_marks_each_section_that_is_older_than_its_code() -> None:
    page = bench.DOCUMENT.read_text(encoding="utf-8")
    is_marked = document.mark(page, digests_by_title()) == page
    assert is_marked, "docs/performance.md marks other sections than those that are older than their code: run " + (
        "`python -m bench --mark`"
    )
