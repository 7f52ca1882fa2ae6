"""What can happen to a text file between the container that writes it and its reader."""

from hypothesis import strategies as st

# What JSON can hold instead of a value
INSTEAD = [
    "null",
    "true",
    '"x"',
    "[]",
    "{}",
    "-1",
    "1e400",
    "NaN",
    "1" * 400,
    '"\\ud800"',
    "[" * 3000,
]


@st.composite
def damaged(draw: st.DrawFn, contents: bytes) -> bytes:
    """Cut, repeated, in another order, with other bytes, or with another value in one place."""
    match draw(st.integers(0, 4)):
        case 0:
            return contents[: draw(st.integers(0, len(contents)))]
        case 1:
            return contents * draw(st.integers(2, 3))
        case 2:
            return b"".join(draw(st.permutations(contents.splitlines(keepends=True))))
        case 3:
            at = draw(st.integers(0, len(contents)))
            byte = draw(st.binary(max_size=2))
            return contents[:at] + byte + contents[at + 1 :]
        case _:
            parts = contents.split(b": ")
            index = draw(st.integers(0, len(parts) - 1))
            head, comma, rest = parts[index].partition(b",")
            parts[index] = draw(st.sampled_from(INSTEAD)).encode() + comma + rest if comma else head
            return b": ".join(parts)
