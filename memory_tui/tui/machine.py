"""The memories on this machine: a page of the app, and what is asked where no workspace is meant."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace
from textual import on
from textual.app import App, ComposeResult
from textual.content import Content
from textual.widgets import Footer, OptionList

from memory_tui.engine import machine
from memory_tui.engine.engine import Engine
from memory_tui.formatting import one_line
from memory_tui.tui import themes
from memory_tui.tui.facts import MUTED, WARN, Fact, Facts, Listing
from memory_tui.tui.session import Reopen, opener_of
from memory_tui.tui.view import View


def rows(memories: Sequence[machine.Memory], here: Path | None = None, decisions: int | None = None) -> Iterator[Fact]:
    """Yield each memory with what is to be said of it.

    The one at `here` is open and has no key; its inbox waits with `decisions`, None where that was not counted.
    """
    for number, memory in enumerate(memories):
        is_here = here is not None and memory.folder.resolve() == here.resolve()
        words = one_line(f"{memory.host}  {memory.folder}")
        # The count on this screen is newer than the one that was written down.
        memory = replace(memory, decisions=decisions) if is_here and decisions is not None else memory
        yield Fact(words, "" if is_here else f"open:{number}", does=f"{memory.facts}{', open' if is_here else ''}")
        yield from (Fact(one_line(finding), "", WARN, indent=2) for finding in memory.findings)
        if memory.moved_to is not None and not is_here:
            words = one_line(f"Bring it to {memory.moved_to}")
            yield Fact(words, f"move:{number}", indent=2, does="enter shows the move")
    if not memories:
        yield Fact("No agent has a memory on this machine.", style=MUTED)


class MachinePage(Listing):
    """Every memory on this machine; enter opens one, or brings one after its project."""

    def __init__(self, view: View) -> None:
        super().__init__("Every memory on this machine", view, self.memories)
        self.every: list[machine.Memory] = []

    def memories(self, engine: Engine) -> Iterator[Sequence[Fact]]:
        """Yield the memories."""
        self.every = machine.memories(engine.plan.workspace)
        yield list(rows(self.every, engine.plan.workspace, self.view.session.decisions))

    async def act(self, key: str) -> None:
        """Open a memory, or show where it would be brought."""
        verb, _, number = key.partition(":")
        memory, engine = self.every[int(number)], self.view.session.engine
        old, new = memory.folder, memory.moved_to
        if verb == "move" and new is not None:
            title, text = "Bring this memory after its project", Content(f"{old}\n{new}")
            self.view.post_message(View.Asks(title, text, "Move it", lambda _: machine.move(old, new), self.reload))
        elif engine is not None:
            options = replace(engine.plan.options, workspace=str(memory.folder), agent="", index=None)
            self.leave(Reopen(opener_of(lambda: options)))


class Chooser(App[Path]):
    """Asks which memory is opened; ends with its folder, or with nothing."""

    CSS_PATH = "app.tcss"
    BINDINGS = [("escape,q", "quit", "Quit")]  # noqa: RUF012 - declared without ClassVar

    def __init__(self, memories: Sequence[machine.Memory]) -> None:
        self.set_reactive(Chooser.theme, themes.first())
        super().__init__()
        self.memories = memories

    def compose(self) -> ComposeResult:
        """Lay out the list and the keys."""
        yield Facts()
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Show them."""
        facts = [Fact("Which memory do you want to see?", style="bold"), *rows(self.memories)]
        self.query_one(Facts).show([fact for fact in facts if not fact.key.startswith("move:")])

    @on(OptionList.OptionSelected)
    def selected(self, event: OptionList.OptionSelected) -> None:
        """End with the chosen one."""
        kind, _, number = (event.option.id or "").partition(":")
        if kind == "open":
            self.exit(self.memories[int(number)].folder)


def choose_memory() -> Path | None:
    """Return the folder of the memory that a person chooses; None where there is none, or none was chosen."""
    memories = machine.memories()
    return Chooser(memories).run() if memories else None
