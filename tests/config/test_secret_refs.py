"""Secrets: found where OpenClaw finds them, never run for, never seen."""

import pytest

from memory_tui.config import load

pytest_plugins = ("tests.support.config",)

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def secret(write, monkeypatch):
    """The secret that `apiKey` is, with the `secrets` section of the configuration."""
    monkeypatch.setenv("MY_KEY", KEY)

    def go(api_key, secrets=None):
        write({"agents": {"defaults": {"memorySearch": {"remote": {"apiKey": api_key}}}}, "secrets": secrets or {}})
        found = load.load(None, None).secret("remote.apiKey")
        assert found is not None
        assert KEY not in repr(found) + str(found)
        return found

    return go


@pytest.mark.parametrize(
    "written",
    [
        KEY,
        "${MY_KEY}",
        " ${MY_KEY} ",
        "$MY_KEY",
        "secretref-env:MY_KEY",
        {"source": "env", "id": "MY_KEY"},
        {"source": "env", "provider": "default", "id": "MY_KEY"},
    ],
)
def test_text_and_variables(secret, written):
    found = secret(written)
    assert (found.value, found.exists, found.problem) == (KEY, True, "")
    assert "set, from" in str(found)


@pytest.mark.parametrize(
    ("written", "secrets", "why"),
    [
        ("${NOT_SET_AT_ALL}", {}, "NOT_SET_AT_ALL is not set"),
        ("$NOT_SET_AT_ALL", {}, "NOT_SET_AT_ALL is not set"),
        ("", {}, "empty"),
        ({"source": "env"}, {}, "reference"),
        ({}, {}, "reference"),
        (
            {"source": "env", "provider": "strict", "id": "MY_KEY"},
            {"providers": {"strict": {"source": "env", "allowlist": ["OTHER"]}}},
            "allowlist",
        ),
        ({"source": "file", "provider": "mine", "id": "/a"}, {}, "of source 'file', which memory-tui never asks"),
    ],
)
def test_why_there_is_none(secret, written, secrets, why):
    found = secret(written, secrets)
    assert (found.exists, found.value) == (False, "")
    assert why in str(found)


def test_a_command_is_never_run(secret, tmp_path):
    trace, command = tmp_path / "it ran", tmp_path / "vault"
    command.write_text(f"#!/bin/sh\ntouch '{trace}'\necho {KEY}\n")
    command.chmod(0o755)
    found = secret(
        {"source": "exec", "provider": "vault", "id": "openai"},
        {"providers": {"vault": {"source": "exec", "command": str(command)}}},
    )
    assert not found.exists
    assert "of source 'exec', which memory-tui never asks" in found.problem
    assert not trace.exists()


def test_headers_are_secrets_too(write, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    write({"agents": {"defaults": {"memorySearch": {"remote": {"headers": {"x-a": KEY, "x-b": "Bearer ${MY_KEY}"}}}}}})
    found = load.load(None, None)
    assert {name: value.value for name, value in found.headers()} == {"x-a": KEY, "x-b": f"Bearer {KEY}"}
    assert KEY not in repr(found)
    assert KEY not in repr(found.entries)
