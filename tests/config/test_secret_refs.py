"""Secrets: found where OpenClaw finds them, never run for, never seen."""

import json
import stat

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
        ({"source": "file", "provider": "nobody", "id": "/a"}, {}, "no secrets.providers.nobody"),
        ({"source": "file", "provider": "p", "id": "/a"}, {"providers": {"p": {"source": "env"}}}, "of source 'env'"),
        ({"source": "store", "id": "x"}, {}, "does not open"),
        ({"source": "gcp", "id": "x"}, {}, "no secrets.providers"),
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
    assert str(command) in found.problem
    assert "never runs" in found.problem
    assert not trace.exists()


@pytest.fixture
def vault(tmp_path):
    file = tmp_path / "secrets.json"
    file.write_text(json.dumps({"providers": {"open/ai": {"key~": KEY}}, "list": ["a", KEY], "number": 7}))
    file.chmod(0o600)
    return file


def in_file(vault, name, **more):
    return (
        {"source": "file", "provider": "mine", "id": name},
        {"providers": {"mine": {"source": "file", "path": str(vault), **more}}},
    )


@pytest.mark.parametrize("pointer", ["/providers/open~1ai/key~0", "/list/1"])
def test_a_file_is_read_by_pointer(secret, vault, pointer):
    before = vault.stat().st_mtime_ns
    assert secret(*in_file(vault, pointer)).value == KEY
    assert vault.stat().st_mtime_ns == before


def test_a_file_can_be_one_value_and_the_default_provider_of_its_kind(secret, vault):
    vault.write_text(KEY + "\n")
    providers = {"mine": {"source": "file", "path": str(vault), "mode": "singleValue"}}
    found = secret({"source": "file", "id": "value"}, {"providers": providers, "defaults": {"file": "mine"}})
    assert found.value == KEY


@pytest.mark.parametrize("pointer", ["/providers/nobody", "/number", "value", "/list/9", "/list/x", "/number/deep"])
def test_what_is_not_in_the_file_is_said(secret, vault, pointer):
    found = secret(*in_file(vault, pointer))
    assert not found.exists
    assert pointer in found.problem


def test_a_file_that_others_may_read_is_refused_unless_that_is_wanted(secret, vault, tmp_path):
    vault.chmod(0o644)
    assert "others" in secret(*in_file(vault, "/list/1")).problem
    assert secret(*in_file(vault, "/list/1", allowInsecurePath=True)).value == KEY
    assert stat.S_IMODE(vault.stat().st_mode) == 0o644
    link = tmp_path / "link"
    link.symlink_to(vault)
    assert "ordinary" in secret(*in_file(link, "/list/1")).problem
    assert "cannot be read" in secret(*in_file(tmp_path / "none", "/a")).problem
    vault.chmod(0o600)
    vault.write_text("{broken")
    assert not secret(*in_file(vault, "/a")).exists


def test_headers_are_secrets_too(write, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    write({"agents": {"defaults": {"memorySearch": {"remote": {"headers": {"x-a": KEY, "x-b": "Bearer ${MY_KEY}"}}}}}})
    found = load.load(None, None)
    assert {name: value.value for name, value in found.headers()} == {"x-a": KEY, "x-b": f"Bearer {KEY}"}
    assert KEY not in repr(found)
    assert KEY not in repr(found.entries)
