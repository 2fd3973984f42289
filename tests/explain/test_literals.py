"""Sentences written in a view or a renderer: none says anything of recall that no claim or test stands for.

A sentence about a search, a line or a note is the function of a claim, which has a checker. What the modules here write
themselves is a label, or tells a value that a test proves; a new sentence fails until it is one of the three.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import memory_tui

PACKAGE = Path(memory_tui.__file__).parent
TESTS = Path(__file__).parents[1]
CLAIMED = {"edit_text", "past_text", "share_text"}
"""Modules whose functions word claims, which `test_claims` holds them to."""
ELSEWHERE = {"report", "ltm_text"}
"""A page of HTML, and another memory than that of notes."""
VIEWS = (
    "compare_profiles",
    "explaining",
    "fading_view",
    "injected_view",
    "past_views",
    "search_explain",
    "search_view",
    "why_not_view",
)
OF_RECALL = re.compile(
    r"\b(recall(s|ed)?|ranks?|ranked|scores?|scored|hits?|candidates?|fades?|dropped|loses?|lost|found|passes|delivered"
    r"|answers?|answered|chunks?)\b",
    re.IGNORECASE,
)
FEWEST_WORDS = 4
LABELS = {
    "{} cuts notes into other chunks: enter here makes its index",
    "{} cuts notes into other chunks: memory-tui --profile {} makes its index",
    "Recall against noise on the held-out queries, with these knobs:",
    "QMD's own score, not comparable",
    "  QMD gave no answer: {} {}",
    "{} ({} MB; deleting it loses nothing but time)",
    "How the hit under the cursor got its score, line by line.",
    "; under w/o what the cosine loses without a sentence",
    "The chunk of line {}, lines {} to {}:",
    "Shades and w/o: what the cosine loses when a sentence is left out, one at a time; {}.",
    "Scores over the next {} days: {}",
    "In Search, {} turns minScore and half-life; then more may fade.",
    " Enter switches decay on to show what would fade; {} undoes it.",
    "Embedding {} of {} chunks{}; ctrl+c stops",
    "Type a query; the hits appear while you type.",
    "The agent's hits come first. Below a line are the chunks it does not get, each with the reason.",
    "This file is outside the workspace. Choose another hit.",
    "Reading the log of recalls ...",
}
"""Titles, prompts, progress, what a key does."""
VALUES = {
    "{} unrelated questions (#, best hit), {} right chunks by {} (+)": "explain/test_noise.py",
    "\n{} chunks > {} by vector + {} by text = {} candidates > {} over {} > {} recalled   (profile {}, {}{})": (
        "search/test_rank.py"
    ),
    "and {} of the note that score lower": "explain/test_why_not.py",
    "not a candidate; as one it would have {}": "explain/test_sums.py",
    "No evidence: {} with a correct hit; the search starts at {}.": "harness/measure_checks.py",
    "Labels of {} that cannot be read count as not found: {}{}.": "tune/test_evaluate.py",
    "Both recall the same lines in the same order.": "openclaw/test_compare_2026_9.py",
    "QMD's rank {} by {}, from the collection {}. QMD's own score, not comparable: {}. {} {} shows both answers with "
    "reasons.": "tui/test_qmd_view.py",
    "The built-in index has these lines at rank {}.": "tui/test_qmd_view.py",
    "The built-in index does not recall them.": "tui/test_qmd_view.py",
    "The line would be recalled as hit {}.": "harness/edits.py",
    "{} of {} never fade within 180 days": "explain/test_decay.py",
    "Nothing fades: decay is off.": "explain/test_decay.py",
    "No hit of today fades within {} days.": "explain/test_decay.py",
    "both recall {}, only {} {}, only {} {}": "tui/test_judge.py",
    "Neither side recalls anything.": "tui/test_judge.py",
    "QMD recalled {}; the built-in index {}": "tui/test_qmd_view.py",
    "This stage dropped no chunk.": "tui/test_judge.py",
    "No chunk was dropped: every chunk is recalled.": "tui/test_judge.py",
    "There are no notes in {}/ yet, so nothing can be found.": "tui/test_search.py",
}
"""Sentences that tell a value, with the file of tests that holds it against the index."""


def modules() -> Iterator[Path]:
    """Those that speak of recall, beside the wording of claims."""
    yield from (one for one in (PACKAGE / "render").glob("*.py") if one.stem not in CLAIMED | ELSEWHERE)
    yield PACKAGE / "cli" / "common.py"
    yield from (PACKAGE / "tui" / "widgets").glob("why_*.py")
    yield from (PACKAGE / "tui" / "views" / "search" / f"{name}.py" for name in VIEWS)


def literals(source: str) -> Iterator[str]:
    """The texts of a module, `{}` for what is put into them; no docstrings."""
    tree = ast.parse(source)
    bare = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    parts = {id(part) for one in ast.walk(tree) if isinstance(one, ast.JoinedStr) for part in ast.walk(one)}
    for one in ast.walk(tree):
        if isinstance(one, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in one.values)
        elif isinstance(one, ast.Constant) and isinstance(one.value, str) and id(one) not in bare | parts:
            yield one.value


def speaks_of_recall(text: str) -> bool:
    return len(re.findall(r"[A-Za-z]{2,}", text)) >= FEWEST_WORDS and OF_RECALL.search(text) is not None


def test_a_sentence_about_recall_is_a_claim_a_label_or_a_value_that_a_test_holds() -> None:
    written = {text for path in modules() for text in literals(path.read_text()) if speaks_of_recall(text)}
    known = LABELS | set(VALUES)
    assert written - known == set(), "make it the sentence of a claim, with its checker"
    assert known - written == set(), "no longer written"
    assert LABELS.isdisjoint(VALUES)
    for place in set(VALUES.values()):
        assert (TESTS / place).is_file(), place


def test_a_new_sentence_is_seen() -> None:
    source = '''
def said(place):
    """Nothing is recalled by this docstring, ever."""
    label = "hits"
    return f"The line is recalled as the {place} hit." if place else "No note of yours is recalled."
'''
    found = [text for text in literals(source) if speaks_of_recall(text)]
    assert found == ["The line is recalled as the {} hit.", "No note of yours is recalled."]
