"""A provider is set up in a form: kind, address, variable of its key, model. It is tested before it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Label, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from memory_tui.engine import providers
from memory_tui.engine.engine import Engine
from memory_tui.engine.providers import ProviderSetup
from memory_tui.errors import MemoryTuiError
from memory_tui.formatting import one_line
from memory_tui.providers import registry
from memory_tui.tui.dialogs import Box, Dialog, Options
from memory_tui.tui.facts import coloured
from memory_tui.tui.keys import bindings
from memory_tui.tui.view import View

FIELDS = (
    ("address", "address", "where it listens"),
    ("variable", "key in", "the environment variable that holds the key, empty for none; never the key itself"),
    ("model", "model", "empty for its usual one"),
)
"""Id, label and hint of each line of the form."""
_FIRST, _NEVER = ("openai-compatible", "ollama"), {"scripted", "none"}
KINDS = (*_FIRST, *(name for name in registry.NAMES if name not in {*_FIRST, *_NEVER}))
"""Kinds that can be set up; what listens on this machine comes first."""


def shown_patch(setup: ProviderSetup) -> Content:
    """Return what the test came to, and the difference of the file."""
    key = next((str(change.after) for change in setup.patch.changes if change.key == "remote.apiKey"), "")
    read = f" The key is read from the variable {key.strip('${}')}." if key else ""
    return Content("\n\n").join([Content(one_line(setup.answer + read)), coloured(setup.patch.diff().splitlines())])


class SetUp(Dialog[ProviderSetup]):
    """The form over `view`; enter goes from line to line, and on the last one asks the provider."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("text.back")
    FOCUS = "Rows"

    @dataclass
    class Tested(Message):
        """The provider answered, or why not."""

        outcome: ProviderSetup | MemoryTuiError

    def __init__(self, view: View) -> None:
        super().__init__("Set up a provider")
        self.view, self.kind = view, ""

    def body(self) -> ComposeResult:
        """Return the kinds, the lines, and what is to be done."""
        yield Options(
            *(Option(Content.assemble(f" {name:<18} ", (_hint(name), "$foreground-muted")), id=name) for name in KINDS)
        )
        for id_, label, hint in FIELDS:
            with Horizontal(classes="field"):
                yield Label(label, markup=False)
                yield Box(hint=hint, id=id_)
        yield Static("Nothing is written before it answered and you agreed.", id="outcome", markup=False)

    @on(OptionList.OptionSelected)
    def chosen(self, event: OptionList.OptionSelected) -> None:
        """Fill in what is usual for the kind; one that needs nothing is tested at once."""
        event.stop()
        self.kind = event.option.id or ""
        row = registry.row(self.kind)
        self.query_one(".dialog").set_class(bool(row.shape), "-form")
        self.query_one(".dialog").border_title = Content(f"Set up a provider: {self.kind}")
        usual = (row.base_url, providers.usual_variable(row, row.base_url), row.model)
        for (id_, _, _), value in zip(FIELDS, usual, strict=True):
            self.query_one(f"#{id_}", Input).value = self.view.session.typed.get((self.kind, id_), value)
        self.query_one("#model", Input).placeholder = FIELDS[-1][-1] if row.model else "its name, as the server has it"
        if row.shape:
            self.say("Enter goes on; after the model it asks the provider. Nothing is written before you agreed.")
            self.set_focus(self.query_one("#address"))
        else:
            self.test()

    @on(Input.Changed)
    def keep(self, event: Input.Changed) -> None:
        """Keep what is typed for the next time that the form is opened."""
        self.view.session.typed[self.kind, str(event.input.id)] = event.value

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Go to the next line, or ask the provider."""
        event.stop()
        at = [id_ for id_, _, _ in FIELDS].index(str(event.input.id))
        if at + 1 < len(FIELDS):
            self.set_focus(self.query_one(f"#{FIELDS[at + 1][0]}"))
        else:
            self.test()

    def test(self) -> None:
        """Ask the provider for the vector of one sentence."""
        address, variable, model = (self.query_one(f"#{id_}", Input).value.strip() for id_, _, _ in FIELDS)
        if model or registry.row(self.kind).model:
            self.say(f"Asking {address or self.kind} ... escape stops.")
            self.prepare(address, variable, model)
        else:
            self.say("The model is empty. Write its name, as the server has it.", "$error")

    def say(self, words: str, style: str = "") -> None:
        """Write under the form."""
        self.query_one("#outcome", Static).update(Content.styled(one_line(words), style))

    @work(thread=True, exclusive=True, group="set up")
    def prepare(self, address: str, variable: str, model: str) -> None:
        """Ask on a worker thread; what comes after the form was closed is dropped."""
        engine: Engine | None = self.view.session.engine
        if engine is None:
            return
        outcome: ProviderSetup | MemoryTuiError
        try:
            chosen = providers.choice(self.kind, address, variable, model)
            outcome = providers.prepare(engine.plan, chosen)
        except MemoryTuiError as error:
            outcome = error
        if not get_current_worker().is_cancelled:
            self.post_message(self.Tested(outcome))

    @on(Tested)
    def tested(self, message: Tested) -> None:
        """Hand on what answered; say why something did not, and leave the form as it is."""
        if isinstance(message.outcome, MemoryTuiError):
            self.say(f"{message.outcome.message} {message.outcome.next_step}", "$error")
        else:
            self.dismiss(message.outcome)


def _hint(name: str) -> str:
    """Return where a kind of provider is asked."""
    row = registry.row(name)
    if not row.shape:
        return row.cost or "inside memory-tui, no key"
    return row.base_url.removeprefix("https://") or "any address that speaks OpenAI's embeddings"
