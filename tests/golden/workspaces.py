"""Three small memories whose answers are recorded: the sample, one of many languages, one as coding agents write it."""

import datetime as dt
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from memory_tui import demo
from tests.support.workspace import put

TODAY = dt.date(2026, 3, 20)
_KEY = "AKIA" + "J7QX2MPLB5" + "RT4WKE"

_MANY_LANGUAGES = {
    "MEMORY.md": f"""# Household

- The wifi router is an Omada ER605 in the cellar; its address is 10.20.0.1.
- The key of the weather service is {_KEY}
- Dr. Papadopoulos takes new patients again since 2026-02-02.

## Boilers

| Flat | Boiler | Serviced | Pressure |
|---|---|---|---|
| ground floor | Vaillant ecoTEC | 2025-10-14 | 1.4 bar |
| attic | Viessmann Vitodens | 2025-11-03 | 1.6 bar |

## Nothing below

""",
    "memory/2026-03-18.md": """# Mittwoch

Der Heizungsbauer kommt am 24. März um 9 Uhr und prüft den Druck des Kessels im Dachgeschoss.
Der Router im Keller wurde neu gestartet; danach ging das WLAN wieder.

## Einkauf

- Dichtungen, Größe 3/4 Zoll
- Entkalker für die Kaffeemaschine
""",
    "memory/2026-03-10.md": """# Tuesday

The plumber replaced the seal of the washing machine, 84 euros, paid in cash.
The router in the cellar was restarted twice.
""",
    "memory/2026-03-09.md": """# Monday

The plumber replaced the seal of the washing machine, 84 euros, paid in cash.
""",
    "memory/2025-12-01.md": "# Rome\n\nWe fly to Rome on 5 May 2026 at 06:40; seats 14A and 14B, booking RX7Q2.\n",
    "memory/ελληνικά.md": "# Γιατρός\n\nΟ γιατρός μετακόμισε στην οδό Αθηνάς 12· το τηλέφωνο είναι 210 555 0199.\n",
    "memory/中文.md": "# 网络\n\n路由器在地下室，密码写在信封里。周三晚上会自动重启。\n",
    "memory/医生.md": "# 医生\n\n牙医预约是四月三日上午十点。\n",
    "memory/日本語.md": "# 旅行\n\nローマへの飛行機は五月五日の朝です。パスポートの更新を忘れないこと。\n",
    "memory/ไทย.md": "# บ้าน\n\nเราเตอร์อยู่ในห้องใต้ดิน รหัสผ่านอยู่ในซองจดหมาย\n",
    "memory/empty.md": "",
}

_PROJECT_FACTS = {
    "MEMORY.md": """- [Release steps](project_release.md) - tag, build, upload, in this order
- [Tests](feedback_tests.md) - run the tests before each commit
- [Editor](user_editor.md) - Helix, never tabs
""",
    "project_release.md": """---
name: release-steps
description: tag, build, upload, in this order
metadata:
  type: project
---

A release is tagged first, then built by `make dist`, then uploaded from the build server.
The token for the upload is valid until 2026-06-30.
""",
    "feedback_tests.md": """---
name: tests-before-commit
description: run the tests before each commit
metadata:
  type: feedback
---

Run `make test` before each commit. Why: on 2026-02-11 a commit broke the build for a day.
""",
    "user_editor.md": """---
name: editor
description: Helix, never tabs
metadata:
  type: user
---

Uses Helix. Four spaces, never tabs; lines of at most 100 characters.
""",
}

_PROJECT = {
    "MEMORY.md": """# Project

- the build server is called ganymede <!-- importance: 9 --> <!-- trigger: build server, ganymede -->
- releases go out on Thursdays <!-- importance: 3 -->
  unless a holiday is in that week <!-- project: github.com/me/house -->
- the database is PostgreSQL 16 <!-- importance: 5 -->
""",
    "USER.md": "# User\n\n- prefers short answers <!-- importance: 7 -->\n",
    "memory/2026-03-19.md": """# 2026-03-19

- 09:10 moved the nightly build from 02:00 to 03:30, because the backup of ganymede ends at 03:00
- 14:45 the upload failed with 403; the token had been revoked
""",
    "memory/2026-03-02.md": "# 2026-03-02\n\n- PostgreSQL upgraded from 15 to 16, 40 minutes of downtime\n",
    "memory/projects/house.md": "# House\n\nThe house project reads its sensors over MQTT: house/+/temperature.\n",
}


def _write(root: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        put(root, name, text=text)
        day = name.removeprefix("memory/")[:10]
        edited = dt.date.fromisoformat(day) if day[:2] == "20" else TODAY - dt.timedelta(days=5)
        evening = dt.datetime.combine(edited, dt.time(18), dt.UTC).timestamp()
        os.utime(root / name, (evening, evening))


def _sample(root: Path) -> list[str]:
    demo.materialize(root / "notes", TODAY, more=True)
    return []


def _many_languages(root: Path) -> list[str]:
    _write(root / "notes", _MANY_LANGUAGES)
    return []


def _coding_agent(root: Path) -> list[str]:
    _write(root / "notes", _PROJECT)
    _write(root / "facts", _PROJECT_FACTS)
    put(root / "notes", ".claude/settings.json", text=json.dumps({"autoMemoryDirectory": str(root / "facts")}))
    return ["--claude-code"]


WORKSPACES: dict[str, tuple[Callable[[Path], list[str]], tuple[str, ...], str]] = {
    "demo": (
        _sample,
        ("how does the VPN router get its address", "what did we plan for last week", "cheapest flights to Mars"),
        "memory/network.md:7",
    ),
    "languages": (
        _many_languages,
        ("which boiler is in the attic", "Wann kommt der Heizungsbauer", "路由器密码", "routr in the celar"),
        "memory/2026-03-10.md:4",
    ),
    "coding": (
        _coding_agent,
        ("when is the nightly build", "build server ganymede release", "tabs or spaces"),
        "memory/2026-03-02.md:3",
    ),
}
"""By name: what writes the notes below a folder and returns the options that go with them; questions; a line."""
