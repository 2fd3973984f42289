"""The variables that a configuration may name: of this process, of OpenClaw's .env file, of the file's own `env`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from memory_tui.config.places import state_folder
from memory_tui.config.tree import Node

_REFERENCE = re.compile(r"(\$?)\$\{([A-Z_][A-Z0-9_]*)\}")
_ASSIGNMENT = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*"
    r"(?:'([^'\n]*)'|\"((?:[^\"\\\n]|\\.)*)\"|([^#\n]*))",
    re.MULTILINE,
)
_MAX_ENV_BYTES = 1 << 20


@dataclass(frozen=True)
class Environment:
    """Looks variables up in OpenClaw's order; the first place that has one counts, an empty value is none.

    The .env file of the state folder is only read when the process itself does not have the variable. A variable of
    the login shell, which OpenClaw can import too, is not known here: nothing is run to read a configuration.
    """

    tree: Node | None = field(default=None, repr=False)

    def lookup(self, name: str) -> tuple[str, str] | None:
        """The value of `name` and where it is from, in words; None when nothing says it."""
        if value := os.environ.get(name):
            return value, f"the environment variable {name}"
        if value := self._env_file.get(name):
            return value, f"{name} in {self._env_path}"
        if value := self._own.get(name):
            return value, f"{name} in the env section"
        return None

    def substitute(self, text: str) -> tuple[str, tuple[str, ...]]:
        """`text` with each `${NAME}` replaced, and the names that have no value; `$${NAME}` stands for itself."""
        missing: list[str] = []

        def replace(found: re.Match[str]) -> str:
            if found[1]:
                return found[0][1:]
            value = self.lookup(found[2])
            if value is None:
                missing.append(found[2])
            return value[0] if value else found[0]

        return _REFERENCE.sub(replace, text) if "${" in text else text, tuple(missing)

    @property
    def _env_path(self) -> Path:
        return state_folder() / ".env"

    @cached_property
    def _env_file(self) -> dict[str, str]:
        try:
            with self._env_path.open("rb") as file:
                text = file.read(_MAX_ENV_BYTES).decode("utf-8", "replace")
        except OSError:
            # Most people have none, and one that may not be read is as good as none for looking a variable up.
            return {}
        return {
            m[1]: m[2] or re.sub(r"\\(.)", r"\1", m[3] or "") or (m[4] or "").strip()
            for m in _ASSIGNMENT.finditer(text)
        }

    @cached_property
    def _own(self) -> dict[str, str]:
        section = self.tree.get("env") if self.tree else None
        nested = section.get("vars") if section else None
        named = [*(section.children() if section else ()), *(nested.children() if nested else ())]
        return {key: node.value for key, node in named if isinstance(node.value, str) and node.value.strip()}
