"""Notes of strange shape are indexed, and found."""

from __future__ import annotations

from pathlib import Path

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options


def test_notes_of_strange_shape_are_indexed_and_found(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    shapes = {
        "lists": "".join(f"{' ' * (depth % 400)}- item {depth}\n" for depth in range(10_000)),
        "quotes": "".join(f"{'>' * (depth % 200)} quote {depth}\n" for depth in range(5_000)),
        "headings": "".join(f"{'#' * (1 + number % 6)} part {number}\n" for number in range(20_000)),
        "table": "|" + " cell |" * 5_000 + "\n" + "|---" * 5_000 + "|\n",
        "links": "![x](https://127.0.0.1:1/a.png) <img src='https://127.0.0.1:1/b'> [[memory/lists]]\n" * 500,
        "brackets": "[" * 20_000 + "](" * 20_000,
        "empty": "",
        "blank": " \n\t\n" * 1_000,
    }
    for name, text in shapes.items():
        (folder / "memory" / f"{name}.md").write_text(text + ("zebrafish\n" if text.strip() else ""))
    options = Options(
        workspace=str(folder),
        index=str(tmp_path / "i.sqlite"),
        provider="scripted",
        changes=(("sync.watch", "false"), ("query.minScore", "0"), ("query.maxResults", "50")),
    )
    with Engine.open(options) as engine:
        report = engine.index.sync()
        assert report.indexed == len(shapes)
        found = {hit.chunk.path for hit in engine.search.search("zebrafish").recalled}
    assert found == {f"memory/{name}.md" for name, text in shapes.items() if text.strip()}
