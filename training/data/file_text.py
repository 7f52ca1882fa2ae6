"""A data file's content as UTF-8 text: unpacked, decoded by its byte order mark, and checked."""

import bz2
import gzip
import lzma
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Mapping

from training.data.files import DataFile
from training.errors import WorkloadError

UNPACK: Mapping[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}
SHOWN_BYTES = 20


def read_unpacked(file: DataFile) -> bytes:
    """The file's bytes; compressed ones (.gz, .bz2, .xz) unpacked. Raises WorkloadError if they are damaged."""
    unpack = next((unpack for suffix, unpack in UNPACK.items() if file.name.lower().endswith(suffix)), bytes)
    try:
        return unpack(file.read())
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise WorkloadError(f"{file.name} can't be unpacked: {error}") from error


def read_utf8(file: DataFile) -> bytes:
    """The file's text as UTF-8. UTF-16 is recognised by its byte order mark; a line that is not text is refused."""
    content = read_unpacked(file)
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return _decoded(file, content, "utf-16").encode()
    content = content.removeprefix(BOM_UTF8)
    if b"\0" in content[:1_000_000]:
        raise WorkloadError(f"{file.name} holds NUL bytes, so it is not text; expected UTF-8 text")
    _decoded(file, content, "utf-8")
    return content


def _decoded(file: DataFile, content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        found = content[max(0, error.start - SHOWN_BYTES // 2) : error.start + SHOWN_BYTES // 2]
        raise WorkloadError(
            f"{file.name}, line {line}: {found!r} is not {encoding.upper()}; expected UTF-8, or UTF-16 with a "
            f"byte order mark (convert other encodings first, for example: iconv -f latin1 -t utf-8 {file.name})"
        ) from error
