"""One or two words for a conversation, from a model that somebody named for it; without one there is none.

The conversation is sent to the address that `MEMORY_TUI_SLUG_URL` names and to nobody else, secrets masked.
"""

from __future__ import annotations

import os

from memory_tui.agent.session_hook import slug_of
from memory_tui.text.js import utf16_head

URL, MODEL, KEY = "MEMORY_TUI_SLUG_URL", "MEMORY_TUI_SLUG_MODEL", "MEMORY_TUI_SLUG_KEY"
SECONDS = 15.0
UNITS = 2000
"""UTF-16 units of the conversation that are sent."""


def ask(content: str) -> tuple[str, str]:
    """A slug for the conversation and why there is none; one of the two is empty."""
    base = os.environ.get(URL, "").strip().rstrip("/")
    if not base:
        return "", f"no model is named ({URL})"
    if not content.strip():
        return "", "nothing was said"
    import httpx

    from memory_tui.embed.wire import host_of, on_this_machine

    key = os.environ.get(KEY, "")
    body = {
        "model": os.environ.get(MODEL, "default"),
        "max_tokens": 20,
        "messages": [
            {
                "role": "user",
                "content": (
                    "Name this conversation with one or two words, lower case, joined by a hyphen, and answer with "
                    "nothing "
                    f"else.\n\n{utf16_head(content, UNITS)}"
                ),
            }
        ],
    }
    try:
        # No proxy stands between this machine and itself.
        answer = httpx.post(
            f"{base}/chat/completions",
            json=body,
            timeout=SECONDS,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            trust_env=not on_this_machine(host_of(base)),
        )
        answer.raise_for_status()
        words = answer.json()["choices"][0]["message"]["content"]
    except httpx.HTTPStatusError as error:
        return "", f"the model's server answered {error.response.status_code}"
    except httpx.HTTPError as error:
        return "", f"the model cannot be reached: {type(error).__name__}"
    except (ValueError, KeyError, IndexError, TypeError):
        return "", "the model's answer is not understood"
    slug = slug_of(words) if isinstance(words, str) else ""
    return (slug, "") if slug else ("", "the model gave no usable words")
