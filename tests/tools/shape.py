"""Count the shape of the package: `python tests/tools/shape.py [--json] [--no-runs] [CHECKOUT]`.

What is counted follows the code, not its layout, so that numbers from before and after a move can be compared:
statements are AST statements without docstrings, a module is executed when one of its functions ran (importing it is
not enough), and files in a circle know each other by any import, those for types and those in functions included.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "memory_tui"
HOOKS = ("do_", "on_", "action_")
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
        self.trees = {self._name(path): ast.parse(path.read_text("utf-8")) for path in self.paths}
        self.texts = {self._name(path): path.read_text("utf-8") for path in self.paths}

    def _name(self, path: Path) -> str:
        name = ".".join(path.relative_to(self.root).with_suffix("").parts)
        return name.removesuffix(".__init__")

    def classes(self) -> Iterator[tuple[str, ast.ClassDef]]:
        """Every class at the top of a module, with the module's name."""
        for name, tree in self.trees.items():
            for node in tree.body:
                if isinstance(node, ast.ClassDef):
                    yield name, node

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


def chains(package: Package) -> tuple[int, str]:
    """The longest chain of our own classes, and the class at its end."""
    bases: dict[str, list[str]] = {}
    for _, node in package.classes():
        bases.setdefault(node.name, []).extend(
            ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases
        )

    def depth(name: str, seen: frozenset[str]) -> int:
        if name not in bases or name in seen:
            return 0
        return 1 + max((depth(base, seen | {name}) for base in bases[name] if base != name), default=0)

    best = max(bases, key=lambda name: (depth(name, frozenset()), name))
    return depth(best, frozenset()), best


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
    edges = {
        name: {target for node in ast.walk(tree) for target in package.targets(name, node)}
        for name, tree in package.trees.items()
    }
    public = Counter(node.name for _, node in package.classes() if not node.name.startswith("_"))
    last = Counter(path.stem for path in package.paths if path.name not in ("__init__.py", "__main__.py"))
    methods = {
        f"{module}.{node.name}": [
            item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        for module, node in package.classes()
    }
    engine = next(items for name, items in methods.items() if name.endswith(".Engine"))
    found = circles(edges)
    depth, deepest = chains(package)
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
        "longest class chain": depth,
        "longest class chain is of": deepest,
        "public class names used twice": sorted(name for name, count in public.items() if count > 1),
        "module names used twice": sorted(name for name, count in last.items() if count > 1),
        "more than 20 public methods": sorted(
            name
            for name, items in methods.items()
            if sum(not item.name.startswith(("_", *HOOKS)) for item in items) > 20
        ),
        "more than 15 imports of ours": sorted(name for name in edges if len(_at_run_time(package, name)) > 15),
        "lists spelt in": spelt(package),
    }


def _at_run_time(package: Package, name: str) -> set[str]:
    typed = {
        id(inner)
        for node in package.trees[name].body
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    nodes = (node for node in ast.walk(package.trees[name]) if id(node) not in typed)
    return {target for node in nodes for target in package.targets(name, node)}


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
    given = parser.parse_args()
    package = Package(Path(given.checkout).resolve())
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
