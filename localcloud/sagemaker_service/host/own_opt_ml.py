"""Runs a command that sees a folder as /opt/ml. A program of its own, standard library only.

    python -I own_opt_ml.py FOLDER COMMAND...

Scripts of users name paths below /opt/ml in their code, where the service can't replace them, and a
person without root rights can't create a folder in /opt. The hosts of one job also run at the same
time, so one link can't serve them.

The program makes a mount namespace (unshare(2), mount_namespaces(7)); a user without the right to
do so makes a user namespace first. If the kernel refuses, it prints a line that says so and runs
the command with the machine's /opt/ml.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

OPT = Path("/opt")
OPT_ML = OPT / "ml"
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1


def with_own_opt_ml(folder: Path, command: Sequence[str]) -> list[str]:
    """The command line that runs ``command`` with ``folder`` as its /opt/ml."""
    return [sys.executable, "-I", __file__, str(folder), *command]


def main(folder: str, command: Sequence[str]) -> None:
    refusal = _refusal(folder)
    if refusal:
        sys.stdout.write(
            "/opt/ml is shared by all jobs of this machine, because a mount namespace was refused "
            f"({refusal}); read paths from the SM_* variables\n"
        )
        sys.stdout.flush()
    else:
        _enter(folder)
    os.execvp(command[0], list(command))


def _refusal(folder: str) -> str:
    """Why ``_enter`` fails here; empty if it works.

    A child process tries it, because no process can leave a namespace that is incomplete.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        status = 0
        try:
            _enter(folder)
        except Exception as error:  # noqa: BLE001 -- whatever refuses, the command runs without the view
            os.write(writer, str(error).encode())
            status = 1
        os._exit(status)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as said:
        text = said.read()
    _, status = os.waitpid(child, 0)
    return text or ("its trial ended without a reason" if status else "")


def _enter(folder: str) -> None:
    """Raises OSError if the kernel refuses, AttributeError if the C library has no namespaces."""
    _unshare()
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    if not OPT_ML.is_dir():
        _make_mount_point(Path(f"{folder}.opt"))
    _mount(folder, str(OPT_ML), None, MS_BIND | MS_REC)


def _unshare() -> None:
    user = os.geteuid()
    group = os.getegid()
    try:
        _call("unshare", CLONE_NEWNS)
    except PermissionError:
        _call("unshare", CLONE_NEWUSER | CLONE_NEWNS)
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            Path("/proc/self", name).write_text(text, encoding="ascii")
        # A new user namespace clears the signal that ends this process together with its
        # supervisor.
        _call("prctl", PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _make_mount_point(kept: Path) -> None:
    """Covers /opt with a file system in memory that has the content of /opt, and ``ml``.

    The machine's /opt is unchanged. ``kept`` is a new empty folder. Only ``rmdir`` may remove it,
    because /opt is mounted there for a moment.
    """
    kept.mkdir(exist_ok=True)
    _mount(str(OPT), str(kept), None, MS_BIND | MS_REC)
    _mount("tmpfs", str(OPT), "tmpfs", 0)
    for path in kept.iterdir():
        _show(path, OPT / path.name)
    _call("umount2", str(kept).encode(), MNT_DETACH)
    kept.rmdir()
    OPT_ML.mkdir()


def _show(path: Path, place: Path) -> None:
    if path.is_symlink():
        place.symlink_to(path.readlink())
        return
    if path.is_dir():
        place.mkdir()
    else:
        place.touch()
    _mount(str(path), str(place), None, MS_BIND | MS_REC)


def _mount(source: str | None, target: str, kind: str | None, flags: int) -> None:
    texts = [text.encode() if text is not None else None for text in (source, target, kind)]
    _call("mount", *texts, ctypes.c_ulong(flags), None)


def _call(name: str, *arguments: object) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
