"""Trigger recall beside the real OpenClaw: what stands in the prompt is what `inject` says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memory_tui.cli import main
from tests.support import scripted_model
from tests.support.real_openclaw import NEWEST, WITH_TRIGGERS, Gateway, OpenClaw
from tests.support.scripted_model import Model

NOTES = """# Facts

- The code of the boiler is 4711. <!-- trigger: boiler -->
- The dentist is in Linden Street. <!-- trigger: dentist appointment; tooth ache -->
- The ferry leaves at nine in the evening. <!-- trigger: ferry harbour island tickets -->
- The cello is at the workshop. <!-- trigger: cello -->
- The oboe is in the hall. <!-- trigger: cello, oboe -->
- The viola has a new string. <!-- trigger: cello; viola -->
- The harp was sold in spring. <!-- trigger: cello; harp -->
- The old site runs on Hugo. <!-- trigger: website --> <!-- project: site -->
- Nobody asks for the attic. <!-- importance: 3 -->
- The deed of the house is in the blue folder. <!-- trigger: deed; blauer Ordner -->
"""
MESSAGES = (
    "The boiler shows a fault. What now?",
    "My tooth hurts",
    "Two ferry tickets to the island please",
    "Where is my cello?",
    "How do we deploy the website?",
    "Der blaue Ordner, bitte: blauer ordner",
)


def lines() -> list[str]:
    """What of each entry stands in a prompt."""
    return [line[2:].split(" <!--")[0] for line in NOTES.split("\n") if line.startswith("- ")]


def told(gateway: Gateway, model: Model, message: str, user: str) -> set[str]:
    """Which entries stand before the model for a message beside MEMORY.md itself, which is in the system prompt."""
    model.requests.clear()
    gateway.say(message, user=user)
    prompt = "\n".join(
        scripted_model.flat(one.get("content"))
        for request in model.requests
        for one in request["messages"]
        if one["role"] == "user"
    )
    assert message in prompt
    return {line for line in lines() if line in prompt}


@pytest.mark.soak
@pytest.mark.real_host
@pytest.mark.timeout(900)
def test_what_openclaw_injects_is_what_we_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with scripted_model.answering() as model:
        installed = OpenClaw(NEWEST, tmp_path, tmp_path / "notes", model)
        installed.workspace.mkdir()
        (installed.workspace / "MEMORY.md").write_text(NOTES)
        installed.configure({**WITH_TRIGGERS, "allow": ["memory-core", "active-memory"]})
        tree = json.loads(installed.config_path.read_text())
        tree["memory"] = {"search": {"provider": "none"}}
        installed.config_path.write_text(json.dumps(tree))
        with installed.gateway() as gateway:
            # Its index is made while the first messages are answered.
            for turn in range(20):
                if told(gateway, model, MESSAGES[0], f"warm{turn}"):
                    break
            injected = {message: told(gateway, model, message, f"u{at}") for at, message in enumerate(MESSAGES)}
    ours: dict[str, set[str]] = {}
    shared = ["--workspace", str(installed.workspace), "--index", str(tmp_path / "i.sqlite"), "--provider", "none"]
    for message in MESSAGES:
        assert main.main([*shared, "--profile", "openclaw-2026.9", "--json", "openclaw", "inject", message]) == 0
        found = [one["entry"] for one in json.loads(capsys.readouterr().out) if one["outcome"] == "injected"]
        ours[message] = {line for line in lines() if any(line in entry["text"] for entry in found)}
    print(json.dumps({m: [sorted(ours[m]), sorted(injected[m])] for m in MESSAGES}, indent=1))
    assert ours == injected
    assert sum(map(bool, injected.values())) >= 4
