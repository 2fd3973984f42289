"""Spelling: which words are corrected, to what, and which are left alone."""

import pytest

from tests.support.workspace import options_in, options_of, put, synced

NOTES = """# Home

The Pi-hole runs on the old server.
We back up with restic to the cellar.
The thermostat is a Danfoss, and the boiler a Vaillant.
Homeassistant is on the nuc.
The key of the Wi-Fi hangs in the hall; my wife knows it.
"""


@pytest.fixture
def ask(tmp_path):
    def asked(question, text=NOTES, provider="builtin", **changes):
        put(tmp_path / "notes", "MEMORY.md", text=text)
        more = [f"{key.replace('_', '.')}={value}" for key, value in changes.items()]
        with synced(options_in(tmp_path, "profile=recommended", *more, provider=provider)) as engine:
            return engine.search.search(question)

    return asked


@pytest.mark.parametrize(
    ("question", "asked", "searched"),
    [
        ("restick target", "restick", ("restic",)),
        ("thermostta brand", "thermostta", ("thermostat",)),
        ("where does pihole run", "pihole", ("pi", "hole")),
        ("wifi key", "wifi", ("wi", "fi")),
        ("home assistant", "home assistant", ("homeassistant",)),
        ("home-assistant", "home-assistant", ("homeassistant",)),
    ],
)
def test_what_no_note_holds_is_searched_as_it_was_meant(ask, question, asked, searched):
    trace = ask(question)
    [found] = trace.side.plan.corrections
    assert (found.asked, found.searched) == (asked, searched)
    assert set(searched) <= set(trace.side.plan.words)
    assert trace.funnel["text_matches"]
    [notice] = [notice for notice in trace.notices if notice.code == "spelling"]
    assert asked in notice.message
    assert " ".join(searched) in notice.message


@pytest.mark.parametrize(
    ("question", "text", "asked", "searched"),
    [
        ("flights to Moskva", "Мы летим в город Москва весной.\n", "moskva", "москва"),
        ("когда Москва", "We fly to Moskva in spring.\n", "москва", "moskva"),
        ("北京 hotels", "The hotels in Beijing are good.\n", "北京", "beijing"),
        ("Wann war ich in Athina", "Ich war nicht in Αθήνα, und die Insel war der Traum.\n", "athina", "αθήνα"),
    ],
)
def test_a_name_is_found_in_another_script(ask, question, text, asked, searched):
    trace = ask(question, text)
    assert [(one.asked.lower(), one.searched) for one in trace.side.plan.corrections] == [(asked, (searched,))]
    assert trace.recalled
    assert not ask(question, text, spelling_enabled="false").side.plan.corrections


@pytest.mark.parametrize("form", ["Pi-hole", "pihole", "Pi hole"])
@pytest.mark.parametrize("question", ["Pi-hole", "pihole", "Pi hole"])
def test_each_way_to_write_a_compound_finds_the_others(ask, form, question):
    text = f"The {form} runs on the old server.\n"
    trace = ask(question, text)
    assert trace.funnel["text_matches"]
    assert trace.level.level == "found"


HELD = ["where is the Pi-hole", "guitar lessons", "restic", "the cat", "喜欢什么书", "Wärmepumpen im Heizungskellers"]


@pytest.mark.parametrize("question", HELD)
def test_what_is_held_or_is_a_word_is_left_alone(ask, question):
    text = "Die Wärmepumpe und der Heizungskeller sind nicht neu.\n" if "Wärme" in question else NOTES
    assert not ask(question, text).side.plan.corrections


@pytest.mark.parametrize(
    "question", ["wann eiszeit", "Wann war die Eiszeit", "langer floss", "Wo leben denn die briten", "vahn"]
)
def test_a_word_of_another_language_is_no_error_of_one_that_notes_hold(ask, question):
    text = f"{NOTES}\nWe want gloss paint on the wall, and brites and vans.\n"
    trace = ask(question, text)
    assert not trace.side.plan.corrections
    assert trace.level.level != "found"


SPANISH = "La contraseña del servidor está en la caja. El perro come por la mañana y no por la noche.\n"
OMADA = f"{NOTES}\nThe Omada router has VLAN 20.\n"
ERRORS = {"omoda vlan": "omada", "rouetr": "router", "oruter": "router", "heslo ruoter": "router"}


@pytest.mark.parametrize("question", [*ERRORS, "dónde está la contraseñs del servidor"])
def test_a_real_error_is_found_in_the_language_of_the_notes(ask, question):
    [one] = ask(question, OMADA if question in ERRORS else SPANISH).side.plan.corrections
    assert one.searched == (ERRORS.get(question, "contrasena"),)


def test_it_can_be_switched_off_and_openclaw_never_does_it(ask):
    assert not ask("restick target", spelling_enabled="false").side.plan.corrections
    trace = ask("restick target", profile="openclaw-2026.3")
    assert not trace.side.plan.corrections
    assert "spelling" not in {notice.code for notice in trace.notices}


def test_a_chinese_question_is_answered_by_the_pairs_that_notes_hold(tmp_path):
    notes = tmp_path / "notes" / "memory"
    notes.mkdir(parents=True)
    for day, line in enumerate(["我喜欢读书", "我喜欢爬山，周末常去", "今天下雨"], 1):
        (notes / f"2026-01-0{day}.md").write_text(f"{line}。\n", encoding="utf-8")
    options = options_of(notes.parent, tmp_path / "index.sqlite", ("profile", "recommended"), provider="builtin")
    with synced(options) as engine:
        # 喜欢 stands in most notes, 欢什 and 么书 in none.
        trace = engine.search.search("喜欢什么书")
    assert "喜欢" in trace.side.plan.words
    assert "memory/2026-01-01.md" in {hit.chunk.path for hit in trace.recalled}
