"""Links lead to the notes that people mean, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.notes.links import LinkIndex, Names, links
from memory_tui.workspace.roots import Roots
from tests.support.curate import curator, workspace

PATHS = ("MEMORY.md", "memory/2026-01-12.md", "memory/home-network.md", "memory/work/notes.md", "memory/读书笔记.md")
PATHS += ("memory/a/harbour/Pump log.md", "memory/b/quay/Pump log.md")
NAMES = Names(PATHS)


def found(text, path="MEMORY.md"):
    return [(link.kind, link.target, link.target_line) for link in links(path, text, NAMES)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[[home-network]]", ("wiki", "memory/home-network.md", 0)),
        ("[[Home Network|the lab]]", ("wiki", "memory/home-network.md", 0)),
        ("[[2026-01-12#Car]]", ("wiki", "memory/2026-01-12.md", 0)),
        ("[[work/notes]]", ("wiki", "memory/work/notes.md", 0)),
        ("[[读书笔记]]", ("wiki", "memory/读书笔记.md", 0)),
        ("[[quay/pump-log]]", ("wiki", "memory/b/quay/Pump log.md", 0)),
        ("| [[harbour/Pump log\\|pump]] |", ("wiki", "memory/a/harbour/Pump log.md", 0)),
        ("[[bour/Pump log]]", ("wiki", "", 0)),
        ("[[nothing]]", ("wiki", "", 0)),
        ("[lab](memory/home-network.md)", ("markdown", "memory/home-network.md", 0)),
        ("[lab](home-network.md#L7)", ("markdown", "memory/home-network.md", 7)),
        ('[x](<memory/work/notes.md> "title")', ("markdown", "memory/work/notes.md", 0)),
        ("[x](memory/%E8%AF%BB%E4%B9%A6%E7%AC%94%E8%AE%B0.md)", ("markdown", "memory/读书笔记.md", 0)),
        ("[x](gone.md)", ("markdown", "", 0)),
        ("see memory/2026-01-12.md#L3-L5.", ("citation", "memory/2026-01-12.md", 3)),
        ("(from memory/2026-01-12.md)", ("citation", "memory/2026-01-12.md", 0)),
        ("`memory/home-network.md:12`", ("citation", "memory/home-network.md", 12)),
        ("in memory/读书笔记.md.", ("citation", "memory/读书笔记.md", 0)),
    ],
)
def test_what_a_link_means(text, wanted):
    assert found(text) == [wanted]


def test_relative_links_and_own_folder():
    assert found("[up](../home-network.md) [me](notes.md)", "memory/work/notes.md") == [
        ("markdown", "memory/home-network.md", 0),
        ("markdown", "memory/work/notes.md", 0),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "README.md", "https://example.org/memory/home-network.md", "```\n[[home-network]]\n```", "words",
        "[x](https://example.org)", "![[", "home-network.mdx",
    ],
)  # fmt: skip
def test_what_is_no_link(text):
    assert found(text) == []


def test_a_link_knows_its_place():
    link = links("MEMORY.md", "one\r\ntwo [[home-network]] x\n", NAMES)[0]
    assert (link.line, link.start, link.end, link.written) == (2, 4, 20, "home-network")


@given(st.text(st.sampled_from("[]()#|L1:.md/ab`\n~-"), max_size=60))
def test_any_text_is_searched(text):
    for link in links("MEMORY.md", text, NAMES):
        assert text.split("\n")[link.line - 1][link.start : link.end]


def test_backlinks_follow_the_notes(tmp_path):
    folder = workspace(tmp_path / "notes")
    (folder / "memory/network.md").write_text("# Network\n- Router\n")
    (folder / "MEMORY.md").write_text("- [[network]]\n- [later](memory/soon.md)\n- the network is slow\n")
    index = LinkIndex(Roots.open(folder))
    assert [(link.source, link.line) for link in index.about("memory/network.md").back] == [("MEMORY.md", 1)]
    assert [link.written for link in index.about("MEMORY.md").links if not link.target] == ["memory/soon.md"]
    (folder / "memory/soon.md").write_text("see memory/network.md#L2\n")
    back = [(link.source, link.target_line) for link in index.about("memory/network.md").back]
    assert back == [("MEMORY.md", 0), ("memory/soon.md", 2)]
    assert all(link.target for link in index.about("MEMORY.md").links)
    (folder / "memory/network.md").unlink()
    assert index.about("memory/network.md").back == ()
    assert [link.written for link in index.about("MEMORY.md").links if not link.target] == ["network"]


def test_links_follow_a_note_that_is_renamed(tmp_path):
    folder = workspace(tmp_path / "notes")
    (folder / "memory/work").mkdir()
    (folder / "memory/net.md").write_bytes(b"# Net\r\n[up](../MEMORY.md) [[plan]] [own](work/plan.md)")
    (folder / "memory/work/plan.md").write_bytes(b"see ../net.md and [net](../net.md#L2), [[net|the net]]\n")
    text = b"\xef\xbb\xbf[[Net]] caf\xe9 `memory/net.md:1` [x](memory/net.md) network.md\r\n- net\n"
    (folder / "MEMORY.md").write_bytes(text)
    one = curator(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*.md")}
    change = one.plan.rename("memory/net.md", "memory/work/the net.md")
    assert change.notes == ("Links in 2 lines of 2 other notes follow; the name without .md stays.",)
    one.apply(change)
    assert one.read("MEMORY.md") == (
        b"\xef\xbb\xbf[[the net]] caf\xe9 `memory/work/the net.md:1` [x](memory/work/the%20net.md) network.md\r\n"
        b"- net\n"
    )
    assert one.read("memory/work/plan.md") == b"see the net.md and [net](the%20net.md#L2), [[the net|the net]]\n"
    assert one.read("memory/work/the net.md") == b"# Net\r\n[up](../../MEMORY.md) [[plan]] [own](plan.md)"
    one.undo()
    assert {path: path.read_bytes() for path in folder.rglob("*.md")} == before


def test_a_bare_name_in_prose_stays_one_in_every_folder(tmp_path):
    folder = workspace(tmp_path / "notes")
    (folder / "memory/archive").mkdir()
    (folder / "memory/posts.md").write_bytes(b"- one\n")
    for path in ("memory/archive/old.md", "memory/new.md"):
        (folder / path).write_bytes(b"only found in posts.md, see memory/posts.md\n")
    one = curator(folder)
    one.apply(one.plan.rename("memory/posts.md", "memory/log.md"))
    for path in ("memory/archive/old.md", "memory/new.md"):
        assert one.read(path) == b"only found in log.md, see memory/log.md\n"


def test_a_rename_names_the_files_that_are_no_notes_and_keep_the_old_name(tmp_path):
    folder = workspace(tmp_path / "notes")
    (folder / "memory/posts.md").write_bytes(b"- one\n")
    tools = b"# Tools\nALWAYS save to `memory/posts.md`\n```\ncat memory/posts.md\n```\n"
    (folder / "TOOLS.md").write_bytes(tools)
    (folder / "SOUL.md").write_bytes(b"[[posts]] and the posts\n")
    (folder / "AGENTS.md").write_bytes(b"see MEMORY.md\n")
    (folder / "HUGE.md").write_bytes(b"memory/posts.md " * 100_000)
    (folder / "LINK.md").symlink_to(folder / "TOOLS.md")
    one = curator(folder)
    change = one.plan.rename("memory/posts.md", "memory/log.md")
    assert change.notes == (
        "SOUL.md names it too (line 1) and is not changed.",
        "TOOLS.md names it too (lines 2, 4) and is not changed.",
    )
    one.apply(change)
    assert (folder / "TOOLS.md").read_bytes() == tools
    (folder / "posts.md").write_bytes(b"no note\n")
    (folder / "AGENTS.md").write_bytes(b"see posts.md\n")
    assert not any("AGENTS" in note for note in one.plan.rename("memory/log.md", "memory/posts.md").notes)


def test_sources_of_promoted_lines_follow_an_archived_log(tmp_path):
    folder = workspace(tmp_path / "notes")
    (folder / "memory/2025-01-01.md").write_bytes(b"- one\n")
    one = curator(folder)
    one.apply(one.plan.promote(one.plan.spot("memory/2025-01-01.md", 1), to="Home"))
    one.apply(one.plan.archive(30))
    assert b"- one (from memory/archive/memory/2025-01-01.md)\n" in one.read("MEMORY.md")
    assert one.read("memory/2025-01-01.md") is None
    assert all(link.target for link in one.plan.links.about("MEMORY.md").links)


def test_a_quoted_link_from_the_top_follows_a_note_that_its_name_alone_would_still_find(tmp_path):
    folder = workspace(tmp_path / "notes")
    (folder / "memory/a b.md").write_bytes(b"- one\n")
    (folder / "memory/net.md").write_bytes(b"[x](memory/a%20b.md)\n")
    one = curator(folder)
    one.apply(one.plan.rename("memory/a b.md", "memory/archive/memory/a b.md"))
    assert one.read("memory/net.md") == b"[x](memory/archive/memory/a%20b.md)\n"
