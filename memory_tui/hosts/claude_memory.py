"""Claude Code's memory since 2.1 has a file for each fact, with MEMORY.md as the index of them.

The front matter has `name` (a slug that `[[name]]` links to), `description` and `metadata.type`. A line of the index
points to a file: `- [Title](file.md) — hook`. A link to a fact that is not written yet is no fault there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from memory_tui.hosts import claude_code
from memory_tui.workspace.roots import Roots

INDEX = "MEMORY.md"
TYPES = ("user", "feedback", "project", "reference")
MOST_HEAD = 4000
"""How much of a file may be its front matter."""
_POINTER = re.compile(r"\]\(<?(?:\./)?([^)>\s#]+\.md)>?\)")
_MEMBER = re.compile(r"(?P<indent>[ \t]*)(?P<key>[\w-]+):[ \t]*(?P<value>.*?)[ \t]*\Z")
_SLUG_WORDS = 6
_DESCRIPTION = 140


class ClaudeFact(Struct, frozen=True):
    """The front matter of a fact: its slug, one line about it, its type (empty where it names none of TYPES)."""

    name: str
    description: str
    type: str


def fact_of(text: str) -> ClaudeFact | None:
    """The fact that a file holds; None where it has no front matter with a name."""
    lines = text[:MOST_HEAD].removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---" or "---" not in (line.rstrip() for line in lines[1:]):
        return None
    fields: dict[str, str] = {}
    above = ""
    for line in lines[1:]:
        if line.rstrip() == "---":
            break
        if (member := _MEMBER.match(line)) is None:
            continue
        key, value = member["key"], member["value"].strip("\"'")
        if not member["indent"]:
            above = key
            fields.setdefault(key, value)
        elif above == "metadata":
            fields.setdefault(key, value)
    if not fields.get("name"):
        return None
    kind = fields.get("type", "")
    return ClaudeFact(fields["name"], fields.get("description", ""), kind if kind in TYPES else "")


def written(fact: ClaudeFact, body: str) -> str:
    """The text of a fact's file."""
    description = fact.description.replace("\n", " ")
    if re.search(r"[:#\"'\[\]{}&*!|>%@`]", description):
        description = '"' + description.replace("\\", "\\\\").replace('"', '\\"') + '"'
    head = [f"name: {fact.name}", f"description: {description}", "metadata:", f"  type: {fact.type}"]
    return "\n".join(["---", *head, "---", "", body.strip("\n"), ""])


def pointer(fact: ClaudeFact, file: str) -> str:
    """The line of the index that points to a fact."""
    title = fact.name.replace("-", " ")
    return f"- [{title[:1].upper()}{title[1:]}]({file}) — {fact.description}"


def fact_named(text: str, kind: str) -> ClaudeFact:
    """A new fact of the type `kind`, named after the first words of `text`."""
    first = next((line.strip(" -*+#\t") for line in text.splitlines() if line.strip()), "")
    words = re.findall(r"[a-z0-9]+", first.casefold()) or ["note"]
    description = " ".join(first.split())
    if len(description) > _DESCRIPTION:
        description = f"{description[: _DESCRIPTION - 1].rstrip()}…"
    return ClaudeFact("-".join(words[:_SLUG_WORDS]), description, kind)


def file_of(fact: ClaudeFact) -> str:
    """The name of a fact's file, as Claude Code names it."""
    return f"{fact.type}_{fact.name.replace('-', '_')}.md"


def folders(roots: Roots) -> dict[str, str]:
    """The folders of `roots` that hold such a memory, by the beginning of their stored paths."""
    project_memory = os.path.realpath(claude_code.auto_memory(roots.workspace))
    folders = {}
    for folder in dict.fromkeys((str(roots.workspace), *roots.extra)):
        if os.path.realpath(folder) == project_memory or claude_code.is_auto_memory(Path(folder) / INDEX):
            stored = roots.stored(folder)
            folders["" if stored == "." else f"{stored}/"] = folder
    return folders


def facts(roots: Roots, absolute: Mapping[str, str]) -> dict[str, ClaudeFact]:
    """The facts among the notes of such folders, by stored path; `absolute` says where each note is."""
    facts = {}
    prefixes = folders(roots)
    for path, place in absolute.items() if prefixes else ():
        if not in_folders(path, prefixes):
            continue
        try:
            with Path(place).open("rb") as file:
                head = file.read(MOST_HEAD)
        except OSError:
            # The list of files says that it cannot be read.
            continue
        if (fact := fact_of(head.decode("utf-8", "replace"))) is not None:
            facts[path] = fact
    return facts


def in_folders(path: str, prefixes: Iterable[str]) -> bool:
    """Whether the note at the stored `path` stands directly in one of the folders."""
    folder = path.rpartition("/")[0]
    return f"{folder}/" in prefixes if folder else "" in prefixes


def unlisted(notes: Mapping[str, str], prefixes: Iterable[str]) -> dict[str, str]:
    """The facts that no line of their index points to, with the line that would; `notes` are texts by stored path."""
    pointers = {}
    for prefix in prefixes:
        named = {os.path.normpath(file) for file in _POINTER.findall(notes.get(f"{prefix}{INDEX}", ""))}
        for path, text in notes.items():
            name = path.removeprefix(prefix)
            if not path.startswith(prefix) or "/" in name or name == INDEX or name in named:
                continue
            fact = fact_of(text)
            if fact is not None:
                pointers[path] = pointer(fact, name)
    return pointers
