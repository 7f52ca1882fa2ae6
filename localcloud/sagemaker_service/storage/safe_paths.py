"""Keeps a job's inputs (archive members, S3 keys, program names) within the job's own folder."""

import copy
import os
import posixpath
import tarfile
from collections.abc import Iterator
from pathlib import Path

# A source has at most 256 MiB, and weights hardly get smaller when they are packed.
ALWAYS_UNPACKED_BYTES = 512 * 2**20
UNPACKED_PER_PACKED = 100


class UnsafePath(Exception):
    """A name leads out of its folder, names a kind of file that is not allowed there, or the whole
    is too large.
    """


def stays_inside(name: str) -> bool:
    """Whether a POSIX path stays below its folder: it is not absolute, and it has neither ``..``
    nor NUL.
    """
    return (
        bool(name) and not name.startswith("/") and ".." not in name.split("/") and "\0" not in name
    )


def unpack_archive(archive: Path, folder: Path) -> None:
    """Unpacks a tar archive without trusting it; one that would become too large is refused before
    anything is written.

    Python has a filter for this since 3.11.4 only, so the rules are applied here on every version.
    Names and links stay within ``folder``, no member is written through a link, and no devices are
    made. The files belong to this user, and no other user may read or write them.
    """
    with tarfile.open(archive) as tar:
        members = list(_checked(tar, archive.stat().st_size))
        if hasattr(tarfile, "fully_trusted_filter"):
            tar.extraction_filter = tarfile.fully_trusted_filter
        tar.extractall(folder, members)


def _checked(tar: tarfile.TarFile, packed_bytes: int) -> Iterator[tarfile.TarInfo]:
    links: set[str] = set()
    limit_bytes = max(ALWAYS_UNPACKED_BYTES, UNPACKED_PER_PACKED * packed_bytes)
    unpacked_bytes = 0
    for member in tar:
        unpacked_bytes += tarfile.BLOCKSIZE + member.size  # a name takes room too
        if unpacked_bytes > limit_bytes:
            raise UnsafePath(_too_large(packed_bytes, unpacked_bytes, limit_bytes))
        name = posixpath.normpath(member.name)
        if not stays_inside(member.name):
            raise UnsafePath(f"member {member.name!r} is outside of the archive's own folder")
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            raise UnsafePath(
                f"member {member.name!r} is a device or a pipe; files, folders and links are "
                "accepted"
            )
        if any(parent in links for parent in _and_parents(name)):
            raise UnsafePath(f"member {member.name!r} would be written through a link")
        if member.issym() or member.islnk():
            _check_link(member, name)
            links.add(name)
        yield _of_this_user(member)


def _too_large(packed_bytes: int, unpacked_bytes: int, limit_bytes: int) -> str:
    packed, unpacked, limit = (
        f"{size / 2**20:.1f} MiB" for size in (packed_bytes, unpacked_bytes, limit_bytes)
    )
    return (
        f"{packed} become {unpacked} or more; accepted: at most {limit} "
        f"({ALWAYS_UNPACKED_BYTES // 2**20} MiB, or {UNPACKED_PER_PACKED} times the archive's size "
        "if that is more)"
    )


def _check_link(member: tarfile.TarInfo, name: str) -> None:
    """Refuses a link that could leave the folder.

    ``..`` is accepted only at the start of a symbolic link: behind another link it could lead out.
    """
    parts = member.linkname.split("/")
    ups = 0
    while member.issym() and ups < len(parts) and parts[ups] == "..":
        ups += 1
    is_inside = (
        ups <= name.count("/") and not member.linkname.startswith("/") and ".." not in parts[ups:]
    )
    if not is_inside:
        raise UnsafePath(
            f"link {member.name!r} leads to {member.linkname!r}, outside of the archive's own "
            "folder"
        )


def _and_parents(name: str) -> Iterator[str]:
    while name:
        yield name
        name = posixpath.dirname(name)


def _of_this_user(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member_copy = copy.copy(member)
    member_copy.uid = os.getuid()
    member_copy.gid = os.getgid()
    member_copy.uname = ""
    member_copy.gname = ""
    member_copy.mode = (member.mode & 0o700) | (0o700 if member.isdir() else 0o600)
    return member_copy
