"""A server's command line says which memory it serves, and is read back as it was meant."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memory_tui.cli.main import parsed
from memory_tui.hosts.wiring import options_of, words_of
from memory_tui.plan import Options

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0~"), min_size=1, max_size=12)
PATHS = TEXT.map(lambda name: str(Path("/") / name.replace("/", "_")))
CHANGES = st.one_of(
    st.tuples(st.just("profile"), TEXT),
    st.tuples(st.sampled_from(["query.minScore", "a.b"]), st.text(max_size=8).filter(lambda text: "\0" not in text)),
)


@given(
    options=st.builds(
        Options,
        workspace=st.none() | PATHS,
        config=st.none() | PATHS,
        index=st.none() | PATHS,
        agent=st.sampled_from(["", "-x", "--agent=-x"]) | TEXT,
        provider=st.just("") | TEXT,
        changes=st.lists(CHANGES, max_size=3).map(tuple),
        projects=st.lists(TEXT, max_size=2).map(tuple),
        extra=st.lists(PATHS, max_size=2).map(tuple),
    )
)
def test_words_are_read_back_as_the_options_that_they_are_of(options: Options) -> None:
    words = words_of(options)
    assert options_of(words) == options
    assert options_of(["/bin/memory-tui", "mcp", "--no-prompts", "--log-recalls", *words]) == options
    assert parsed(["mcp", *words]).agent == options.agent
