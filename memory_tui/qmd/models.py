"""QMD's models are checked on disk before QMD runs. It would download missing ones and delete bad ones."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from memory_tui.qmd.folder import QmdFailure, QmdFolder

Role = Literal["embed", "generate", "rerank"]
DEFAULTS: Mapping[Role, str] = MappingProxyType(
    {
        "embed": "hf:ggml-org/embeddinggemma-300M-GGUF/embeddinggemma-300M-Q8_0.gguf",
        "generate": "hf:tobil/qmd-query-expansion-1.7B-gguf/qmd-query-expansion-1.7B-q4_k_m.gguf",
        "rerank": "hf:ggml-org/Qwen3-Reranker-0.6B-Q8_0-GGUF/qwen3-reranker-0.6b-q8_0.gguf",
    }
)
"""What QMD 2.8.3 uses where neither its configuration nor the environment names another."""
_VARIABLES: Mapping[Role, str] = MappingProxyType(
    {"embed": "QMD_EMBED_MODEL", "generate": "QMD_GENERATE_MODEL", "rerank": "QMD_RERANK_MODEL"}
)
NEEDED: Mapping[str, tuple[Role, ...]] = MappingProxyType(
    {"search": (), "vsearch": ("embed", "generate"), "query": ("embed", "generate", "rerank")}
)
"""What each command of QMD loads."""
_WORDS: Mapping[Role, str] = MappingProxyType({"embed": "embedding", "generate": "generation", "rerank": "reranking"})
_LINE = re.compile(r"^[ \t]+(embed|generate|rerank):[ \t]*(['\"]?)(.+?)\2[ \t]*(?:#.*)?$", re.MULTILINE)
_SECTION = re.compile(r"^models:[ \t]*\n((?:[ \t]+.*\n?)*)", re.MULTILINE)
_MOST_BYTES = 1 << 20


class QmdModel(Struct, frozen=True):
    """A model of QMD: what names it, its file on disk (None where it would be downloaded), what is wrong with it."""

    role: Role
    named: str
    file: Path | None
    problem: str = ""

    @property
    def ready(self) -> bool:
        """Whether QMD can load it without a download."""
        return self.file is not None and not self.problem


def models(place: QmdFolder) -> dict[Role, QmdModel]:
    """Every model of QMD as its configuration names it, else the environment. Raises QmdFailure."""
    written = _written(place)
    return {
        role: _model(role, written.get(role) or os.environ.get(_VARIABLES[role]) or default, place)
        for role, default in DEFAULTS.items()
    }


def _written(place: QmdFolder) -> dict[str, str]:
    """The models that QMD's configuration names; QMD writes them there itself, in these lines."""
    try:
        with place.index_yml.open("rb") as file:
            text = file.read(_MOST_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise QmdFailure(
            "models", f"{place.index_yml} cannot be read: {error.strerror}.", "Check the file and its folder."
        ) from error
    section = _SECTION.search(f"{text}\n")
    return {found[1]: found[3] for found in _LINE.finditer(section[1])} if section else {}


def _model(role: Role, named: str, place: QmdFolder) -> QmdModel:
    if not named.startswith("hf:"):
        path = Path(named).expanduser()
        return QmdModel(role, named, path, _bad(path))
    wanted = named.rpartition("/")[2]
    user = named.removeprefix("hf:").partition("/")[0]
    for folder in (place.models,):
        # node-llama-cpp puts user, and sometimes branch, before the name of the file.
        for name in (f"hf_{user}_{wanted}", wanted):
            if (folder / name).is_file():
                return QmdModel(role, named, folder / name, _bad(folder / name))
    return QmdModel(role, named, None, f"{wanted} is not in {place.models}")


def _bad(path: Path) -> str:
    """Why QMD cannot load the file; it deletes one that is no GGUF. Empty where it can."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    return "" if magic == b"GGUF" else f"{path} is not in GGUF format, and QMD would delete it"


def require(place: QmdFolder, command: str, roles: tuple[Role, ...]) -> None:
    """Raises QmdFailure, with the file that is missing, unless QMD can load all of `roles` from the disk."""
    known = models(place)
    for role in roles:
        model = known[role]
        if not model.ready:
            raise QmdFailure(
                "models",
                f"QMD's {command} needs its {_WORDS[role]} model: {model.problem}.",
                "Let QMD fetch it (qmd pull), or use memory.qmd.searchMode = search, which needs no model.",
            )


def unharmed(place: QmdFolder) -> None:
    """Raises QmdFailure where a model is named that QMD would delete, whatever it is asked for."""
    for model in models(place).values():
        if "would delete" in model.problem:
            raise QmdFailure(
                "models", f"{model.problem}.", f"Name another {_WORDS[model.role]} model in {place.index_yml}."
            )
