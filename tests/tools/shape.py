"""Count the shape of the package: `python tests/tools/shape.py [--json] [--no-runs] [--shrink] [CHECKOUT]`.

What is counted follows the code, not its layout, so that numbers from before and after a move can be compared:
statements are AST statements without docstrings, a module is executed when one of its functions ran (importing it is
not enough), and files in a circle know each other by any import, those for types and those in functions included.
`RULES` finds what breaks a rule of the layout; tests/test_architecture.py compares it with the exceptions of today, and
`--shrink` takes out of that list what is no exception any more.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

PACKAGE = "memory_tui"
Function = ast.FunctionDef | ast.AsyncFunctionDef
HOOKS = ("do_", "on_", "action_")
"""How a method begins that a key or a message calls by its name."""
OVERRIDES = {
    *("compose", "render", "render_line", "render_lines", "get_content_height", "get_content_width"),
    *("get_selection", "selection_updated", "notify_style_update", "watch_cursor"),
}
"""What Textual calls on a widget: its interface, not one of ours."""
LISTS = {
    "providers": ("openai", "gemini", "voyage", "mistral", "ollama", "builtin"),
    "knobs": ("query.minScore", "query.maxResults", "query.hybrid.mmr.lambda", "recency.weight", "dateBoost"),
    "inbox kinds": ("bad date", "near duplicate", "paraphrase", "stale date", "dead path", "over budget"),
    "overlay views": ("doctor", "storage", "sessions", "recalls", "history", "help"),
}
"""A place spells a list when one of its functions, classes or assignments names at least three of these."""


class Package:
    """The modules of a checkout, parsed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths = sorted((root / PACKAGE).rglob("*.py"))

    # Parsed on first use: every process of the tests imports this, and few ask.
    @cached_property
    def texts(self) -> dict[str, str]:
        """Module -> its text."""
        return {self.name(path): path.read_text("utf-8") for path in self.paths}

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """Module -> its syntax tree."""
        return {name: ast.parse(text) for name, text in self.texts.items()}

    @cached_property
    def nodes(self) -> dict[str, list[ast.AST]]:
        """Module -> every node of its tree."""
        return {name: list(ast.walk(tree)) for name, tree in self.trees.items()}

    def forget(self) -> None:
        """Drop what was parsed."""
        for name in ("texts", "trees", "nodes"):
            vars(self).pop(name, None)

    def name(self, path: Path) -> str:
        """The dotted name of the module at `path`."""
        name = ".".join(path.relative_to(self.root).with_suffix("").parts)
        return name.removesuffix(".__init__")

    def classes(self) -> Iterator[tuple[str, ast.ClassDef]]:
        """Every class at the top of a module, with the module's name."""
        for name, tree in self.trees.items():
            for node in tree.body:
                if isinstance(node, ast.ClassDef):
                    yield name, node

    def functions(self) -> Iterator[tuple[str, Function]]:
        """Every function and method, those inside others too, with the module's name."""
        for name, nodes in self.nodes.items():
            for node in nodes:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield name, node

    def methods(self) -> Iterator[tuple[str, list[Function]]]:
        """Every class at the top of a module as `module.Class`, with its methods."""
        for name, node in self.classes():
            yield f"{name}.{node.name}", [n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]

    def is_folder(self, module: str) -> bool:
        """Whether `module` is a package."""
        return (self.root / module.replace(".", "/")).is_dir()

    def edges(self, *, run_time: bool = False) -> dict[str, set[str]]:
        """The modules of ours that each module imports, those in functions too; for types only if not `run_time`."""
        if run_time:
            return {name: _at_run_time(self, name) for name in self.trees}
        return {
            name: {target for node in nodes for target in self.targets(name, node)}
            for name, nodes in self.nodes.items()
        }

    def targets(self, module: str, node: ast.AST) -> Iterator[str]:
        """The modules of the package that an import statement names."""
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names = [f"{base}.{a.name}" if f"{base}.{a.name}" in self.trees else base for a in node.names]
        else:
            return
        yield from (name for name in names if name in self.trees and name != module)


def _statements(tree: ast.AST) -> int:
    count = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            count += 1
        body = getattr(node, "body", None)
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
            and isinstance(body[0].value.value, str)
        ):
            count -= 1
    return count


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one file, the largest first."""
    order: list[str] = []
    seen: set[str] = set()
    back: dict[str, set[str]] = defaultdict(set)
    for one, others in edges.items():
        for other in others:
            back[other].add(one)

    def walk(start: str, graph: dict[str, set[str]], out: list[str]) -> None:
        waiting: list[tuple[str, Iterator[str]]] = [(start, iter(sorted(graph.get(start, ()))))]
        seen.add(start)
        while waiting:
            node, following = waiting[-1]
            step = next((other for other in following if other not in seen), None)
            if step is None:
                out.append(node)
                waiting.pop()
            else:
                seen.add(step)
                waiting.append((step, iter(sorted(graph.get(step, ())))))

    for name in sorted(edges):
        if name not in seen:
            walk(name, edges, order)
    seen.clear()
    found = []
    for name in reversed(order):
        if name not in seen:
            group: list[str] = []
            walk(name, back, group)
            if len(group) > 1:
                found.append(sorted(group))
    return sorted(found, key=len, reverse=True)


def hands_on(node: ast.AST) -> bool:
    """Whether a method only hands its call on to a part: `return self.part.name(...)`."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if len(body) != 1 or not isinstance(body[0], ast.Return | ast.Expr) or body[0].value is None:
        return False
    value = body[0].value
    value = value.value if isinstance(value, ast.Await) else value
    value = value.func if isinstance(value, ast.Call) else value
    words = ast.unparse(value).split(".") if isinstance(value, ast.Attribute) else []
    return len(words) >= 3 and words[0] == "self"


def depths(package: Package) -> dict[str, int]:
    """How many classes of ours each class of ours is made of, itself included, in its longest chain."""
    bases: dict[str, list[str]] = {}
    for _, node in package.classes():
        bases.setdefault(node.name, []).extend(
            ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases
        )

    def depth(name: str, seen: frozenset[str]) -> int:
        if name not in bases or name in seen:
            return 0
        return 1 + max((depth(base, seen | {name}) for base in bases[name] if base != name), default=0)

    return {name: depth(name, frozenset()) for name in bases}


def is_error(package: Package, name: str) -> bool:
    """Whether the class `name` is one of our errors, which are caught by their family."""
    bases = {node.name: [ast.unparse(base) for base in node.bases] for _, node in package.classes()}
    return name == "MemoryTuiError" or any(is_error(package, base) for base in bases.get(name, ()) if base != name)


def spelt(package: Package) -> dict[str, list[str]]:
    """Where each list is spelt: top-level pieces of code that name at least three of its words as strings."""
    found: dict[str, list[str]] = {name: [] for name in LISTS}
    for module, tree in package.trees.items():
        for node in tree.body:
            words = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
            for name, wanted in LISTS.items():
                if len(words & set(wanted)) >= 3:
                    found[name].append(f"{module}:{node.lineno}")
    return found


def static(package: Package) -> dict[str, object]:
    """Everything that reading the code tells."""
    lines = {name: len(text.splitlines()) for name, text in package.texts.items()}
    edges = package.edges()
    public = Counter(node.name for _, node in package.classes() if not node.name.startswith("_"))
    last = Counter(path.stem for path in package.paths if path.name not in ("__init__.py", "__main__.py"))
    methods = dict(package.methods())
    engine = next(items for name, items in methods.items() if name.endswith(".Engine"))
    found = circles(edges)
    chains = depths(package)
    deepest = max(chains, key=lambda name: (chains[name], name))
    return {
        "modules": len(package.paths),
        "modules without package files": sum(path.name != "__init__.py" for path in package.paths),
        "statements": sum(_statements(tree) for tree in package.trees.values()),
        "lines": sum(lines.values()),
        "median module": statistics.median(lines.values()),
        "median module without package files": statistics.median(
            len(path.read_text("utf-8").splitlines()) for path in package.paths if path.name != "__init__.py"
        ),
        "longest module": max(lines.values()),
        "longest module is": max(lines, key=lambda name: lines[name]),
        "modules over 600 lines": sorted(name for name, count in lines.items() if count > 600),
        "import statements": sum(
            isinstance(node, ast.Import | ast.ImportFrom) for tree in package.trees.values() for node in ast.walk(tree)
        ),
        "files in circles": sum(len(group) for group in found),
        "circles": found,
        "methods that only hand on": sum(hands_on(item) for items in methods.values() for item in items),
        "public methods of Engine": sum(not item.name.startswith("_") for item in engine),
        "longest class chain": chains[deepest],
        "longest class chain is of": deepest,
        "public class names used twice": sorted(name for name, count in public.items() if count > 1),
        "module names used twice": sorted(name for name, count in last.items() if count > 1),
        "more than 20 public methods": sorted(
            name
            for name, items in methods.items()
            if sum(not item.name.startswith(("_", *HOOKS)) for item in items) > 20
        ),
        "more than 15 imports of ours": sorted(
            n for n, names in package.edges(run_time=True).items() if len(names) > 15
        ),
        "lists spelt in": spelt(package),
    }


def _at_run_time(package: Package, name: str) -> set[str]:
    typed = {
        id(inner)
        for node in package.trees[name].body
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    nodes = (node for node in package.nodes[name] if id(node) not in typed)
    return {target for node in nodes for target in package.targets(name, node)}


# --- rules ---------------------------------------------------------------------------------------------------------

MOST_LINES, MOST_MODULES, SMALL_LINES, MOST_METHODS, MOST_IMPORTS, MOST_FUNCTION_LINES = 600, 20, 120, 20, 15, 60
ROWS = {f"{PACKAGE}.{name}" for name in ("providers.wires", "hosts", "cli", "doctor", "tui.views")}
"""Folders whose modules are plug-in rows: a table names them, so that one importer is all they can have."""
COMPOSITION = {f"{PACKAGE}.{name}" for name in ("engine.engine", "tui.app", "cli.main")}
FORBIDDEN = {
    *("look", "looking", "told", "tell", "said", "say", "theirs", "ours", "kept", "held", "given", "place", "thing"),
    *("again", "late", "peek"),
}
SINGLE = dict.fromkeys(("plural", "camel"), "core.formatting")
"""What stands once, and where."""


def first_sentence(tree: ast.Module) -> str:
    """The first sentence of a module's docstring."""
    text = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[.?!])\s", text)[0]


def _long(package: Package) -> set[str]:
    return {name for name, text in package.texts.items() if len(text.splitlines()) > MOST_LINES}


def _two_concepts(package: Package) -> set[str]:
    """Modules whose first sentence joins two things; that of the package itself is what the product does."""
    return {
        name for name, tree in package.trees.items() if name != PACKAGE and re.search(r"\band\b", first_sentence(tree))
    }


def _crowded(package: Package) -> set[str]:
    counts = Counter(name.rpartition(".")[0] for name in package.trees if not package.is_folder(name))
    return {name for name, count in counts.items() if count > MOST_MODULES and name not in ROWS}


def _too_small(package: Package) -> set[str]:
    """Small modules with one importer in their folder, which they belong in.

    One that is imported in functions alone stays: its importer would otherwise begin with everything that it needs.
    """
    late = _imported_late(package)
    importers: dict[str, set[str]] = defaultdict(set)
    for name, targets in package.edges().items():
        for target in targets:
            importers[target].add(name)
    found = set()
    for name, text in package.texts.items():
        folder = name.rpartition(".")[0]
        alone = len(importers[name]) == 1 and {one.rpartition(".")[0] for one in importers[name]} == {folder}
        if (
            alone
            and name not in late
            and len(text.splitlines()) < SMALL_LINES
            and folder not in ROWS
            and not package.is_folder(name)
        ):
            found.add(name)
    return found


def _imported_late(package: Package) -> set[str]:
    """Modules that no module imports, at run time, before it needs them."""
    first = {
        target for name, tree in package.trees.items() for node in tree.body for target in package.targets(name, node)
    }
    return set(package.trees) - first


def _twice(package: Package) -> set[str]:
    classes = Counter(node.name for _, node in package.classes() if not node.name.startswith("_"))
    modules = Counter(name.rpartition(".")[2] for name in package.trees if not package.is_folder(name))
    return {name for name, count in (*classes.items(), *modules.items()) if count > 1}


def _deep(package: Package) -> set[str]:
    return {name for name, depth in depths(package).items() if depth > 2 and not is_error(package, name)}


def _protocols(package: Package) -> dict[str, set[str]]:
    """The methods that each of our protocols asks for."""
    return {
        f"{module}.{node.name}": {item.name for item in node.body if isinstance(item, Function)}
        for module, node in package.classes()
        if any(ast.unparse(base) == "Protocol" for base in node.bases)
    }


def _asked_by_protocols(package: Package) -> dict[str, set[str]]:
    """For each class the methods of the protocols that it fulfils, with what it inherits and its fields."""
    nodes = {node.name: node for _, node in package.classes()}

    def has(node: ast.ClassDef) -> set[str]:
        fields = re.findall(r"self\.(\w+)(?:: [^=\n]+)? = ", ast.unparse(node))
        bases = [nodes[name] for name in map(ast.unparse, node.bases) if name in nodes and name != node.name]
        own = {item.name for item in node.body if isinstance(item, Function)}
        return own.union(fields, *(has(base) for base in bases))

    protocols = [wanted for wanted in _protocols(package).values() if wanted]
    methods = {f"{module}.{node.name}": has(node) for module, node in package.classes()}
    return {name: set().union(*(wanted for wanted in protocols if wanted <= own)) for name, own in methods.items()}


def _wide(package: Package) -> set[str]:
    """Classes with many public methods; those that Textual calls by their names are counted by nobody who reads it.

    A protocol has no code: it is as wide as what is asked of those who fulfil it, and what it asks for is not theirs.
    """
    protocols, asked = _protocols(package), _asked_by_protocols(package)
    found = set()
    for name, items in package.methods():
        own = {item.name for item in items} - asked[name] - OVERRIDES
        if name not in protocols and sum(not one.startswith(("_", *HOOKS)) for one in own) > MOST_METHODS:
            found.add(name)
    return found


def _hand_on(package: Package) -> set[str]:
    """Public methods that only hand a call on to a part of ours, which could be public itself.

    A property shows a fact, and callers must not get the part that they could change it by; a life starts and ends
    through its owner, parts and all; what is made of the arguments first is work; a part that a library made is hidden
    on purpose; and a class that has every method of one of our protocols stands for its part. A key and a message know
    a name alone (HOOKS), and a base class calls what it declares, so neither can know the part.
    """
    stands_for = _asked_by_protocols(package)
    ours = {node.name for _, node in package.classes()} | {name.rpartition(".")[2] for name in package.trees}
    declared = {
        node.name: {item.name for item in node.body if isinstance(item, Function)} for _, node in package.classes()
    }
    found = set()
    for module, node in package.classes():
        items = [item for item in node.body if isinstance(item, Function)]
        inherited = set().union(*(declared.get(ast.unparse(base).partition("[")[0], set()) for base in node.bases))
        for item in items:
            if (
                hands_on(item)
                and not item.name.startswith(("_", "start", "stop", "close", *HOOKS))
                and item.name not in stands_for[f"{module}.{node.name}"] | inherited
                and not any(ast.unparse(mark) in ("property", "cached_property") for mark in item.decorator_list)
                and _passes_on_arguments(item)
                and not _made_by_a_library(node, item, ours)
            ):
                found.add(f"{module}.{node.name}.{item.name}")
    return found


def _call_of(item: Function) -> ast.Call | None:
    """The call that a method which hands on consists of; None where it only names a field."""
    value = getattr(item.body[-1], "value", None)
    value = value.value if isinstance(value, ast.Await) else value
    return value if isinstance(value, ast.Call) else None


def _passes_on_arguments(item: Function) -> bool:
    """Whether the call gets nothing but names, as they came."""
    call = _call_of(item)
    if call is None:
        return False
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return all(isinstance(value, ast.Name | ast.Starred | ast.Constant | ast.UnaryOp) for value in values)


def _made_by_a_library(owner: ast.ClassDef, item: Function, ours: set[str]) -> bool:
    """Whether the part that `item` calls is of a class that is not `ours`, as far as `owner` names its class."""
    part, called = re.findall(r"self\.(\w+)(\(?)", ast.unparse(item.body[-1]))[0]
    named: list[ast.expr | None] = []
    for node in (one for one in owner.body if isinstance(one, Function)):
        if called and node.name == part:
            named.append(node.returns)
        annotations = {arg.arg: arg.annotation for arg in node.args.args}
        for line in ast.walk(node):
            if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == f"self.{part}":
                named.append(line.annotation)
            elif isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == f"self.{part}":
                value = line.value
                named.append(value.func if isinstance(value, ast.Call) else annotations.get(ast.unparse(value)))
    kinds = {kind.strip() for one in named if one for kind in ast.unparse(one).split("|")} - {"None"}
    return bool(kinds) and not any(re.split(r"[.\[]", kind)[0] in ours for kind in kinds)


def _many_imports(package: Package) -> set[str]:
    edges = package.edges(run_time=True)
    return {name for name, names in edges.items() if len(names) > MOST_IMPORTS and name not in COMPOSITION}


def _long_functions(package: Package) -> set[str]:
    return {
        f"{name}.{node.name}"
        for name, node in package.functions()
        if (node.end_lineno or 0) - node.lineno + 1 > MOST_FUNCTION_LINES
    }


def _circles(package: Package) -> set[str]:
    """Files in a circle; the package itself names its interface, each name imported when it is asked for."""
    edges = {name: targets for name, targets in package.edges().items() if name != PACKAGE}
    return {name for group in circles(edges) for name in group}


def _know_the_index(package: Package) -> set[str]:
    """Modules of what stands above the seam for stores that import SQLite's package, for types or not."""
    above = tuple(f"{PACKAGE}.{name}." for name in ("search", "explain", "tune", "curate", "tui"))
    return {
        name
        for name, targets in package.edges().items()
        if name.startswith(above) and any(target.startswith(f"{PACKAGE}.index") for target in targets)
    }


def _know_the_app(package: Package) -> set[str]:
    """Modules of the screen that import the app; they know `Home`."""
    app = f"{PACKAGE}.tui.app"
    screen = f"{PACKAGE}.tui."
    return {name for name, targets in package.edges().items() if app in targets and name.startswith(screen)}


def _defined_twice(package: Package) -> set[str]:
    return {
        f"{module}.{node.name}"
        for module, node in package.functions()
        if node.name.strip("_") in SINGLE and module != f"{PACKAGE}.{SINGLE[node.name.strip('_')]}"
    }


def _stops(package: Package) -> set[str]:
    """Modules outside core that make an event to stop something by: by its name, or because a loop asks it.

    An event that announces something (armed, taken, seen) stops nothing.
    """
    found = set()
    for name, tree in package.trees.items():
        if name.startswith(f"{PACKAGE}.core."):
            continue
        asked = {
            ast.unparse(node.func.value)
            for loop in ast.walk(tree)
            if isinstance(loop, ast.While)
            for test in ast.walk(loop.test)
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
            for node in ast.walk(test)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "is_set"
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                value = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                target = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else [node.targets[0]]
                for event, made in zip(target, value, strict=False):
                    stops = (
                        re.search(r"stop|clos|end|cancel|quit|gone", ast.unparse(event)) or ast.unparse(event) in asked
                    )
                    if stops and ast.unparse(made) == "threading.Event()":
                        found.add(name)
    return found


def _forbidden(package: Package) -> set[str]:
    """Modules, classes, aliases and public functions, nested ones too, with a name that the glossary replaces."""
    modules = {name for name in package.trees if name.rpartition(".")[2] in FORBIDDEN}
    classes = {f"{module}.{node.name}" for module, node in package.classes() if node.name.lower() in FORBIDDEN}
    functions = {f"{module}.{node.name}" for module, node in package.functions() if node.name in FORBIDDEN}
    aliases = {f"{module}.{name}" for module, name in _aliases(package) if name.lower() in FORBIDDEN}
    return modules | classes | functions | aliases


def _aliases(package: Package) -> Iterator[tuple[str, str]]:
    """Every name that stands for another: imported `as` it anywhere, or a type by an assignment at the top."""
    for module, nodes in package.nodes.items():
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from ((module, alias.asname) for alias in node.names if alias.asname)
        for node in package.trees[module].body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                named = (target.id for target in targets if isinstance(target, ast.Name))
                # A constant is all capitals.
                yield from ((module, name) for name in named if name[0].isupper() and not name.isupper())


RULES: dict[str, Callable[[Package], set[str]]] = {
    "1 module over 600 lines": _long,
    "1 module that names two concepts": _two_concepts,
    "2 folder of more than 20 modules": _crowded,
    "3 small module with one importer": _too_small,
    "5 name used twice": _twice,
    "6 chain of more than two classes": _deep,
    "6 class with more than 20 public methods": _wide,
    "6 method that only hands on": _hand_on,
    "7 module with more than 15 imports of ours": _many_imports,
    "8 function over 60 lines": _long_functions,
    "9 file in a circle": _circles,
    "9 module above the seam that knows the index": _know_the_index,
    "9 part of the screen that knows the app": _know_the_app,
    "10 second recipe": _defined_twice,
    "10 stop of its own": _stops,
    "12 forbidden name": _forbidden,
}
"""Rule -> what breaks it; the number is that of the rule in CONTRIBUTING.md."""
EXCEPTIONS = Path(__file__).resolve().parents[1] / "architecture_exceptions.toml"


def exceptions() -> dict[str, dict[str, str]]:
    """Rule -> what may break it today -> why."""
    return tomllib.loads(EXCEPTIONS.read_text("utf-8"))


def shrink(package: Package) -> list[str]:
    """Take the exceptions that are gone out of the list; returns them. Nothing is ever added."""
    gone, rule, lines = [], "", []
    found: set[str] = set()
    for line in EXCEPTIONS.read_text("utf-8").splitlines(keepends=True):
        if head := re.fullmatch(r'\["(.+)"\]\n', line):
            rule = head[1]
            found = RULES[rule](package)
        if (row := re.match(r'"(.+?)" = ', line)) and row[1] not in found:
            gone.append(f"{rule}: {row[1]}")
        else:
            lines.append(line)
    EXCEPTIONS.write_text("".join(lines), "utf-8")
    return gone


# --- runs ----------------------------------------------------------------------------------------------------------

TRACE = """
import sys, threading
RAN, importing, on = set(), threading.local(), [False]
def profile(frame, event, argument):
    code = frame.f_code
    if code.co_name == "<module>":
        depth = getattr(importing, "depth", 0)
        importing.depth = max(depth + (event == "call") - (event == "return"), 0)
    elif event == "call" and on[0] and code.co_flags & 1 and not getattr(importing, "depth", 0):
        if "/memory_tui/" in code.co_filename:
            RAN.add(code.co_filename.rpartition("/memory_tui/")[2])
def begin():
    RAN.clear(); on[0] = True
def end():
    on[0] = False
    print("RAN", *sorted(RAN))
threading.setprofile(profile)
"""
FIND = """
import importlib
def find(name, *modules):
    for module in modules:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise SystemExit(f"no {name}")
main = find("main", "memory_tui.cli.main", "memory_tui.cli")
Engine = find("Engine", "memory_tui.engine.engine", "memory_tui.engine")
Options = find("Options", "memory_tui.plan", "memory_tui.launch")
"""
CLI = (
    FIND.replace("Engine = ", "# ").replace("Options = ", "# ")
    + TRACE
    + """
begin(); sys.setprofile(profile)
try:
    main({arguments!r})
finally:
    sys.setprofile(None); end()
"""
)
WARM = (
    FIND
    + TRACE
    + """
with Engine.open(Options(workspace={workspace!r}, index={index!r}, provider="scripted")) as engine:
    # Older checkouts have these methods on the engine itself.
    sync, search = getattr(engine, "indexer", engine).sync, getattr(engine, "queries", engine).search
    sync()
    search("router")
    begin(); sys.setprofile(profile)
    search("vlan on the router")
    sys.setprofile(None); end()
"""
)
KNOB = (
    FIND
    + TRACE
    + """
import asyncio
sys.path.insert(0, {tests!r})
from pathlib import Path
from tests.support.tui import ask, make_app, press, settled
async def turn():
    app = make_app(Path({workspace!r}))
    async with app.run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        await ask(pilot, "omada vlan")
        await press(pilot, "t", "l")
        await settled(pilot)
        begin(); sys.setprofile(profile)
        await press(pilot, "l")
        await settled(pilot)
        sys.setprofile(None); end()
asyncio.run(turn())
"""
)


def filled(code: str, **values: object) -> str:
    """`code` with each `{name!r}` replaced by a value."""
    for name, value in values.items():
        code = code.replace(f"{{{name}!r}}", repr(value))
    return code


def runs(package: Package) -> dict[str, object]:
    """Which modules run in four everyday acts, on the sample workspace in a folder of its own."""
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        own = {
            name: f"{folder}/{name.lower()}" for name in ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")
        }
        environment = {**os.environ, **own, "PYTHONPATH": str(package.root), "MEMORY_TUI_PLAIN": "1"}
        workspace, index = f"{folder}/workspace", f"{folder}/index.sqlite"
        shared = ["--workspace", workspace, "--index", index, "--provider", "scripted"]

        def ran(code: str) -> list[str]:
            done = subprocess.run(
                [sys.executable, "-c", code],
                cwd=package.root,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            lines = [line for line in done.stdout.splitlines() if line.startswith("RAN ")]
            return lines[-1].split()[1:] if lines else [f"failed: {done.stderr[-300:]}"]

        ran(
            FIND.replace("main = ", "# ").replace("Engine = ", "# ").replace("Options = ", "# ")
            + "import datetime as dt, pathlib\n"
            + "find('materialize', 'memory_tui.demo.demo', 'memory_tui.demo')"
            + f"(pathlib.Path({workspace!r}), dt.date.today())"
        )
        ran(filled(CLI, arguments=[*shared, "index"]))
        for name, code in {
            "memory-tui search": filled(CLI, arguments=[*shared, "search", "vlan on the router"]),
            "warm Engine.search": filled(WARM, workspace=workspace, index=index),
            "remember": filled(CLI, arguments=[*shared, "remember", "--yes", "The router has a new name."]),
            "knob turn": filled(KNOB, tests=str(package.root), workspace=workspace),
        }.items():
            modules = ran(code)
            found[f"modules executed by {name}"] = len(modules) if not modules[0].startswith("failed") else modules[0]
            found[f"executed by {name}"] = modules
    return found


def main() -> int:
    """Print the numbers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", nargs="?", default=str(Path(__file__).resolve().parents[2]))
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--no-runs", action="store_true", help="count only what reading the code tells")
    parser.add_argument("--shrink", action="store_true", help="take out of the list the exceptions that are gone")
    given = parser.parse_args()
    package = Package(Path(given.checkout).resolve())
    if given.shrink:
        print(*shrink(package), sep="\n")
        return 0
    numbers = {**static(package), **({} if given.no_runs else runs(package))}
    if given.json:
        print(json.dumps(numbers, indent=2))
        return 0
    for name, value in numbers.items():
        if isinstance(value, list):
            shown = f"{len(value)}" + (f"  {', '.join(map(str, value[:60]))}" if name in ONLY_NAMES and value else "")
        elif isinstance(value, dict):
            shown = ", ".join(f"{key} {len(places)}" for key, places in value.items())
        else:
            shown = f"{value:,}" if isinstance(value, int | float) else str(value)
        print(f"{name:42} {shown}")
    return 0


ONLY_NAMES = {"modules over 600 lines", "module names used twice", "more than 20 public methods"}

if __name__ == "__main__":
    sys.exit(main())
