"""Names of a Python file: which scope binds each, and what every import statement brings in."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef
BUILTINS = frozenset(dir(builtins))


@dataclass(eq=False)
class Scope:
    """One scope: its kind is module, class, function or comprehension."""

    kind: str
    node: ast.AST
    parent: Scope | None
    bound: dict[str, list[ast.AST]] = field(default_factory=dict)
    outer: dict[str, str] = field(default_factory=dict)

    def bind(self, name: str, node: ast.AST) -> None:
        """Record that `node` binds `name` here, or where `global` and `nonlocal` send it."""
        where = self.outer.get(name)
        if where == "global":
            self.top().bound.setdefault(name, []).append(node)
        elif where == "nonlocal":
            assert self.parent is not None
            self.parent.bind(name, node)
        else:
            self.bound.setdefault(name, []).append(node)

    def top(self) -> Scope:
        """The scope of the module."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def find(self, name: str) -> Scope | None:
        """The scope that `name` belongs to when it is used here; none for builtins and unknown names."""
        scope: Scope | None = self
        first = True
        while scope is not None:
            if scope.outer.get(name) == "global":
                top = scope.top()
                return top if name in top.bound else None
            if name in scope.bound and (first or scope.kind != "class"):
                return scope
            first = False
            scope = scope.parent
        return None


class Names(ast.NodeVisitor):
    """Scopes of a whole file: `uses` holds every name node with its scope, `imports` every import with its scope."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.module = Scope("module", tree, None)
        self.uses: list[tuple[ast.Name, Scope]] = []
        self.imports: list[tuple[ast.Import | ast.ImportFrom, Scope]] = []
        self.parents: dict[ast.AST, ast.AST] = {}
        self.defs: list[tuple[ast.AST, Scope]] = []
        self.globals: list[tuple[ast.Global, Scope]] = []
        self.calls: list[tuple[ast.Call, Scope]] = []
        self._now = self.module
        self._annotated = ""
        for parent in ast.walk(tree):
            for child in ast.iter_child_nodes(parent):
                self.parents[child] = parent
        for statement in tree.body:
            self.visit(statement)

    def _inside(self, kind: str, node: ast.AST) -> Scope:
        return Scope(kind, node, self._now)

    def _declared(self, body: list[ast.stmt], scope: Scope) -> None:
        waiting: list[ast.AST] = list(body)
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Global | ast.Nonlocal):
                for name in node.names:
                    scope.outer[name] = "global" if isinstance(node, ast.Global) else "nonlocal"
                if isinstance(node, ast.Global):
                    self.globals.append((node, scope))
            elif not isinstance(node, Function | ast.ClassDef | ast.Lambda):
                waiting.extend(ast.iter_child_nodes(node))

    def _within(self, scope: Scope, nodes: list[ast.AST]) -> None:
        before, self._now = self._now, scope
        for node in nodes:
            self.visit(node)
        self._now = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._now.bind(node.name, node)
        self.defs.append((node, self._now))
        for part in [*node.decorator_list, *self._outside(node.args), *([node.returns] if node.returns else [])]:
            self.visit(part)
        scope = self._inside("function", node)
        self._declared(node.body, scope)
        for arg in self._args(node.args):
            scope.bind(arg.arg, arg)
        self._within(scope, list(node.body))

    @staticmethod
    def _args(args: ast.arguments) -> list[ast.arg]:
        more = [arg for arg in (args.vararg, args.kwarg) if arg]
        return [*args.posonlyargs, *args.args, *args.kwonlyargs, *more]

    def _outside(self, args: ast.arguments) -> list[ast.AST]:
        notes = [arg.annotation for arg in self._args(args) if arg.annotation]
        return [*args.defaults, *[default for default in args.kw_defaults if default], *notes]

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for part in self._outside(node.args):
            self.visit(part)
        scope = self._inside("function", node)
        for arg in self._args(node.args):
            scope.bind(arg.arg, arg)
        self._within(scope, [node.body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._now.bind(node.name, node)
        self.defs.append((node, self._now))
        for part in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(part)
        scope = self._inside("class", node)
        self._declared(node.body, scope)
        self._within(scope, list(node.body))

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        first = node.generators[0]
        self.visit(first.iter)
        scope = self._inside("comprehension", node)
        parts: list[ast.AST] = []
        for number, one in enumerate(node.generators):
            parts += [one.target, *([one.iter] if number else []), *one.ifs]
        parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._within(scope, parts)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        scope = self._now
        while scope.kind == "comprehension":
            assert scope.parent is not None
            scope = scope.parent
        scope.bind(node.target.id, node.target)
        self.uses.append((node.target, scope))
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        # `mode: mode.Mode` in a class: the annotation means the module, not the field.
        self.visit(node.target)
        if node.value:
            self.visit(node.value)
        self._annotated = node.target.id if isinstance(node.target, ast.Name) and self._now.kind == "class" else ""
        self.visit(node.annotation)
        self._annotated = ""

    def visit_Name(self, node: ast.Name) -> None:
        if node.id == self._annotated:
            assert self._now.parent is not None
            self.uses.append((node, self._now.parent))
            return
        if not isinstance(node.ctx, ast.Load):
            self._now.bind(node.id, node)
        self.uses.append((node, self._now))

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._now.bind(node.name, node)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self._now.bind(node.name, node)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self._now.bind(node.name, node)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self._now.bind(node.rest, node)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.imports.append((node, self._now))
        for alias in node.names:
            self._now.bind(alias.asname or alias.name.partition(".")[0], node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.imports.append((node, self._now))
        for alias in node.names:
            self._now.bind(alias.asname or alias.name, node)

    def visit_Call(self, node: ast.Call) -> None:
        self.calls.append((node, self._now))
        self.generic_visit(node)


class Text:
    """The bytes of a file, addressed by the positions of its tree."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._starts = [0]
        for line in raw.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        """The offset of a position (line from 1, column in bytes)."""
        return self._starts[line - 1] + column

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The offsets of a node."""
        return (
            self.at(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.at(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def whole_lines(self, node: ast.AST) -> tuple[int, int]:
        """The offsets of the lines of a statement, its decorators included."""
        first = min([node.lineno, *[one.lineno for one in getattr(node, "decorator_list", [])]])  # type: ignore[attr-defined]
        return self._starts[first - 1], self._starts[node.end_lineno]  # type: ignore[attr-defined]


def edited(raw: bytes, edits: list[tuple[int, int, str]]) -> bytes:
    """`raw` with every (start, end, text) replaced; the same edit twice counts once, others may not overlap."""
    out, at = [], 0
    for start, end, text in sorted(set(edits)):
        if start < at:
            raise ValueError(f"edits overlap at {raw[start : start + 60]!r}")
        out += [raw[at:start], text.encode()]
        at = end
    return b"".join([*out, raw[at:]])
