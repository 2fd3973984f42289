"""Nothing leaves this machine before a person agreed, once, for this workspace, provider and host."""

import json
import os
import stat

import pytest

from memory_tui.approval import Approvals
from memory_tui.engine.engine import Engine
from memory_tui.errors import ApprovalUnsaved
from memory_tui.providers.registry import host_of, on_this_machine
from tests.support import embed
from tests.support.embed import ELSEWHERE, configure
from tests.support.provider_server import status
from tests.support.workspace import synced

pytest_plugins = ("tests.support.provided",)
pytestmark = pytest.mark.usefixtures("elsewhere")


@pytest.fixture
def approvals(notes, tmp_path):
    return Approvals(notes, tmp_path / "state" / "consent")


def options(tmp_path, named="", /, **section):
    configure(tmp_path, ELSEWHERE, **{"provider": "auto", "model": "", **section})
    return embed.options(tmp_path, provider=named)


def sent(play):
    return [text for request in play.asked for text in request.texts]


def test_an_agreement_is_for_one_workspace_provider_and_host(approvals, tmp_path):
    made = approvals.approve("openai", "api.openai.com", "index --yes")
    assert approvals.find("openai", "api.openai.com") == made
    assert approvals.find("openai", "elsewhere.example") is None
    assert approvals.find("voyage", "api.openai.com") is None
    assert Approvals(tmp_path, approvals.folder).find("openai", "api.openai.com") is None
    assert (made.how, made.workspace) == ("index --yes", os.path.realpath(tmp_path / "notes"))


def test_it_is_remembered_once_with_its_date_and_can_be_taken_back(approvals, notes):
    first = approvals.approve("openai", "api.openai.com", "index --yes")
    assert approvals.approve("openai", "api.openai.com", "again") == first
    second = approvals.approve("voyage", "api.voyageai.com", "in the app")
    again = Approvals(notes, approvals.folder)
    assert again.every() == (first, second)
    assert again.revoke("openai") == (first,)
    assert approvals.find("openai", "api.openai.com") is None
    assert again.revoke() == (second,)
    assert approvals.every() == ()


def test_nobody_else_can_read_it(approvals):
    approvals.approve("openai", "api.openai.com", "index --yes")
    assert stat.S_IMODE(approvals.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in approvals.folder.iterdir()} == {0o600}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"workspace": 1}', "\0", "{}", "of another workspace"])
def test_a_file_that_cannot_be_read_is_no_agreement(approvals, text, tmp_path):
    approvals.approve("openai", "api.openai.com", "index --yes")
    (file,) = approvals.folder.iterdir()
    other = json.dumps({**json.loads(file.read_text()), "workspace": str(tmp_path)})
    file.write_text(other if text == "of another workspace" else text)
    assert approvals.find("openai", "api.openai.com") is None
    assert approvals.every() == ()


def test_what_cannot_be_remembered_is_said(notes, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ApprovalUnsaved, match="cannot be saved"):
        Approvals(notes, tmp_path / "file").approve("openai", "api.openai.com", "index --yes")


HERE = "127.0.0.1:80/v1 localhost:11434 [::1]:8080/v1 127.9.9.9 user:pass@localhost/v1 [::1]"
ELSE = "192.168.1.5:80 localhost.example 127.0.0.1.example:80/ [2001:db8::1]:80 api.openai.com 0.0.0.0 ::1"


@pytest.mark.parametrize(("addresses", "here"), [(HERE, True), (ELSE, False)])
def test_loopback_alone_is_this_machine(addresses, here):
    for address in addresses.split():
        assert on_this_machine(host_of(f"http://{address}")) is here, address


def test_a_key_alone_sends_nothing_and_meaning_is_there_from_the_first_start(play, notes, tmp_path):
    with synced(options(tmp_path)) as engine:
        assert engine.search.search("omada").rules.mode == "hybrid"
        assert engine.status().provider == "builtin"
        proposal = engine.providers.chain.proposal
        assert (proposal.name, proposal.host) == ("openai", "embed.example")
        assert not [notice for notice in engine.notices() if notice.code == "provider"]
    assert play.asked == []


def test_with_a_word_auto_takes_the_first_that_has_a_key(play, notes, tmp_path):
    with synced(options(tmp_path)) as engine:
        made = engine.providers.approve()
        assert (made.provider, made.host, made.how) == ("openai", "embed.example", "in the app")
        engine.index.sync()
        assert engine.status().provider == "openai"
        assert engine.search.search("omada").rules.mode == "hybrid"
        assert engine.providers.chain.proposal is None
    assert any("Omada" in text for text in sent(play))


def test_the_word_holds_for_the_next_process_and_until_it_is_taken_back(play, notes, tmp_path):
    chosen = options(tmp_path, provider="openai")
    with Engine.open(chosen) as engine:
        engine.providers.approve(sync=False)
    with synced(chosen) as engine:
        assert engine.search.search("omada").rules.mode == "hybrid"
        asked = len(play.asked)
        assert [made.provider for made in engine.providers.revoke("openai")] == ["openai"]
        assert engine.search.search("omada").rules.mode == "keywords only"
        (notes / "memory" / "new.md").write_text("quokka\n")
        engine.index.sync()
        assert len(play.asked) == asked


def test_taking_it_back_in_another_process_stops_this_one(play, notes, tmp_path):
    with Engine.open(options(tmp_path, provider="openai")) as engine:
        engine.providers.approve(sync=False)
        engine.index.sync()
        asked = len(play.asked)
        Approvals(notes).revoke()
        assert engine.search.search("omada").rules.mode == "keywords only"
        (notes / "memory" / "new.md").write_text("quokka\n")
        assert "approved" in engine.index.sync().error
        assert len(play.asked) == asked


def test_a_remote_fallback_needs_a_word_of_its_own(play, notes, tmp_path, monkeypatch):
    monkeypatch.setenv("MISTRAL_API_KEY", "m-0123456789")
    play.usual = status(401, {"error": {"message": "no"}})
    Approvals(notes).approve("openai", "embed.example", "before")
    with synced(options(tmp_path, "openai", fallback="mistral")) as engine:
        assert engine.search.search("omada").rules.mode == "keywords only"
        assert engine.providers.chain.members()[1].approved is False
        assert "api.mistral.ai" in engine.notices()[-1].message
    assert {request.path.split("/v1")[0] for request in play.asked} == {"http://embed.example"}


def test_a_try_sends_a_sentence_of_its_own_and_no_note(play, notes, tmp_path):
    with synced(options(tmp_path, provider="openai")) as engine:
        assert engine.providers.chain.try_out()["ok"]
        assert engine.search.search("omada").rules.mode == "keywords only"
    assert set(sent(play)) == {"A note about embeddings."}
