"""Move every module of the package into the rooms of moves.tsv: `python tests/tools/move_modules.py`.

Each group of old modules becomes one new module. Names are followed through scopes, so that an import, a prefix
(`module.name`), a dotted string and a patched attribute all lead to where the name stands afterwards. It changes no
behaviour and stops with a list where a name would come to mean something else. The data beside it: `moves.tsv` (new
module, made of), `renames.tsv` (old module, old name, new name), `locals.tsv` (old module, function, local, new local),
`docs.tsv` (new module, entry point, first sentence) and `patches.toml` (exact texts changed before and after).
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from scopes import Function, Names, Scope, Text, edited

HERE = Path(__file__).resolve().parent
PACKAGE = "memory_tui"
DOTTED = re.compile(r"(?<![\w./-])memory_tui(?:\.\w+)+")
IMPORTED = re.compile(r"from (memory_tui[\w.]*) import ([\w, ]*\w)")
FILE = re.compile(r"(?<![\w.-])memory_tui/([\w/]+)\.py\b")
READING_ORDER = re.compile(r"(?:\s|^)(?:The modules in|In) reading order:[^.]*\.")
WIDTH = 120
MOVED = """Rename the modules that keep most of their text

Only places change here; the next commit makes the package work again. So `git log --follow` keeps a history."""
MERGED = """Merge every module into its room

Each concept is one module: what was cut into slices stands together, imports lead there, no behaviour changes."""


@dataclass(frozen=True)
class Module:
    """An internal module as what a name stands for."""

    name: str


@dataclass(frozen=True)
class Symbol:
    """A name that `module` itself defines."""

    module: str
    name: str


@dataclass(frozen=True)
class Outside:
    """Something of another package, or of the standard library."""

    name: str


Target = Module | Symbol | Outside


class Old:
    """A Python file as it is before the move."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.package = path.name == "__init__.py"
        self.raw = path.read_bytes()
        self.text = Text(self.raw)
        self.tree = ast.parse(self.raw)
        self.names = Names(self.tree)

    @cached_property
    def imported(self) -> dict[tuple[int, str], list[tuple[ast.Import | ast.ImportFrom, ast.alias]]]:
        """By scope and local name, what import statements bind."""
        found: dict[tuple[int, str], list[tuple[ast.Import | ast.ImportFrom, ast.alias]]] = defaultdict(list)
        for node, scope in self.names.imports:
            for alias in node.names:
                bound = alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)
                found[id(scope), bound].append((node, alias))
        return found

    @cached_property
    def looped(self) -> set[str]:
        """Names that `for` statements bind, which must not hide an import (ruff's F402)."""
        loops = (node.target for node in ast.walk(self.tree) if isinstance(node, ast.For | ast.AsyncFor))
        return {name.id for target in loops for name in ast.walk(target) if isinstance(name, ast.Name)}

    @cached_property
    def defined(self) -> set[str]:
        """Names that the module binds by anything but an import."""
        bound = self.names.module.bound
        return {
            name for name, nodes in bound.items() if any(not isinstance(n, ast.Import | ast.ImportFrom) for n in nodes)
        }


@dataclass
class Place:
    """Where an import of an output file stands: at the top, for types alone, or in the scope of a function."""

    lines: dict[str, str] = field(default_factory=dict)


class Move:
    """The whole move of one checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.patches = tomllib.loads((HERE / "patches.toml").read_text("utf-8"))
        self._command_groups()
        self._sections()
        self._patch("before")
        self.old: dict[str, Old] = {}
        for path in sorted((root / PACKAGE).rglob("*.py")):
            parts = list(path.relative_to(root).with_suffix("").parts)
            if parts[-1] == "__init__":
                parts.pop()
            self.old[".".join(parts)] = Old(".".join(parts), path)
        self.groups: dict[str, list[str]] = {}
        self.new: dict[str, str] = {}
        self.dropped: set[str] = set()
        self._table()
        self.renames: dict[tuple[str, str], str] = {}
        for module, name, fresh in self._rows("renames.tsv", 3):
            if self._full(module) not in self.old or name not in self.old[self._full(module)].names.module.bound:
                self.notes.append(f"renames.tsv: {module}.{name} is not there")
            self.renames[self._full(module), name] = fresh
        self.locals: dict[tuple[str, str, str], str] = {}
        for module, function, name, fresh in self._rows("locals.tsv", 4):
            self.locals[self._full(module), function, name] = fresh
        self.lazy: dict[str, set[str]] = defaultdict(set)
        for part, imported in self._rows("lazy.tsv", 2):
            self.lazy[self._full(part)].update(imported.split())
        self.docs = {self._full(row[0]): row[1:] for row in self._rows("docs.tsv", 3)}

    @staticmethod
    def _full(short: str) -> str:
        short = short.replace("/", ".").removesuffix("__init__").rstrip(".")
        return f"{PACKAGE}.{short}".rstrip(".")

    def _rows(self, name: str, columns: int) -> Iterator[tuple[str, ...]]:
        for number, line in enumerate((HERE / name).read_text("utf-8").splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                row = tuple(line.split("\t"))
                if len(row) != columns:
                    self.problems.append(f"{name}:{number} has {len(row)} columns instead of {columns}")
                else:
                    yield row

    def _table(self) -> None:
        for fresh, made_of in self._rows("moves.tsv", 2):
            olds = [self._full(short) for short in made_of.split()]
            there = [old for old in olds if old in self.old]
            self.notes += [f"moves.tsv: {old} is not there any more" for old in olds if old not in there]
            if fresh.startswith("(dropped)"):
                self.dropped.update(there)
            elif there:
                name = self._full(fresh) if not fresh.startswith("(tools)") else "tools." + fresh.partition("/")[2]
                self.groups.setdefault(name, []).extend(there)
        for name, olds in self.groups.items():
            for old in olds:
                self.new[old] = name
        for name, old in self.old.items():
            if name not in self.new and old.package and len(old.tree.body) == 1:
                self.dropped.add(name)
            elif name not in self.new and name not in self.dropped:
                self.notes.append(f"not in the table, stays where it is: {name}")
                self.new[name] = name
                self.groups.setdefault(name, []).append(name)

    def _command_groups(self) -> None:
        """The commands of merged modules stay in their order: the list of modules becomes a list of functions."""
        path = self.root / PACKAGE / "cli" / "__init__.py"
        text = path.read_text("utf-8") if path.is_file() else ""
        found = re.search(r"^_GROUPS = \(([\w, \n]+)\)\n_RUN: .*\n", text, re.MULTILINE)
        loop = "    for group in _GROUPS:\n        group.add(command)\n"
        if not found or loop not in text:
            self.problems.append("cli/__init__.py: the list of commands is not found")
            return
        groups = [word.strip() for word in found[1].split(",") if word.strip()]
        lists = (
            f"_DECLARE: tuple[Callable[[Declare], None], ...] = ({', '.join(f'{group}.add' for group in groups)})\n"
            f"_RUN: dict[str, Run] = {{{', '.join(f'**{group}.RUN' for group in groups)}}}\n"
        )
        text = text.replace(found[0], lists).replace(loop, "    for declare in _DECLARE:\n        declare(command)\n")
        text = text.replace("import Run\n", "import Declare, Run\n").replace(
            "from collections.abc import ", "from collections.abc import Callable, ", 1
        )
        path.write_text(text, "utf-8")

    def _sections(self) -> None:
        """Sections of pyproject.toml that are replaced whole: all of what begins with their name."""
        for row in self.patches.get("section", []):
            path = self.root / row["file"]
            text = path.read_text("utf-8")
            name = row["start"].strip("[]")
            parts = re.split(r"(?m)^(?=\[)", text)
            mine = [part for part in parts if part.lstrip("[").startswith(name)]
            if not mine:
                self.problems.append(f"{row['file']} has no {row['start']}")
                continue
            at = parts.index(mine[0])
            rest = [part for part in parts if part not in mine]
            path.write_text("".join([*rest[:at], row["new"].lstrip("\n"), *rest[at:]]), "utf-8")

    def _patch(self, when: str) -> None:
        for row in self.patches.get(when, []):
            path = self.root / row["file"]
            text = path.read_text("utf-8") if path.is_file() else ""
            if row["old"] in text:
                path.write_text(text.replace(row["old"], row["new"]), "utf-8")
            elif row["new"] and row["new"] in text:
                continue
            elif row.get("optional"):
                self.notes.append(f"patch {when}: {row['file']} does not hold {row['old'][:70]!r}")
            else:
                self.problems.append(f"patch {when}: {row['file']} does not hold {row['old'][:70]!r}")

    # --- what a name stands for -----------------------------------------------------------------------

    def attribute(self, module: str, name: str, seen: frozenset[str] = frozenset()) -> Target | None:
        """What `module.name` is: a module, a name that some module defines, or something from outside."""
        old = self.old.get(module)
        if old is None or module in seen:
            return None
        if name in old.defined:
            return Symbol(module, name)
        for node, alias in old.imported.get((id(old.names.module), name), []):
            if f"{module}.{name}" in self.old and isinstance(node, ast.ImportFrom) and node.module == module:
                break
            return self.imports(node, alias, seen | {module})
        if f"{module}.{name}" in self.old:
            return Module(f"{module}.{name}")
        return None

    def imports(
        self, node: ast.Import | ast.ImportFrom, alias: ast.alias, seen: frozenset[str] = frozenset()
    ) -> Target:
        """What an alias of an import statement binds."""
        if isinstance(node, ast.Import):
            if alias.asname and alias.name in self.old:
                return Module(alias.name)
            top = alias.name.partition(".")[0]
            return Module(top) if top in self.old else Outside(alias.name if alias.asname else top)
        source = node.module or ""
        if node.level or (source not in self.old and not source.startswith(PACKAGE + ".")):
            return Outside(f"{source}.{alias.name}")
        if f"{source}.{alias.name}" in self.old and alias.name not in self.old[source].defined:
            return Module(f"{source}.{alias.name}")
        found = self.attribute(source, alias.name, seen)
        if found is None:
            self.problems.append(f"unknown: from {source} import {alias.name}")
            return Outside(f"{source}.{alias.name}")
        return found

    def binding(self, old: Old, name: str, scope: Scope) -> tuple[Scope | None, Target | None]:
        """Where `name` as used in `scope` is bound, and what it stands for if that is by import or in the module."""
        home = scope.find(name)
        if home is None:
            return None, None
        aliases = old.imported.get((id(home), name))
        if aliases:
            return home, self.imports(*aliases[0])
        return home, Symbol(old.name, name) if home.kind == "module" else None

    def fresh(self, target: Symbol) -> str:
        """The name of a symbol after the move."""
        return self.renames.get((target.module, target.name), target.name)


class Output:
    """One file as it is after the move, made of one or more old ones."""

    def __init__(self, move: Move, name: str, parts: list[Old], where: str) -> None:
        self.move = move
        self.name = name  # The new dotted name; that of a test is its path.
        self.parts = parts
        self.where = where
        self.prefixes: dict[str, str] = {}
        self.edits: dict[str, list[tuple[int, int, str]]] = {part.name: [] for part in parts}
        # Modules needed by each import binding: (part, scope, local name) -> new module names.
        self.needs: dict[tuple[str, int, str], set[str]] = defaultdict(set)
        self.uses: list[tuple[Old, ast.AST, Scope, str, str, tuple[str, int, str]]] = []
        self.plain: list[tuple[Old, ast.AST, Scope, str, str]] = []

    def problem(self, part: Old, node: ast.AST, text: str) -> None:
        """Record something that only a person can decide."""
        self.move.problems.append(f"{part.path.relative_to(self.move.root)}:{getattr(node, 'lineno', 0)}: {text}")

    # --- pass 1: every use ----------------------------------------------------------------------------

    def look(self) -> None:
        """Find every use of an internal name, and which modules it needs afterwards."""
        for part in self.parts:
            for node, scope in part.names.uses:
                self._use(part, node, scope, node.id)
            for call, scope in part.names.calls:
                self._string_argument(part, call, scope)

    def _use(self, part: Old, node: ast.Name, scope: Scope, name: str) -> None:
        home, target = self.move.binding(part, name, scope)
        if home is None:
            self.plain.append((part, node, scope, name, ""))
            return
        local = self._local(part, home, name)
        if local:
            self.edits[part.name].append((*part.text.span(node), local))
        elif isinstance(target, Symbol):
            if isinstance(node.ctx, ast.Load) or target.module == part.name:
                self._symbol(part, node, scope, name, target, bound=part.imported.get((id(home), name)))
        elif isinstance(target, Module):
            self._module(part, node, scope, name, target, (part.name, id(home), name))

    def _local(self, part: Old, home: Scope, name: str) -> str:
        if home.kind not in ("function", "comprehension"):
            return ""
        outer: Scope | None = home
        while outer is not None and outer.kind != "function":
            outer = outer.parent
        while outer is not None:
            fresh = self.move.locals.get((part.name, getattr(outer.node, "name", ""), name), "")
            if fresh:
                return fresh
            outer = outer.parent
        return ""

    def _symbol(self, part, node, scope, name, target, bound) -> None:  # type: ignore[no-untyped-def]
        fresh = self.move.fresh(target)
        inside = self.move.new.get(target.module) == self.name
        aliased = bool(bound) and bound[0][1].asname is not None
        if bound and not inside and aliased:
            return  # The alias stays; only the import statement changes.
        if fresh != name:
            self.edits[part.name].append((*part.text.span(node), fresh))
        self.plain.append((part, node, scope, fresh, target.module))

    def _module(self, part, node, scope, name, target, key) -> None:  # type: ignore[no-untyped-def]
        """`prefix.attribute` as far as it leads through modules."""
        at, module = node, target.name
        while True:
            parent = part.names.parents.get(at)
            if not (isinstance(parent, ast.Attribute) and parent.value is at):
                found = None
                break
            found = self.move.attribute(module, parent.attr)
            if isinstance(found, Module):
                at, module = parent, found.name
                continue
            break
        if (
            found is None
            and isinstance(part.names.parents.get(at), ast.Attribute)
            and part.names.parents[at].value is at
        ):  # type: ignore[union-attr]
            attr = part.names.parents[at].attr  # type: ignore[union-attr]
            if not attr.startswith("__"):
                self.problem(part, node, f"{module} has no {attr}")
        if isinstance(found, Symbol):
            parent = part.names.parents[at]
            fresh_module, fresh = self.move.new[found.module], self.move.fresh(found)
            if fresh_module == self.name:
                self.edits[part.name].append((*part.text.span(parent), fresh))
                self.plain.append((part, parent, scope, fresh, found.module))
            else:
                self.needs[key].add(fresh_module)
                self.uses.append((part, parent, scope, fresh_module, "." + fresh, key))
            return
        fresh_module = self.move.new.get(module, "")
        if not fresh_module:
            self.problem(part, node, f"{module} is used and dropped")
        elif fresh_module == self.name:
            parent = part.names.parents.get(at)
            if isinstance(parent, ast.Attribute) and parent.value is at:
                # Something that the merged module itself imports from outside.
                self.edits[part.name].append((*part.text.span(parent), parent.attr))
            else:
                self.problem(part, node, f"{module} is used as a value inside {self.name}")
        else:
            self.needs[key].add(fresh_module)
            self.uses.append((part, at, scope, fresh_module, "", key))

    def _string_argument(self, part: Old, call: ast.Call, scope: Scope) -> None:
        """`setattr(module, "name", ...)`: the string names an attribute of a module."""
        if not isinstance(call.func, ast.Attribute | ast.Name) or len(call.args) < 2:
            return
        word = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
        second = call.args[1]
        if word not in ("setattr", "delattr", "getattr", "object") or not isinstance(second, ast.Constant):
            return
        module = self._as_module(part, call.args[0], scope)
        if module is None or not isinstance(second.value, str):
            return
        found = self.move.attribute(module, second.value)
        if isinstance(found, Symbol) and found.module == module and self.move.fresh(found) != second.value:
            self.edits[part.name].append((*part.text.span(second), f'"{self.move.fresh(found)}"'))
        elif isinstance(found, Symbol) and found.module != module:
            fresh, home = self.move.new[module], self.move.new[found.module]
            self.move.notes.append(
                f"{part.path.name}:{call.lineno} patches {module}.{second.value}, imported there from {found.module}"
                f" (afterwards {fresh}, {'the same module' if fresh == home else home})"
            )

    def _as_module(self, part: Old, node: ast.AST, scope: Scope) -> str | None:
        if isinstance(node, ast.Name):
            _, target = self.move.binding(part, node.id, scope)
        elif isinstance(node, ast.Attribute):
            base = self._as_module(part, node.value, scope)
            target = self.move.attribute(base, node.attr) if base else None
        else:
            return None
        return target.name if isinstance(target, Module) else None

    # --- pass 2: what each module is called here ------------------------------------------------------

    def name_modules(self) -> None:
        """Choose the local name of every module that is used as a prefix, so that nothing hides it."""
        asked: dict[str, list[str]] = defaultdict(list)
        for part, _, _, module, _, key in self.uses:
            for _, alias in part.imported.get((next(i for i in [key[1]]), key[2]), []):
                if alias.asname and alias.asname not in asked[module]:
                    asked[module].append(alias.asname)
        taken = self._top_names()
        for module in dict.fromkeys(use[3] for use in self.uses):
            last, parent = module.rpartition(".")[2], module.rpartition(".")[0].rpartition(".")[2]
            second = f"{parent}_{last}" if parent != PACKAGE else f"{last}s"
            for name in [*asked[module], last, second, f"{parent}_{last}_module"]:
                if not self._hidden(name, module) and taken.get(name, module) == module:
                    self.prefixes[module] = name
                    taken[name] = module
                    break
            else:
                self.move.problems.append(f"{self.where}: no free name for {module}")
        for part, node, _, module, rest, _ in self.uses:
            if module in self.prefixes:
                self.edits[part.name].append((*part.text.span(node), self.prefixes[module] + rest))

    def _top_names(self) -> dict[str, str]:
        """Names that stand at the top of the new file: defined, or imported as anything but an internal module."""
        taken: dict[str, str] = {}
        for part in self.parts:
            for name in part.names.module.bound:
                if name in part.defined:
                    taken[self.move.renames.get((part.name, name), name)] = "defined"
                    continue
                node, alias = part.imported[id(part.names.module), name][0]
                target = self.move.imports(node, alias)
                if isinstance(target, Symbol):
                    if self.move.new[target.module] != self.name:
                        taken[name if alias.asname else self.move.fresh(target)] = "imported"
                elif isinstance(target, Outside):
                    taken[name] = "imported"
        return taken

    def _hidden(self, name: str, module: str) -> bool:
        """Whether a use of `module` stands where `name` is something of a function's own, or `name` is a loop's."""
        if any(name in part.looped for part in self.parts):
            return True
        for part, _, scope, other, _, _ in self.uses:
            if other != module:
                continue
            home = scope.find(name)
            if home is None or home.kind == "module":
                continue
            aliases = part.imported.get((id(home), name), [])
            targets = [self.move.imports(*found) for found in aliases]
            if not targets or any(
                not isinstance(t, Module) or self.needs.get((part.name, id(home), name), set()) - {module}
                for t in targets
            ):
                return True
        return False

    # --- pass 3: clashes ------------------------------------------------------------------------------

    def check(self) -> None:
        """Report every name that would come to mean something else."""
        self._top_clashes()
        tops = self._definitions()
        for part, node, scope, name, module in self.plain:
            if not module:
                # A builtin: nothing at the top of the new file may take its place.
                if name in tops and part.name not in tops[name]:
                    self.problem(part, node, f"{name} is a builtin here, and {', '.join(tops[name])} defines it")
                continue
            home = scope.find(name)
            if home is not None and home.kind != "module":
                aliases = part.imported.get((id(home), name), [])
                same = [self.move.imports(*found) for found in aliases]
                if same and all(isinstance(t, Symbol) and self.move.fresh(t) == name for t in same):
                    continue
                if home.kind == "class" and home is not scope:
                    continue
                if self._local(part, home, name):
                    continue
                owner = getattr(home.node, "name", home.kind)
                self.problem(part, node, f"{name} of {module} is hidden by a local of {owner}()")

    def _definitions(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for part in self.parts:
            for name in part.names.module.bound:
                if name in part.defined:
                    found[self.move.renames.get((part.name, name), name)].append(part.name)
                else:
                    node, alias = part.imported[id(part.names.module), name][0]
                    if isinstance(self.move.imports(node, alias), Outside):
                        found[name].append(part.name)
        return found

    def _top_clashes(self) -> None:
        stands: dict[str, dict[Target, list[str]]] = defaultdict(lambda: defaultdict(list))
        for part in self.parts:
            for name in part.names.module.bound:
                if name == "__all__":
                    continue
                if name in part.defined:
                    target: Target = Symbol(part.name, name)
                    stands[self.move.fresh(target)][target].append(part.name)
                    continue
                for node, alias in part.imported[id(part.names.module), name]:
                    target = self.move.imports(node, alias)
                    if isinstance(target, Module):
                        continue
                    if isinstance(target, Symbol):
                        if self.move.new.get(target.module) == self.name:
                            continue
                        stands[name if alias.asname else self.move.fresh(target)][target].append(part.name)
                    else:
                        stands[name][target].append(part.name)
        for name, targets in stands.items():
            if len(targets) > 1:
                what = "; ".join(f"{', '.join(parts)}: {target}" for target, parts in targets.items())
                self.move.problems.append(f"clash in {self.name}: {name} = {what}")

    # --- pass 4: text ---------------------------------------------------------------------------------

    def statements(self, part: Old, node: ast.Import | ast.ImportFrom, scope: Scope) -> list[str] | None:
        """The lines that an import statement becomes; None where it stays as it is."""
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return None
        lines: dict[str, None] = {}
        changed = False
        for alias in node.names:
            target = self.move.imports(node, alias)
            local = alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)
            if isinstance(target, Outside):
                lines[_one(node, alias)] = None
            elif isinstance(target, Symbol):
                changed = True
                home = self.move.new.get(target.module, "")
                if not home:
                    self.problem(part, node, f"{target.module} is imported and dropped")
                elif home != self.name:
                    fresh = self.move.fresh(target)
                    renamed = f" as {alias.asname}" if alias.asname and alias.asname != fresh else ""
                    lines[f"from {home} import {fresh}{renamed}"] = None
            else:
                changed = True
                needed = self.needs.get((part.name, id(scope), local), set())
                if not needed and isinstance(node, ast.Import) and target.name in self.move.new:
                    lines[f"import {self.move.new[alias.name]}"] = None
                for module in sorted(needed):
                    package, _, last = module.rpartition(".")
                    name = self.prefixes.get(module, last)
                    lines[f"from {package} import {last}" + (f" as {name}" if name != last else "")] = None
        return list(lines) if changed else None

    def lines(self, part: Old, node: ast.Import | ast.ImportFrom | None) -> list[str]:
        """The lines that a statement at the top becomes, whether it changes or not."""
        if node is None:
            return []
        lines = self.statements(part, node, part.names.module)
        return [_one(node, alias) for alias in node.names] if lines is None else lines

    def rename_definitions(self, part: Old) -> None:
        """Definitions and `global` statements of renamed names."""
        for node, scope in part.names.defs:
            fresh = self.move.renames.get((part.name, node.name)) if scope.kind == "module" else None  # type: ignore[attr-defined]
            if fresh:
                start, _ = part.text.span(node)
                head = part.raw[start : start + 400].decode("utf-8", "replace")
                found = re.match(r"(?:async\s+)?(?:def|class)\s+(\w+)", head)
                assert found is not None
                self.edits[part.name].append((start + found.start(1), start + found.end(1), fresh))
        for node, _ in part.names.globals:
            names = [self.move.renames.get((part.name, name), name) for name in node.names]
            if names != node.names:
                self.edits[part.name].append((*part.text.span(node), f"global {', '.join(names)}"))
        for node in ast.walk(part.tree):
            if isinstance(node, ast.arg):
                for scope in {scope for _, scope in part.names.uses}:
                    if scope.kind == "function" and node in scope.bound.get(node.arg, []):
                        fresh = self._local(part, scope, node.arg)
                        if fresh:
                            start, _ = part.text.span(node)
                            self.edits[part.name].append((start, start + len(node.arg.encode()), fresh))

    def strings(self, part: Old) -> None:
        """Dotted names, import statements and file names inside strings."""
        pieces = set()
        for node in ast.walk(part.tree):
            if isinstance(node, ast.JoinedStr):
                pieces.update(id(value) for value in node.values)
        for node in ast.walk(part.tree):
            if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
                continue
            if id(node) in pieces:
                continue
            self._string(part, part.text.span(node))
        for node in ast.walk(part.tree):
            if isinstance(node, ast.JoinedStr):
                self._string(part, part.text.span(node))

    def _string(self, part: Old, span: tuple[int, int]) -> None:
        before = part.raw[span[0] : span[1]].decode()
        if PACKAGE in before:
            after = rewrite(self.move, before, str(part.path.relative_to(self.move.root)))
            if after != before and not any(span[0] <= s and e <= span[1] for s, e, _ in self.edits[part.name]):
                self.edits[part.name].append((*span, after))


def rewrite(move: Move, text: str, where: str) -> str:
    """`text` with dotted names, import statements and file names of the package as they are after the move."""
    modules: dict[str, str] = {}

    def imported(match: re.Match[str]) -> str:
        lines: dict[str, list[str]] = {}
        for word in match[2].split(","):
            name, _, local = (piece.strip() for piece in word.strip().partition(" as "))
            found = Module(f"{match[1]}.{name}") if f"{match[1]}.{name}" in move.old else move.attribute(match[1], name)
            if isinstance(found, Module) and found.name in move.new:
                modules[local or name] = found.name
                package, _, fresh = move.new[found.name].rpartition(".")
            elif isinstance(found, Symbol) and found.module in move.new:
                package, fresh = move.new[found.module], move.fresh(found)
            else:
                move.notes.append(f"{where}: not understood in a string: {match[0]}")
                return match[0]
            local = local or name
            lines.setdefault(package, []).append(fresh if fresh == local else f"{fresh} as {local}")
        return "; ".join(f"from {package} import {', '.join(names)}" for package, names in lines.items())

    def dotted(match: re.Match[str]) -> str:
        words = match[0].split(".")
        module, rest = PACKAGE, words[1:]
        while rest and f"{module}.{rest[0]}" in move.old:
            module, rest = f"{module}.{rest[0]}", rest[1:]
        if module == PACKAGE:
            return match[0]
        while rest:
            found = move.attribute(module, rest[0])
            if isinstance(found, Module):
                module, rest = found.name, rest[1:]
            elif isinstance(found, Symbol):
                if found.module == module:
                    rest = [move.fresh(found), *rest[1:]]
                break
            else:
                break
        if module not in move.new:
            if module in move.dropped:
                move.notes.append(f"{where}: a dropped module is named in a string: {match[0]}")
            return match[0]
        return ".".join([move.new[module], *rest])

    def file(match: re.Match[str]) -> str:
        name = f"{PACKAGE}." + match[1].replace("/", ".").removesuffix(".__init__")
        return path_of(move, move.new[name]) if name in move.new else match[0]

    holders: list[str] = []

    def hold(match: re.Match[str]) -> str:
        holders.append(imported(match))
        return f"\0{len(holders) - 1}\0"

    text = IMPORTED.sub(hold, text)
    for local, module in modules.items():
        for (owner, name), fresh in move.renames.items():
            if owner == module:
                text = re.sub(rf"(?<![\w.]){local}\.{name}\b", f"{local}.{fresh}", text)
    text = DOTTED.sub(dotted, text)
    text = FILE.sub(file, text)
    return re.sub(r"\0(\d+)\0", lambda match: holders[int(match[1])], text)


def path_of(move: Move, module: str) -> str:
    """The path of a new module below the root of the checkout."""
    if module.startswith("tools."):
        return f"tests/tools/{module.partition('.')[2]}.py"
    if module == PACKAGE:
        return f"{PACKAGE}/__init__.py"
    if move.new.get(module) == module and move.old[module].package:
        return module.replace(".", "/") + "/__init__.py"
    return module.replace(".", "/") + ".py"


def _one(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    tail = f" as {alias.asname}" if alias.asname else ""
    if isinstance(node, ast.Import):
        return f"import {alias.name}{tail}"
    return f"from {'.' * node.level}{node.module or ''} import {alias.name}{tail}"


def for_types(node: ast.AST) -> bool:
    """Whether this is an `if TYPE_CHECKING:` block."""
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


# --- a merged module ------------------------------------------------------------------------------


def in_order(move: Move, parts: list[Old]) -> list[Old]:
    """The parts so that what one needs at import stands before it."""
    names = {part.name: part for part in parts}
    needs: dict[str, set[str]] = {name: set() for name in names}
    for part in parts:
        typed = {id(n) for s in part.tree.body if for_types(s) for n in ast.walk(s)}
        for node, scope in part.names.imports:
            if scope.kind != "module" or id(node) in typed:
                continue
            for alias in node.names:
                target = move.imports(node, alias)
                source = {target.module} if isinstance(target, Symbol) else set()
                source |= {target.name} if isinstance(target, Module) else set()
                if isinstance(node, ast.ImportFrom) and node.module in names:
                    source.add(node.module)
                needs[part.name] |= (source & set(names)) - {part.name}
    done: list[Old] = []
    while len(done) < len(parts):
        ready = [p for p in parts if p not in done and not needs[p.name] - {d.name for d in done}]
        if not ready:
            left = [p for p in parts if p not in done]
            move.problems.append(f"a circle at import between {', '.join(p.name for p in left)}")
            return [*done, *left]
        done.append(ready[0])
    return done


def merged(move: Move, output: Output) -> str:
    """The text of a new module of the package."""
    runtime: dict[str, None] = {}
    typed: dict[str, None] = {}
    typed_code: list[str] = []
    directives: set[str] = set()
    comments: list[str] = []
    bodies: list[str] = []
    later: list[tuple[Old, ast.Import | ast.ImportFrom]] = []
    future = False
    for part in output.parts:
        edits = output.edits[part.name]
        head_end = 0
        body = list(part.tree.body)
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            head_end = part.text.whole_lines(body[0])[1]
            edits.append((*part.text.whole_lines(body[0]), ""))
            edits[:] = [e for e in edits if e[0] >= head_end or e == edits[-1]]
        first = next((s for s in body[1 if head_end else 0 :]), None)
        region = part.raw[head_end : part.text.whole_lines(first)[0] if first else len(part.raw)].decode()
        for line in region.splitlines():
            if line.startswith("# ruff: noqa:"):
                directives.update(word.strip() for word in line.partition("noqa:")[2].split(","))
            elif line.startswith("#"):
                comments.append(line)
        if first:
            edits.append((head_end, part.text.whole_lines(first)[0], ""))
        for statement in body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                    future = True
                else:
                    at_once, late = _split(move, part, statement)
                    for line in output.lines(part, at_once):
                        runtime[line] = None
                    later += [(part, alias) for alias in late]
                edits.append((*part.text.whole_lines(statement), ""))
            elif for_types(statement):
                for inner in statement.body:  # type: ignore[attr-defined]
                    if isinstance(inner, ast.Import | ast.ImportFrom):
                        lines = output.statements(part, inner, part.names.module)
                        for line in [_one(inner, a) for a in inner.names] if lines is None else lines:
                            typed[line] = None
                    else:
                        start, end = part.text.span(inner)
                        own = [(s - start, e - start, t) for s, e, t in edits if start <= s and e <= end]
                        typed_code.append(edited(part.raw[start:end], own).decode())
                start, end = part.text.whole_lines(statement)
                edits[:] = [e for e in edits if not (start <= e[0] and e[1] <= end)]
                edits.append((start, end, ""))
            elif isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
                start, end = part.text.whole_lines(statement)
                edits[:] = [e for e in edits if not (start <= e[0] and e[1] <= end)]
                edits.append((start, end, _all(move, output, part)))
    for part, alias in later:
        imports_in_functions(output, part, alias, runtime, typed)
    for part in output.parts:
        inner_imports(output, part, runtime)
        bodies.append(edited(part.raw, _joined(output.edits[part.name])).decode().strip("\n"))
    typed = {line: None for line in typed if line not in runtime}
    head = [documented(move, output)]
    head += [f"# ruff: noqa: {', '.join(sorted(directives))}"] if directives else []
    head += list(dict.fromkeys(comments))
    if directives or comments:
        head[0] += "\n"
    if future:
        head.append("\nfrom __future__ import annotations")
    if typed or typed_code:
        runtime["from typing import TYPE_CHECKING"] = None
    top = "\n".join(sorted(runtime))
    block = ""
    if typed or typed_code:
        code = "\n\n".join(typed_code)
        block = "if TYPE_CHECKING:\n" + textwrap.indent("\n".join(sorted(typed)) + f"\n\n{code}", "    ")
    return (
        "\n\n".join(piece for piece in [("\n".join(head) + f"\n\n{top}\n\n{block}").rstrip(), *bodies] if piece.strip())
        + "\n"
    )


def _split(
    move: Move, part: Old, node: ast.Import | ast.ImportFrom
) -> tuple[ast.Import | ast.ImportFrom | None, list[ast.Import | ast.ImportFrom]]:
    """What of an import stays at the top, and what lazy.tsv sends into the functions that use it."""
    wanted = move.lazy.get(part.name, set())
    late = []
    for alias in node.names:
        source = alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
        internal = source.startswith(PACKAGE + ".")
        if ("*" in wanted and internal) or any(
            re.match(re.escape(word) + r"(\.|$)", source) for word in wanted - {"*"}
        ):
            late.append(alias)
    stays = [alias for alias in node.names if alias not in late]

    def having(names: list[ast.alias]) -> ast.Import | ast.ImportFrom:
        if isinstance(node, ast.Import):
            return ast.Import(names=names)
        return ast.ImportFrom(module=node.module, names=names, level=node.level)

    return having(stays) if stays else None, [having([alias]) for alias in late]


def _joined(edits: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """`edits` with those that only insert, at one place, made into one."""
    inserted: dict[int, dict[str, None]] = defaultdict(dict)
    rest = []
    for start, end, text in edits:
        if start == end:
            inserted[start][text] = None
        else:
            rest.append((start, end, text))
    return [*rest, *((at, at, "".join(texts)) for at, texts in inserted.items())]


def imports_in_functions(
    output: Output, part: Old, node: ast.Import | ast.ImportFrom, runtime: dict[str, None], typed: dict[str, None]
) -> None:
    """Import in each function that uses it what is too heavy for the top; for annotations it is imported for types."""
    lines = [line for line in output.lines(part, node) if line not in runtime]
    alias = node.names[0]
    bound = alias.asname or alias.name.partition(".")[0]
    functions: dict[ast.AST, None] = {}
    noted = False
    for use, scope in part.names.uses:
        if use.id != bound or scope.find(bound) is not part.names.module:
            continue
        chain: list[ast.AST] = [use]
        while chain[-1] in part.names.parents:
            chain.append(part.names.parents[chain[-1]])
        if any(_annotates(above, below) for below, above in pairwise(chain)):
            noted = True
            continue
        outer = None
        for below, above in pairwise(chain):
            if isinstance(above, Function) and below in above.body:
                outer = above
        if outer is None:
            runtime.update(dict.fromkeys(lines))
            output.move.notes.append(f"lazy.tsv: {part.name} needs {bound} at import")
            return
        functions[outer] = None
    if noted:
        typed.update(dict.fromkeys(lines))
    for function in functions:
        body = function.body  # type: ignore[attr-defined]
        documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
        first = body[1] if documented else body[0]
        start = part.text.whole_lines(first)[0]
        output.edits[part.name] += [(start, start, f"{' ' * first.col_offset}{line}\n") for line in lines]


def _annotates(above: ast.AST, below: ast.AST) -> bool:
    if isinstance(above, ast.arg | ast.AnnAssign):
        return above.annotation is below
    return isinstance(above, Function) and above.returns is below


def _all(move: Move, output: Output, part: Old) -> str:
    """`__all__` of a module that stays whole, without what it only hands on; nothing where several are merged."""
    if len(output.parts) > 1:
        return ""
    value = next(
        s.value for s in part.tree.body if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == "__all__"
    )
    names = [name for name in ast.literal_eval(value) if name in part.defined]
    return "__all__ = [" + ", ".join(f'"{move.renames.get((part.name, name), name)}"' for name in names) + "]\n"


def inner_imports(output: Output, part: Old, runtime: dict[str, None]) -> None:
    """Rewrite imports below the top level; one that the top of the file has already is left out."""
    top = set(part.tree.body)
    typed = {id(n) for s in part.tree.body if for_types(s) for n in ast.walk(s)}
    for node, scope in part.names.imports:
        if node in top or id(node) in typed:
            continue
        lines = output.statements(part, node, scope)
        if lines is None:
            continue
        lines = [line for line in lines if line not in runtime]
        start, end = part.text.whole_lines(node)
        indent = " " * node.col_offset
        siblings = next(
            getattr(part.names.parents[node], name)
            for name in ("body", "orelse", "finalbody", "handlers")
            if node in getattr(part.names.parents[node], name, [])
        )
        if not lines and len(siblings) == 1:
            lines = ["pass"]
        output.edits[part.name].append((start, end, "".join(f"{indent}{line}\n" for line in lines)))


def documented(move: Move, output: Output) -> str:
    """The docstring of a new module: its own first sentence, and what the old ones said beyond their first."""
    row = move.docs.get(output.name)
    first = [ast.get_docstring(part.tree, clean=True) or "" for part in output.parts]
    if row is None:
        if output.name.startswith(PACKAGE + ".") and output.name not in move.old:
            move.notes.append(f"docs.tsv: no sentence for {output.name}")
        sentence = first[0].partition("\n\n")[0]
    else:
        sentence = row[1]
    more = [READING_ORDER.sub("", text.partition("\n\n")[2]).strip() for text in first]
    body = "\n\n".join(
        [sentence if len(sentence) < WIDTH - 6 else textwrap.fill(sentence, WIDTH - 3), *filter(None, more)]
    )
    body = rewrite(move, body, output.where).replace("\\", "\\\\")
    return f'"""{body}\n"""' if "\n" in body else f'"""{body}"""'


# --- everything -----------------------------------------------------------------------------------


def packages(move: Move) -> dict[str, str]:
    """The text of the `__init__` of every package that has none of its own: a table of its modules, and no import."""
    folders: dict[str, list[str]] = defaultdict(list)
    for name in move.groups:
        if name.startswith(PACKAGE + "."):
            parent = name.rpartition(".")[0]
            folders[parent].append(name)
            while parent != PACKAGE:
                folders.setdefault(parent.rpartition(".")[0], [])
                if parent not in folders[parent.rpartition(".")[0]]:
                    folders[parent.rpartition(".")[0]].append(parent)
                parent = parent.rpartition(".")[0]
    made = {}
    for folder, modules in folders.items():
        if folder == PACKAGE or folder in move.groups:
            continue
        row = move.docs.get(folder)
        if row is None:
            move.notes.append(f"docs.tsv: no sentence for the package {folder}")
        lines = [row[1] if row else f"The package {folder}.", ""]
        for module in sorted(modules):
            about = move.docs.get(module, ("", ""))
            tail = f" -> {about[0]}" if about[0] not in ("", "-") else ""
            line = f"- {module.rpartition('.')[2]}: {about[1]}{tail}"
            lines.append(textwrap.fill(line, WIDTH - 1, subsequent_indent="  ", break_on_hyphens=False))
        made[folder] = '"""' + "\n".join(lines) + '\n"""\n'
    return made


def run(root: Path, *, check: bool, commits: bool) -> int:
    """Do the move; returns the exit code."""
    move = Move(root)
    outputs: list[Output] = []
    for name, olds in move.groups.items():
        parts = in_order(move, [move.old[old] for old in olds])
        outputs.append(Output(move, name, parts, name))
    others = []
    for folder in ("tests", "screenshots"):
        for path in sorted((root / folder).rglob("*.py")):
            if not path.is_relative_to(root / "tests" / "tools"):
                where = str(path.relative_to(root))
                others.append(Output(move, where, [Old(where, path)], where))
    for output in [*outputs, *others]:
        output.look()
        output.name_modules()
        output.check()
    texts: dict[str, str] = {}
    for output in outputs:
        for part in output.parts:
            output.rename_definitions(part)
            output.strings(part)
        texts[path_of(move, output.name)] = merged(move, output)
    for output in others:
        part = output.parts[0]
        for node, scope in part.names.imports:
            lines = output.statements(part, node, scope)
            if lines is not None:
                _, end = part.text.span(node)
                indent = " " * node.col_offset
                start = part.text.span(node)[0]
                output.edits[part.name].append((start, end, f"\n{indent}".join(dict.fromkeys(lines)) or "pass"))
        output.strings(part)
        texts[output.name] = edited(part.raw, output.edits[part.name]).decode()
    inits = packages(move)
    for output in outputs:
        entry = move.docs.get(output.name, ("-",))[0]
        names = {move.renames.get((part.name, name), name) for part in output.parts for name in part.defined}
        if entry not in {"-", *names}:
            move.notes.append(f"docs.tsv: {output.name} has no {entry}")
    for line in dict.fromkeys(move.notes):
        print("note:", line)
    for line in dict.fromkeys(move.problems):
        print("PROBLEM:", line)
    print(
        f"{len(move.old)} modules before, {len(texts) - len(others) + len(inits)} files after, "
        f"{len(set(move.problems))} problems"
    )
    if move.problems or check:
        return 1 if move.problems else 0
    write(move, outputs, texts, inits, commits=commits)
    return 0


def write(move: Move, outputs: list[Output], texts: dict[str, str], inits: dict[str, str], *, commits: bool) -> None:
    """Put the new files where they belong; the largest old part of each is moved by git, so that its history stays."""
    root = move.root

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=root, check=True, stdout=subprocess.DEVNULL)

    waiting: list[tuple[Path, Path]] = []
    gone = [move.old[name].path for name in move.dropped]
    for output in outputs:
        target = root / path_of(move, output.name)
        first, *rest = sorted(output.parts, key=lambda part: -len(part.raw))
        gone += [part.path for part in rest]
        if first.path != target:
            waiting.append((first.path, target))
    for row in move.patches.get("data", []):
        waiting += [(root / row["from"], root / row["to"])] if (root / row["from"]).exists() else []
    # By way of a folder of its own: a target may still be the place of another module.
    aside = root / "moving-modules"
    aside.mkdir()
    for number, (source, _) in enumerate(waiting):
        git("mv", str(source), str(aside / str(number)))
    taken = {target for _, target in waiting}
    for path in gone:
        if path in taken:
            git("rm", "--quiet", "-f", str(path))
    for number, (_, target) in enumerate(waiting):
        target.parent.mkdir(parents=True, exist_ok=True)
        git("mv", str(aside / str(number)), str(target))
    if aside.exists():
        aside.rmdir()
    if commits:
        # A commit of its own for what only changes its place: a file that is renamed and grown at once has no history.
        git("commit", "--quiet", "-m", MOVED)
    for path in gone:
        if path not in taken:
            git("rm", "--quiet", "-f", str(path))
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    for package, text in inits.items():
        extra = "".join(row["text"] for row in move.patches.get("init", []) if row["package"] == package)
        path = root / package.replace(".", "/") / "__init__.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + extra, "utf-8")
    for name in move.patches["texts"]:
        path = root / name
        if path.is_file():
            path.write_text(rewrite(move, path.read_text("utf-8"), name), "utf-8")
    for folder in sorted((root / PACKAGE).rglob("*"), reverse=True):
        if folder.is_dir() and all(item.name == "__pycache__" for item in folder.iterdir()):
            for item in folder.rglob("*.pyc"):
                item.unlink()
            for item in folder.iterdir():
                item.rmdir()
            folder.rmdir()
    move.problems.clear()
    move._patch("after")
    for line in move.problems:
        print("PROBLEM:", line)
    git("add", "-A", PACKAGE, "tests", "screenshots", "pyproject.toml", *move.patches["texts"])
    steps = (
        ["check", "--fix", "--quiet", "--select", "I,F401,F811,RUF022"],
        ["format", "--quiet"],
        ["check", "--fix", "--unsafe-fixes", "--quiet", "--select", "SIM102"],
        ["format", "--quiet"],
        ["check", "--fix", "--output-format", "concise"],
    )
    for words in steps:
        subprocess.run([sys.executable, "-m", "ruff", *words, PACKAGE, "tests", "screenshots"], cwd=root, check=False)
    git("add", "-A", PACKAGE, "tests", "screenshots", "pyproject.toml", *move.patches["texts"])
    if commits:
        git("commit", "--quiet", "-m", MERGED)
    long = {
        name: len((root / name).read_text("utf-8").splitlines()) for name in texts if name.startswith(PACKAGE + "/")
    }
    for name, lines in sorted(long.items(), key=lambda item: -item[1]):
        if lines > 600:
            print(f"longer than 600 lines: {name} {lines}")
    sizes = Counter(str(Path(name).parent) for name in long if not name.endswith("__init__.py"))
    for folder, count in sizes.items():
        if count > 20:
            print(f"more than 20 modules: {folder} {count}")


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", nargs="?", default=str(HERE.parents[1]), help="the checkout (default: this one)")
    parser.add_argument("--check", action="store_true", help="only say what is in the way")
    parser.add_argument("--commits", action="store_true", help="commit the pure renames, then everything else")
    given = parser.parse_args()
    return run(Path(given.root).resolve(), check=given.check, commits=given.commits)


if __name__ == "__main__":
    sys.exit(main())
