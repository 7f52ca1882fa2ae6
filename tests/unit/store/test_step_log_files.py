"""The lines of a step log, of which one part is in memory at a time."""

import random
from io import BytesIO

import pytest

from tests.unit.lab_in_memory import MemoryObjects
from traindyno.core.s3_keys import step_log_prefix
from traindyno.store import results_bucket
from traindyno.store.results_bucket import ObjectMissing

KEY = f"{step_log_prefix('e', 'r', 'job')}rank-00000.1.jsonl"


def lines_of(content: bytes) -> list[str]:
    bucket = MemoryObjects()
    bucket.contents[KEY] = content
    (lines,) = bucket.step_log_files("runs/e/r/checkpoints/step_log/").values()
    return list(lines)


@pytest.mark.parametrize("seed", range(20))
def test_lines_are_the_same_in_parts_of_any_size(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = random.Random(seed)
    content = bytes(source.choices(b"ab\n\r\xc3\xa9\xff\xe2\x80\xa8", k=source.randint(0, 200)))
    whole = [line.decode(errors="replace") for line in BytesIO(content)]
    longest = max(map(len, BytesIO(content)), default=0)
    for part_bytes in (longest + 1, longest + 7, 1000):
        monkeypatch.setattr(results_bucket, "PART_BYTES", part_bytes)
        assert lines_of(content) == whole


def test_a_line_without_an_end_is_given_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reader refuses the first one; the whole line may be larger than the memory."""
    monkeypatch.setattr(results_bucket, "PART_BYTES", 100)
    pieces = lines_of(b"x" * 1050)
    assert "".join(pieces) == "x" * 1050
    assert max(map(len, pieces)) <= 200


def test_a_lost_file_is_an_error() -> None:
    bucket = MemoryObjects()
    bucket.contents[KEY] = b"{}"
    (lines,) = bucket.step_log_files("runs/e/r/checkpoints/step_log/").values()
    del bucket.contents[KEY]
    with pytest.raises(ObjectMissing, match="does not exist"):
        next(iter(lines))
