"""What releases of OpenClaw do differently, each as a notice."""

from __future__ import annotations

from memory_tui.core import profiles
from memory_tui.notices import Notice


class EmptiedThere(Notice, frozen=True):
    """Without a provider the next sync of the release of `profile` replaces its index by an empty one."""

    profile: str
    code = "openclaw_emptied"
    not_copied = True

    @property
    def message(self) -> str:
        """That it would find nothing."""
        return (
            f"{profiles.get(self.profile).title} would find nothing: without a provider its next sync leaves an empty "
            "index. Here the words are searched all the same."
        )


class FirstSearchThere(Notice, frozen=True):
    """The first search of a new index does not wait for the sync that it starts, in the release of `profile`."""

    profile: str
    code = "openclaw_first_search"
    not_copied = True

    @property
    def message(self) -> str:
        """That it would find nothing yet."""
        return (
            f"{profiles.get(self.profile).title} would find nothing yet: its first search of a new index does not wait "
            "for the notes to be indexed. Here it did."
        )


class ZeroVectors(Notice, frozen=True):
    """`count` chunks have a vector of zeros; the release of `profile` loses its vector side by one of them.

    Without a profile it is said of every release that scores such a chunk 1.
    """

    count: int
    profile: str = ""
    code = "zero_vector"
    not_copied = True

    @property
    def message(self) -> str:
        """How many chunks, and what they count."""
        chunks = f"Chunks whose vector is all zeros, for want of a known word: {self.count}."
        if not self.profile:
            return f"{chunks} Their cosine counts 0 here; OpenClaw counts it 1."
        title = profiles.get(self.profile).title
        return f"{chunks} They count 0 here; {title} loses its whole vector side by one of them."


class OtherVectors(Notice, frozen=True):
    """The rules of `profile` rank by vectors of `provider`, which OpenClaw does not have."""

    profile: str
    provider: str
    code = "other_vectors"

    @property
    def clause(self) -> str:
        """Whose vectors they are, for a line that has little room."""
        return f"by vectors of {'the built-in table' if self.provider == 'builtin' else self.provider}, not OpenClaw's"

    @property
    def message(self) -> str:
        """Whose vectors they are, and what follows for the ranking."""
        return f"{self.profile} ranks here {self.clause}: {profiles.get(self.profile).title} itself gives other hits."

    @property
    def next_step(self) -> str:
        """Ask OpenClaw's own index, or embed as OpenClaw does."""
        return "memory-tui compare-index --query asks its own index; --provider NAME embeds as it does."


def other_vectors(profile: str, provider: str) -> tuple[OtherVectors, ...]:
    """What is said of a ranking by the rules of `profile` over vectors of `provider`."""
    is_release = profile.startswith("openclaw-")
    return (OtherVectors(profile, provider),) if is_release and provider in ("builtin", "onnx") else ()


class CutOtherwise(Notice, frozen=True):
    """The chunks are cut by the rules of release `chunking`, not by those of `profile`, which ranks them."""

    chunking: str
    profile: str
    code = "chunking"

    @property
    def message(self) -> str:
        """Whose rules cut them, and what is different under the others."""
        other = profiles.get(self.profile)
        words = ", and finds words otherwise" if other.exact_paths else ""
        return f"These chunks are cut as OpenClaw {self.chunking} cuts them; {other.title} has others{words}."

    @property
    def next_step(self) -> str:
        """Open it under the other profile."""
        return f"Open this memory with --profile {self.profile}."


class TrustUnread(Notice, frozen=True):
    """OpenClaw's ledger cannot be read, so who a note is from is told by its path; `step` is what to do then."""

    detail: str
    step: str
    code = "ledger_unread"

    @property
    def message(self) -> str:
        """What is not known, and why."""
        return f"Whether OpenClaw trusts these notes is not known. {self.detail}"

    @property
    def next_step(self) -> str:
        """What the reader of the ledger said."""
        return self.step


class NeverRecalledThere(Notice, frozen=True):
    """A project marker in the chunks at `citations` cannot be read, so the release of `profile` never recalls them."""

    profile: str
    citations: tuple[str, ...]
    code = "unreadable_project"

    @property
    def message(self) -> str:
        """Which chunks, and why."""
        where = f"{', '.join(self.citations[:3])}{' and more' if len(self.citations) > 3 else ''}"
        return (
            f"{profiles.get(self.profile).title} never recalls these chunks, because a project marker in them is not "
            f"closed or names no project: {where}."
        )

    @property
    def next_step(self) -> str:
        """Mend the marker."""
        return "Close the comment, or name a project in it."
