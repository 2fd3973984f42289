"""`$include`: files that a configuration of OpenClaw is put together from, joined as OpenClaw joins them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from memory_tui.config.record import Place, Problem
from memory_tui.config.tree import Node, Source, parse

KEY = "$include"
MAX_FILES_DEEP = 10
MAX_BYTES = 2 << 20


def joined(root: Node) -> tuple[Node, tuple[Problem, ...]]:
    """`root` with every include put in; included values know their own file.

    Raises ConfigError when an included file is not JSON5. A file that may not be included, or is missing, is a
    problem: the rest counts without it. Only files in or below the folder of the configuration may be.
    """
    if KEY not in root.source.text:
        return root, ()
    joiner = _Joiner(root.source.path.parent)
    return joiner.resolve(root, (root.source.path,)), tuple(joiner.problems)


def merged(below: Node, above: Node) -> Node:
    """Both as one: objects key by key, lists one after the other, and of anything else `above`."""
    if isinstance(below.value, dict) and isinstance(above.value, dict):
        members = dict(below.value)
        for key, node in above.value.items():
            members[key] = merged(members[key], node) if key in members else node
        return Node(members, above.source, above.start, above.end, above.repeated)
    if isinstance(below.value, list) and isinstance(above.value, list):
        return Node([*below.value, *above.value], above.source, above.start, above.end)
    return above


@dataclass(frozen=True, slots=True)
class _Joiner:
    folder: Path
    problems: list[Problem] = field(default_factory=list)

    def resolve(self, node: Node, chain: tuple[Path, ...]) -> Node:
        """`node` with its includes; `chain` are the files that lead to it."""
        if isinstance(node.value, list):
            items = [self.resolve(item, chain) for item in node.value]
            return Node(items, node.source, node.start, node.end)
        if not isinstance(node.value, dict):
            return node
        members = {key: self.resolve(child, chain) for key, child in node.value.items() if key != KEY}
        rest = Node(members, node.source, node.start, node.end, node.repeated)
        wanted = node.value.get(KEY)
        if wanted is None:
            return rest
        whole: Node | None = None
        for name in wanted.value if isinstance(wanted.value, list) else [wanted]:
            part = self._load(name, chain)
            whole = part if whole is None or part is None else merged(whole, part)
        if whole is None or (members and not isinstance(whole.value, dict)):
            return rest
        return merged(whole, rest) if members else whole

    def _load(self, name: Node, chain: tuple[Path, ...]) -> Node | None:
        path = Path(os.path.normpath(chain[-1].parent / str(name.value)))
        reason = self._refused(name, path, chain)
        if not reason:
            try:
                with path.open("rb") as file:
                    raw = file.read(MAX_BYTES + 1)
                if len(raw) <= MAX_BYTES:
                    return self.resolve(parse(Source(path, raw.decode("utf-8", "replace"))), (*chain, path))
                reason = "it is larger than two megabytes"
            except OSError as error:
                reason = f"it cannot be read: {error.strerror}"
        shown = repr(name.value) if isinstance(name.value, str) else "This"
        self.problems.append(
            Problem(KEY, f"{shown} is not included: {reason}.", Place.of(name, KEY), "the rest counts without it")
        )
        return None

    def _refused(self, name: Node, path: Path, chain: tuple[Path, ...]) -> str:
        """Why `path` may not be included; empty where it may."""
        if not isinstance(name.value, str) or "\0" in name.value:
            return "it is not the name of a file"
        if path in chain:
            return "it includes itself"
        if len(chain) > MAX_FILES_DEEP:
            return f"includes are more than {MAX_FILES_DEEP} deep"
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.folder)):
            return "it is outside the folder of the configuration"
        return "" if path.is_file() else "there is no such file"
