"""Which machine a process ran on, without using the network: ``algo-1`` names a place in the job, not a machine."""

from pathlib import Path
from typing import Dict, Optional

FILES = {
    # Of an EC2 instance on Nitro its instance id; elsewhere mostly empty.
    "instance_id": "sys/class/dmi/id/board_asset_tag",
    "boot_id": "proc/sys/kernel/random/boot_id",
    # Last: a container may have its image's, which all its hosts share.
    "machine_id": "etc/machine-id",
}


def host_identity(root: Path = Path("/")) -> Dict[str, str]:
    """The identifiers that the system has, most reliable first."""
    found = {name: _text(root / path) for name, path in FILES.items()}
    if not (found["instance_id"] or "").startswith("i-"):
        found["instance_id"] = None
    return {name: text for name, text in found.items() if text}


def host_id(root: Path = Path("/")) -> Optional[str]:
    """One name for the machine: the EC2 instance, else this boot of it, else its installation; None if unknown."""
    return next(("{}:{}".format(name, text) for name, text in host_identity(root).items()), None)


def _text(path: Path) -> Optional[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None
