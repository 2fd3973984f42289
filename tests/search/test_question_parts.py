"""Questions that ask several things are asked part by part."""

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.explain import wording
from memory_tui.plan import Options
from memory_tui.search.question import parts_of

ONE = """
Who was our dentist before Dr. Hallett?
Where is St. Mary's church?
Which tools, e.g. Pandas, do we use?
Was steht in Nr. 5?
Welche Geräte, z. B. Drucker, haben wir?
¿Qué dijo el Dr. García?
Что сказал г. Иванов?
What did J. R. R. Tolkien write?
Where is the Yahoo! password?
Who was born in Rome and was married twice?
Who is Anna? Router?
我几天前去了北京，住在哪里？
""".strip().splitlines()


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Who painted it, and where does it hang?", ("Who painted it", "where does it hang?")),
        ("Wann war Anna in Rom und wo hat sie gewohnt?", ("Wann war Anna in Rom", "wo hat sie gewohnt?")),
        ("我什么时候去了北京，住在哪里？", ("我什么时候去了北京", "住在哪里？")),
        ("他喜欢什么书？他在哪里工作？", ("他喜欢什么书？", "他在哪里工作？")),
        ("I visited Rome in May. Where did I stay?", ("I visited Rome in May. Where did I stay?",)),
        ("What does Calvin do to relax?", ("What does Calvin do to relax?",)),
        ("Which is better, tea and coffee?", ("Which is better, tea and coffee?",)),
        ("我喜欢读书，也喜欢散步，对吗？", ("我喜欢读书，也喜欢散步，对吗？",)),
        ("router and switch", ("router and switch",)),
        ("", ("",)),
        ("¿Cuándo llegó Ana y dónde se quedó?", ("¿Cuándo llegó Ana", "dónde se quedó?")),
        ("Quand est-elle arrivée? Où a-t-elle dormi?", ("Quand est-elle arrivée?", "Où a-t-elle dormi?")),
        ("Кто это написал и где это висит?", ("Кто это написал", "где это висит?")),
        ("いつ京都へ行った？どこに泊まった？", ("いつ京都へ行った？", "どこに泊まった？")),
        ("Did I pay the rent? Is the heating on?", ("Did I pay the rent?", "Is the heating on?")),
        ("When did Dr. Klein call? What for?", ("When did Dr. Klein call?", "What for?")),
        *((question, (question,)) for question in ONE),
    ],
)
def test_a_question_is_cut_where_another_one_begins(question, parts):
    assert parts_of(question) == parts


HOW = "answers the part with the highest score, so it comes before others: "
QUESTION = "Which vlan has the router, and where does the garlic grow?"


@pytest.fixture
def engine(tmp_path):
    router = [f"The router vlan of site {n} is admin-{n}, and the router is in rack {n}.\n" for n in range(8)]
    notes = {f"memory/router-{n}.md": text for n, text in enumerate(router)}
    notes["memory/garden.md"] = "Garlic grows beside the shed since October.\n"
    for path, text in notes.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    options = Options(workspace=str(tmp_path), index=str(tmp_path / "i.sqlite"), changes=(("profile", "recommended"),))
    with Engine.open(options) as made:
        made.index.sync()
        yield made


def test_the_best_note_of_each_part_comes_first(engine):
    found = engine.search.search(QUESTION)
    assert [notice.fields["parts"] for notice in found.notices if notice.kind == "asked_in_parts"] == [
        ("Which vlan has the router", "where does the garlic grow?")
    ]
    garlic = next(hit for hit in found.recalled if hit.chunk.path == "memory/garden.md")
    assert garlic.second is not None
    assert garlic.second.asked == "where does the garlic grow?"
    assert garlic.second.score == pytest.approx(1.0), "it is the best of its part"
    assert found.recalled.index(garlic) < 2
    assert garlic.second.leads
    assert [hit.second.asked for hit in found.recalled if hit.second and hit.second.leads] == [
        hit.second.asked for hit in found.recalled[:2] if hit.second
    ]
    lines = wording.explain(garlic, found)
    assert any(line.detail == HOW + "where does the garlic grow?" for line in lines)
    assert found.plan.readings == ("asked in 2 parts",)


def test_as_written_a_question_is_one(engine):
    evidence = engine.search.gather(QUESTION, as_written=True)
    found = engine.search.rank(evidence, engine.plan.settings)
    assert not found.plan.parts
    assert all(hit.second is None or not hit.second.asked for hit in found.recalled)
    theirs = engine.search.rank(engine.search.gather(QUESTION), engine.plan.with_profile("openclaw-2026.3"))
    assert not any(notice.kind == "asked_in_parts" for notice in theirs.notices)


def test_function_words_alone_are_no_part(engine):
    assert not engine.search.search("Which vlan has the router and why?").plan.parts
