"""What can happen to a text file between the container that writes it and its reader."""

import random
from collections.abc import Callable


def cut(contents: bytes, rng: random.Random) -> bytes:
    return contents[: rng.randrange(len(contents) + 1)]


def reorder(contents: bytes, rng: random.Random) -> bytes:
    lines = contents.splitlines(keepends=True)
    return b"".join(rng.sample(lines, len(lines)))


def repeat(contents: bytes, rng: random.Random) -> bytes:
    return contents * rng.randrange(1, 4)


def flip(contents: bytes, rng: random.Random) -> bytes:
    changed = bytearray(contents)
    for _ in range(rng.randrange(1, 9)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def retype(contents: bytes, rng: random.Random) -> bytes:
    """One value of a line or a document becomes something else that JSON can hold."""
    values = ["null", "true", '"x"', "[]", "{}", "-1", "1e400", "NaN", "1" * 400, '"\\ud800"', "[" * 3000]
    parts = contents.split(b": ")
    index = rng.randrange(len(parts))
    head, comma, rest = parts[index].partition(b",")
    parts[index] = rng.choice(values).encode() + comma + rest if comma else head
    return b": ".join(parts)


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "cut": cut, "reorder": reorder, "repeat": repeat, "flip": flip, "retype": retype
}  # fmt: skip
