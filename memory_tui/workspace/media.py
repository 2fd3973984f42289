"""A media file is an image or a sound below extraPaths: its label is indexed, its bytes are embedded."""

from __future__ import annotations

import hashlib
import json
from typing import Literal

from msgspec import Struct

from memory_tui import jsstring
from memory_tui.config.model import Config
from memory_tui.errors import Unreadable
from memory_tui.providers import registry
from memory_tui.workspace.notes import Document, snapshot
from memory_tui.workspace.scan import NoteFile

Modality = Literal["image", "audio"]
_SUFFIXES: dict[Modality, tuple[str, ...]] = {
    "image": (".jpg", ".jpeg", ".png", ".webp", ".gif", ".heic", ".heif"),
    "audio": (".mp3", ".wav", ".ogg", ".opus", ".m4a", ".m2a", ".aac", ".flac"),
}
_LABELS: dict[Modality, str] = {"image": "Image file: ", "audio": "Audio file: "}
_MOST_BYTES = 10_485_760


class MediaRules(Struct, frozen=True):
    """Which files are media: of these `modalities`, and of `most_bytes` at most."""

    modalities: tuple[Modality, ...] = ("image", "audio")
    most_bytes: int = _MOST_BYTES

    def limit(self, name: str) -> int:
        """Return how many bytes a file called `name` may have; 0 for one that is no media."""
        return self.most_bytes if modality_of(name) in self.modalities else 0


def media_rules(config: Config) -> MediaRules | None:
    """Return which media the configuration asks for; None where `multimodal.enabled` is off."""
    if config.value("multimodal.enabled") is not True:
        return None
    every, names, most = MediaRules(), config.value("multimodal.modalities"), config.value("multimodal.maxFileBytes")
    named = names if isinstance(names, tuple) else ()
    chosen = tuple(modality for modality in every.modalities if modality in named or "all" in named)
    return MediaRules(chosen, most if isinstance(most, int) else every.most_bytes)


def hindrance(config: Config, provider: str) -> str:
    """Why `provider` cannot embed the media that the configuration asks for, as a sentence; empty where it can."""
    if media_rules(config) is None:
        return ""
    model = registry.gemini_model(config.model or registry.row("gemini").model)
    if (provider, config.provider) != ("gemini", "gemini"):
        return f"Images and sounds need the provider gemini, not {provider}, with the model {registry.MEDIA[0]}."
    if model not in registry.MEDIA:
        return f"Images and sounds need the model {registry.MEDIA[0]} of gemini, not {model}."
    fallback = config.value("fallback")
    if fallback not in (None, "", "none"):
        return f"Images and sounds allow no fallback, because {fallback} cannot embed them."
    return ""


class MediaDocument(Document, frozen=True):
    """A media file at one moment: `text` is its label, `hash` the documented one of path, label, type and bytes."""

    mime: str
    data: bytes


def modality_of(path: str) -> Modality | None:
    """Return what a file is by its name; None for one that is no media."""
    lower = path.lower()
    return next((kind for kind, suffixes in _SUFFIXES.items() if lower.endswith(suffixes)), None)


def read(note: NoteFile) -> MediaDocument:
    """Return the media file `note`, whole and unchanged while it was read. Raises Unreadable."""
    data, mtime_ns = snapshot(note)
    kind = modality_of(note.path)
    mime = _mime(data[:512], note.path)
    if kind is None or not mime.startswith(f"{kind}/"):
        raise Unreadable(
            f"{note.path} is called {'an image' if kind == 'image' else 'a sound'}, and its content is another.",
            "Give it the name that its content has.",
        )
    label = f"{_LABELS[kind]}{note.path}"
    digest = entry_hash(note.path, label, mime, data)
    return MediaDocument(note.path, label, digest, len(data), mtime_ns, 0, False, mime, data)


def entry_hash(path: str, label: str, mime: str, data: bytes) -> str:
    """Return the documented hash of a media file, which is that of its one chunk too."""
    entry = {"path": path, "contentText": label, "mimeType": mime, "dataHash": hashlib.sha256(data).hexdigest()}
    return jsstring.sha256_hex(json.dumps(entry, ensure_ascii=False, separators=(",", ":")))


def path_in(text: str, digest: str) -> str:
    """The path of the media file whose label `text` is, by the hash of the chunk; empty for the text of a note."""
    kind = next((kind for kind, label in _LABELS.items() if text.startswith(label)), None)
    if kind is None or jsstring.sha256_hex(text) == digest:
        return ""
    path = text.removeprefix(_LABELS[kind])
    return path if modality_of(path) == kind else ""


def _mime(head: bytes, path: str) -> str:
    """Return the type of content that begins with `head`, as its magic numbers tell; empty for an unknown one."""
    for magic, mime in _MAGIC:
        if head.startswith(magic):
            return mime
    if head[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(head[8:12], "")
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "")
    # The frames of MPEG audio and of AAC begin with eleven bits that are set.
    if head[:1] == b"\xff" and len(head) > 1 and head[1] & 0xE0 == 0xE0:
        return "audio/aac" if head[1] & 0xF6 == 0xF0 else "audio/mpeg"
    if head[:4] == b"OggS":
        return "audio/opus" if path.lower().endswith(".opus") else "audio/ogg"
    return ""


_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
)
_BRANDS = {
    **dict.fromkeys((b"heic", b"heix", b"hevc", b"heim", b"heis"), "image/heic"),
    **dict.fromkeys((b"mif1", b"msf1"), "image/heif"),
    **dict.fromkeys((b"M4A ", b"M4B ", b"mp42", b"isom", b"mp41"), "audio/mp4"),
}
