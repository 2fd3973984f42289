"""The command `provider --add` sets a provider up: it tests it, shows the difference of the file, asks, and writes."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_tui.cli.common import confirmed, options, typed, waiting
from memory_tui.core.errors import ConfigError, ProviderError, SettingError

if TYPE_CHECKING:
    from memory_tui.plan import Choices
    from memory_tui.providers.registry import ProviderRow

_COMMAND = "memory-tui provider --add openai-compatible --address http://127.0.0.1:1234/v1 --model NAME"


class _Answers(NamedTuple):
    """A provider as a person describes it; `variable` names the environment variable of its key, empty for none."""

    kind: str
    address: str
    variable: str
    model: str


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `--add` to the parser of `provider`."""
    parser.add_argument(
        "--add", nargs="?", const="", metavar="KIND", help="set a provider up: test it, show the file's difference, ask"
    )
    parser.add_argument("--address", metavar="URL", help="with --add: where it is asked (remote.baseUrl)")
    parser.add_argument("--key-variable", metavar="NAME", help="with --add: the variable that holds its key")
    parser.add_argument("--model", metavar="NAME", help="with --add: its model")


def add(given: argparse.Namespace) -> int:
    """Set up the provider that `given` describes, or that a person describes when asked. Returns the exit code."""
    from memory_tui import plan
    from memory_tui.providers import registry
    from memory_tui.render import as_text
    from memory_tui.tune.config_patch import provider_patch

    choices = plan.choose(options(given))
    answers = _answers(given)
    row = registry.row(answers.kind)
    _require_no_foreign_key(choices, answers, row)
    wanted = _wanted(choices, answers, row)
    found = provider_patch(choices.config, wanted)
    tried = _tried(choices, answers, wanted)
    as_json, agreed = hasattr(given, "json"), False
    if not as_json:
        where = f" at {tried['host']}" if tried["host"] else ""
        as_text.print_lines([f"{tried['provider']} {tried['model']}{where} answers: {tried['dims']:,} dimensions.", ""])
        as_text.print_lines(found.diff().splitlines() or [f"{found.target} says so already."])
    if found.files:
        agreed = confirmed(f"Write to {found.target}?", given)
        if not agreed:
            raise ConfigError("Nothing was written.", "Use --yes to write without a question.")
    written = found.write() if agreed else ()
    if as_json:
        backups = [one.backup for one in written]
        as_text.print_json(
            {"target": str(found.target), "diff": found.diff(), "written": agreed, "backups": backups, "test": tried}
        )
    elif written:
        as_text.print_lines(["Written. To undo it: memory-tui write-config --undo. To use it: memory-tui index."])
    return 0


def _answers(given: argparse.Namespace) -> _Answers:
    """What the command line says, and what a person on a terminal answers about the rest. Raises SettingError."""
    from memory_tui.providers import registry

    asks = not hasattr(given, "yes") and sys.stdin.isatty() and sys.stderr.isatty()

    def answer(name: str, question: str, usual: str) -> str:
        if hasattr(given, name):
            return str(getattr(given, name))
        return typed(question, usual) if asks else usual

    kind = given.add or (typed(f"Kind ({', '.join(registry.NAMES)})", "openai") if asks else "")
    if not kind:
        raise SettingError("No kind of provider is named.", f"For instance: {_COMMAND}.")
    row = registry.row(kind)
    if row.wire is None:
        return _Answers(kind, "", "", "")
    address = answer("address", "Address", row.base_url)
    usual = row.variables[0] if row.variables and address == row.base_url else ""
    variable = answer("key_variable", "Variable of the key, empty for none", usual)
    if variable and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise SettingError(
            "The name of the key's variable is none.", "Name the variable, not the key: --key-variable NAME."
        )
    return _Answers(kind, address, variable, answer("model", "Model", row.model))


def _wanted(choices: Choices, answers: _Answers, row: ProviderRow) -> dict[str, str]:
    """The keys to write: what is not as usual, and whatever the file says otherwise."""
    config = choices.config
    said = (("model", answers.model, row.model), ("remote.baseUrl", answers.address, row.base_url))
    wanted = {key: value for key, value, usual in said if value and (value != usual or config.value(key))}
    if answers.variable and (answers.variable not in row.variables or "remote.apiKey" in config.entries):
        wanted["remote.apiKey"] = f"${{{answers.variable}}}"
    return {"provider": answers.kind, **wanted}


def _require_no_foreign_key(choices: Choices, answers: _Answers, row: ProviderRow) -> None:
    """Raises ConfigError where the new provider would get a key or headers that the file has for another address."""
    config = choices.config
    same = config.provider == answers.kind and (config.value("remote.baseUrl") or row.base_url) == answers.address
    left = {"remote.headers", *(() if answers.variable else ("remote.apiKey",))} & set(config.entries)
    if row.wire is not None and left and not same:
        raise ConfigError(
            f"{config.path} has {' and '.join(sorted(left))} for {config.provider or 'another provider'}, and "
            f"{answers.address} would get that.",
            "Take it out of the file, or name the new key: --key-variable NAME.",
        )


def _tried(choices: Choices, answers: _Answers, wanted: Mapping[str, str]) -> dict[str, Any]:
    """What came back for one sentence of memory-tui's own. Raises ProviderError, SettingError."""
    from msgspec.structs import replace

    from memory_tui import plan
    from memory_tui.approval import Approvals
    from memory_tui.providers.chain import Chain
    from memory_tui.providers.provider_options import Secret

    usual = plan.settings(choices, Approvals(choices.workspace))
    written = "remote.apiKey" in wanted
    key = usual.env(answers.variable) if written else ""
    if written and not key:
        raise SettingError(f"The variable {answers.variable} is not set here.", "Set it, then run this again.")
    settings = replace(
        usual,
        requested=answers.kind,
        model=answers.model,
        base_url=answers.address,
        api_keys=(Secret(key),) if key else usual.api_keys,
        fallback="",
    )
    chain = Chain(settings, lambda _error: None)
    try:
        with waiting(f"Asking {answers.address or answers.kind}"):
            found = chain.try_out(answers.kind)
    finally:
        chain.close()
    if not found["ok"]:
        raise ProviderError(f"Nothing was written: {found.get('error')}", found.get("nextStep", ""))
    return found
