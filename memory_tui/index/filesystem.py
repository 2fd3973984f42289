"""What kind of file system a file lies on, as far as that matters to SQLite."""

from __future__ import annotations

from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_SHARED = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "afs",
    "ceph",
    "glusterfs",
    "lustre",
    "fuse.",
    "virtiofs",
    "vboxsf",
    "davfs",
    "ncpfs",
    "gfs2",
    "ocfs2",
    "beegfs",
)
"""Kinds that another machine can write to: there memory cannot be shared, which a write-ahead log needs."""


def kind(path: Path) -> str:
    """The type of the file system that `path` lies on, empty where the system does not tell."""
    try:
        lines = _MOUNTS.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    best, found = -1, ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        parts = fields.split(" ")
        if len(parts) < 5 or not rest:
            continue
        point = parts[4].replace("\\040", " ")
        if len(point) > best and (path == Path(point) or Path(point) in path.parents):
            best, found = len(point), rest.split(" ")[0]
    return found


def shared(path: Path) -> str:
    """The type of the file system, where other machines can write to it; empty where not."""
    name = kind(path)
    return name if name.startswith(_SHARED) else ""
