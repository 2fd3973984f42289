"""One table of sentences: what is lost or unusual about an answer or an index, and what a person can do about it.

A notice is a kind of the table with the fields that its sentence names. Programs know it by its code, which several
kinds may share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Any

from msgspec import Struct

from memory_tui.core import profiles
from memory_tui.core.formatting import plural
from memory_tui.core.settings import Settings

Template = str | Callable[..., str]
"""A text with fields in braces, or a function of the fields."""


class Sentence(Struct, frozen=True):
    """One row of the table: what is said, what to do, and the code for programs, where that is not the kind."""

    text: Template
    next_step: Template = ""
    code: Template = ""
    not_copied: bool = False
    """Whether it only says what OpenClaw does otherwise, which is of use to who asks for the arithmetic alone."""


class Notice(Struct, frozen=True):
    """Something to tell a person: a kind of the table, with the evidence in its fields."""

    kind: str
    fields: Mapping[str, Any]

    def __hash__(self) -> int:
        """Hash the kind; the fields may hold lists."""
        return hash(self.kind)

    @property
    def code(self) -> str:
        """Return what programs know it by."""
        return written(TABLE[self.kind].code, self.fields) or self.kind

    @property
    def not_copied(self) -> bool:
        """Return whether it only says what OpenClaw does otherwise."""
        return TABLE[self.kind].not_copied

    @property
    def message(self) -> str:
        """Return what is the case, as a sentence."""
        return written(TABLE[self.kind].text, self.fields)

    @property
    def next_step(self) -> str:
        """Return what a person can do; empty where there is nothing to do."""
        return written(TABLE[self.kind].next_step, self.fields)

    @property
    def sentence(self) -> str:
        """Return both, as one text."""
        return f"{self.message} {self.next_step}".rstrip()


def notice(kind: str, /, **fields: object) -> Notice:
    """Return the notice of `kind`, a row of the table, with `fields` as its evidence."""
    return Notice(kind, fields)


def written(template: Template, fields: Mapping[str, Any]) -> str:
    """Return `template` with `fields` in it."""
    return _WORDS.vformat(template, (), fields) if isinstance(template, str) else template(**fields)


class _Words(Formatter):
    """Format fields as people write them, beside the formats of Python.

    `{n:of file}` counts files, `{n:nth}` is 3rd, `{x:plain}` a number without the digits that arithmetic adds,
    `{names:join; }` a list with what stands between, `{words:quoted}` at most five words in quotes, `{name:title}` the
    title of a profile.
    """

    def format_field(self, value: Any, format_spec: str) -> str:  # noqa: ANN401 - any field
        """Return `value` as `format_spec` says."""
        name, _, argument = format_spec.partition(" ")
        match name:
            case "of":
                return plural(value, argument)
            case "nth":
                return ordinal(value)
            case "plain":
                return number(value)
            case "quoted":
                return quoted(value)
            case "title":
                return profiles.get(value).title
        if format_spec.startswith("join"):
            return format_spec.removeprefix("join").join(map(str, value))
        return str(format(value, format_spec))


_WORDS = _Words()


def ordinal(n: int) -> str:
    """Return 1st, 2nd, 3rd, 4th, 11th, 21st ..."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def number(value: float) -> str:
    """Return a setting as it was given, without the digits that arithmetic adds."""
    return f"{value:.10g}"


def quoted(words: Iterable[str], most: int = 5) -> str:
    """Return words in quotes, those beyond `most` as a count."""
    every = [f'"{word}"' for word in words]
    shown = ", ".join(every[:most])
    return f"{shown} and {len(every) - most} more" if len(every) > most else shown


def begun(clause: str) -> str:
    """Return a clause as the beginning of a sentence."""
    return f"{clause[0].upper()}{clause[1:]}"


# --- sentences that depend on more than their fields' values --------------------------------------------------------


def language_label(language: str, known: float) -> str:
    """Return what stands beside a question whose language the built-in table knows to the share `known`."""
    return f"{'MOSTLY WORDS' if known else 'WORDS ONLY'} ({language})"


def _language_unknown(language: str, known: float) -> str:
    label = language_label(language, known)
    if not known:
        return f"{label}: the built-in table does not know {language}, so meaning does not count."
    return f"{label}: the built-in table knows {known:.0%} of this question, so meaning counts less in proportion."


def _searched_otherwise(correction: Any) -> str:  # noqa: ANN401 - core.spelling.Correction
    also = "also " if correction.also else ""
    return f'"{correction.asked}" was searched {also}as "{" ".join(correction.searched)}".'


def _no_full_text(reason: str, by_text: bool | None) -> str:
    letters = "a chunk is found when its text holds the letters of a word"
    either = f"vectors answer alone, or without any, {letters}"
    instead = either if by_text is None else letters if by_text else "vectors answer alone"
    missing = f"There is no full-text search ({reason})" if reason else "The index was made without full-text search"
    return f"{missing}: {instead}."


def _vectors_refused(chunks: int, reasons: tuple[str, ...]) -> str:
    count = "1 chunk has" if chunks == 1 else f"{chunks:,} chunks have"
    return f"{count} no vector, because the provider refused the text ({'; '.join(reasons[:3])}); words still find it."


def _setting_ignored(key: str, profile: str) -> str:
    why = profiles.get(profile).ignores[key]
    return f"{key} as set has no effect under profile {profile}: {why}."


def _setting_elsewhere(key: str, profile: str) -> str:
    del profile
    recommended = profiles.get(profiles.OWN)
    return "" if key in recommended.ignores else f"Set it with --profile {recommended.name}, or leave it out."


def _meaning_alone(plan: Any, hits: int, near: int, dated: int) -> str:  # noqa: ANN401 - search.trace.QueryPlan
    unmatched = begun(plan.unmatched)
    if dated:
        return f"{unmatched}. {_of_named_days(hits, dated)}"
    if not near:
        which = "These hits are not near in meaning either (cosine 0 or less)"
    else:
        which = "These hits are near in meaning alone"
        which += "" if near == hits else ", those with a cosine of 0 or less not even that"
    return f"{unmatched}. {which}, and may have nothing to do with it."


def _of_named_days(hits: int, dated: int) -> str:
    others = hits - dated
    if not others:
        return f"{'This hit is' if hits == 1 else 'These hits are'} of the days that it names."
    rest = "the other one" if others == 1 else f"the other {others}"
    named = "1 hit is" if dated == 1 else f"{dated} hits are"
    return f"{named} of the days that it names; {rest} may have nothing to do with it."


def _answered_code(who: Any) -> str:  # noqa: ANN401 - providers.chain.ServingProvider
    codes = {"fallback": "fallback", "fallback starts": "fallback", "other model": "model_mismatch"}
    return codes.get(who.standing, "provider")


def _zero_vectors(count: int, profile: str = "") -> str:
    chunks = f"Chunks whose vector is all zeros, for want of a known word: {count}."
    if not profile:
        return f"{chunks} Their cosine counts 0 here; OpenClaw counts it 1."
    title = profiles.get(profile).title
    return f"{chunks} They count 0 here; {title} loses its whole vector side by one of them."


def foreign_vectors(provider: str) -> str:
    """Return whose vectors a release of OpenClaw ranks by here, for a line that has little room."""
    return f"by vectors of {'the built-in table' if provider == 'builtin' else provider}, not OpenClaw's"


def _cut_otherwise(chunking: str, profile: str) -> str:
    other = profiles.get(profile)
    words = ", and finds words otherwise" if other.exact_paths else ""
    return f"These chunks are cut as OpenClaw {chunking} cuts them; {other.title} has others{words}."


def _never_recalled(profile: str, citations: tuple[str, ...]) -> str:
    where = f"{', '.join(citations[:3])}{' and more' if len(citations) > 3 else ''}"
    return (
        f"{profiles.get(profile).title} never recalls these chunks, because a project marker in them is not closed or "
        f"names no project: {where}."
    )


def _rebuild_next(reasons: tuple[str, ...], failed: bool) -> str:
    del reasons
    if failed:
        return "The rebuild starts when the provider answers. Run memory-tui provider --test to try now."
    return "Run memory-tui index."


# --- the table -------------------------------------------------------------------------------------------------------

TABLE: Mapping[str, Sentence] = {
    # The question.
    "words_unknown": Sentence(
        lambda recalled: (
            f"The embedding model knows no word of the query{': found by words alone' if recalled else ''}."
        ),
        code="unknown_words",
    ),
    "language_unknown": Sentence(
        _language_unknown,
        "A provider that knows the language compares meaning as well: memory-tui help providers.",
        code="unknown_language",
    ),
    "not_translated": Sentence(
        "No note holds {words:join, }, and the built-in vectors do not translate: they find no note in another "
        "language.",
        "A multilingual provider finds them by meaning: memory-tui help providers.",
        code="translation",
    ),
    "searched_otherwise": Sentence(
        _searched_otherwise, "To search as asked: --set spelling.enabled=off.", code="spelling"
    ),
    "asked_in_parts": Sentence(
        lambda parts: f"Asked in {len(parts)} parts, the best note of each first: {'; '.join(parts)}", code="parts"
    ),
    "read_as_time": Sentence(
        lambda words, days, alone: (
            f'Read "{words}" as {days}: notes of these days come first'
            f"{'' if alone else ', its words are not searched'}."
        ),
        lambda words, days, alone: f"To search its words{' alone' * alone}: --set questionTime.enabled=off.",  # noqa: ARG005
        code="question_time",
    ),
    "long_question": Sentence(
        "The query has {different:,} different words: of those that notes hold at most the {rarest} rarest are looked "
        "for, and where every word is needed its first {first:,}.",
        "Ask in fewer words.",
    ),
    "time_from_today": Sentence("The time that the query names is still counted from today.", code="date"),
    "uneven_weights": Sentence(
        "vectorWeight {vector:g} ({vector_origin}) and textWeight {text:g} ({text_origin}) do not add up to 1: they "
        "count as {vector_counts:.2f} and {text_counts:.2f}.",
        code="weights",
    ),
    "question_withheld": Sentence(
        "Meaning-based recall is off for this query: it looks like it holds a secret ({kinds:join; }), and was not "
        "sent to {host}.",
        "Ask without it, or set remote.withholdSecrets to false.",
        code="provider",
    ),
    "found_by_meaning_alone": Sentence(_meaning_alone, code="meaning_alone"),
    "waiting_holds": Sentence(
        lambda elsewhere: f"{begun(elsewhere.clause)}.",
        "Ask again when it is indexed: memory-tui index.",
        code="waiting",
    ),
    # What answers.
    "meaning_off": Sentence("Meaning-based recall is off: {cause}", "{remedy}", code="provider"),
    "other_model": Sentence(
        "The index was made with {made_with}, not with {asked_with}: its vectors cannot be compared.",
        "Run memory-tui index.",
        code="model_mismatch",
    ),
    "answered_otherwise": Sentence("{who.sentence}", "{who.next_step}", code=_answered_code),
    "no_full_text": Sentence(
        _no_full_text,
        lambda reason, by_text: "" if reason else "Run memory-tui index.",  # noqa: ARG005
        code="full_text",
    ),
    "passages_by_words": Sentence(
        "Windows and lines are compared by words alone: {problem}", "Install memory-tui again.", code="second_stage"
    ),
    # The index.
    "batch_waits": Sentence(
        "{texts:,} texts wait for the provider's batch service; until it is done, words alone find them.",
        "The app or memory-tui index fetches the vectors when they are ready.",
        code="batch",
    ),
    "vectors_refused": Sentence(
        _vectors_refused,
        "It is asked again when the text or the provider changes, after a day, when you try the provider again in its "
        "view, or by memory-tui index --force.",
        code="refused",
    ),
    "root_lost": Sentence("{detail}", "{remedy}", code="root"),
    "notes_vanished": Sentence(
        "{reason}; they stay in the index until you agree.",
        "Bring them back, or run memory-tui index --accept-shrink.",
        code="shrink",
    ),
    "rebuild_waits": Sentence(
        "Index settings changed ({reasons:join; }). The old index is used until the rebuild finishes.",
        _rebuild_next,
        code="rebuild",
    ),
    "on_shared_files": Sentence(
        "The index {path} lies on a file system that other machines can write to ({system}): it is kept without a "
        "write-ahead log, so searches can wait for a moment while it is written.",
        "Name a file on a local disk with --index to avoid that.",
        code="index",
    ),
    "kept_elsewhere": Sentence(
        "The index {path} cannot be written ({why}); it is kept in {place} for now.", code="index"
    ),
    "not_copied": Sentence(
        "The index {path} could not be copied to {place} ({why}); it is made again from the notes.", code="index"
    ),
    "index_gone": Sentence(
        "The index {path} was deleted or emptied; memory-tui rebuilds it from the notes.", code="index"
    ),
    "moved_aside": Sentence("{why} It is kept as {kept}; memory-tui rebuilds it from the notes.", code="index"),
    "index_not_used": Sentence("{said}", "{remedy}", code="index"),
    # OpenClaw's sessions.
    "messages_not_read": Sentence(
        "{messages:of message} of OpenClaw's sessions cannot be read: the database holds them in a form that is "
        "damaged or new.",
        code="index",
    ),
    "sessions_not_read": Sentence("OpenClaw's sessions cannot be read: {detail}", "{remedy}", code="index"),
    "transcripts_not_written": Sentence("Transcripts cannot be written to {folder}: {reason}.", code="index"),
    # This machine.
    "config_problem": Sentence("{said}", code="config"),
    "setting_ignored": Sentence(_setting_ignored, _setting_elsewhere, code="setting"),
    "no_trigrams": Sentence("Trigrams are not possible ({reason}): unicode61 cuts the words.", code="trigram"),
    "numpy_compares": Sentence(
        "sqlite-vec is not used ({reason}): numpy compares the vectors, with the same answers.", code="vec0"
    ),
    "media_not_read": Sentence(
        "{reason}",
        "Set provider, model and fallback so, or multimodal.enabled to false; the notes are searched as ever.",
        code="media",
    ),
    "extension_not_run": Sentence(
        "{reason}; the sqlite-vec that memory-tui was installed with serves, with the same answers.",
        "To agree: memory-tui index --approve-extension.",
        code="extension",
    ),
    "unknown_switch": Sentence("{switch} names {name!r}, which is none of {known:join, }.", code="switch"),
    # What releases of OpenClaw do differently.
    "emptied_there": Sentence(
        "{profile:title} would find nothing: without a provider its next sync leaves an empty index. Here the words "
        "are searched all the same.",
        code="openclaw_emptied",
        not_copied=True,
    ),
    "first_search_there": Sentence(
        "{profile:title} would find nothing yet: its first search of a new index does not wait for the notes to be "
        "indexed. Here it did.",
        code="openclaw_first_search",
        not_copied=True,
    ),
    "zero_vectors": Sentence(_zero_vectors, code="zero_vector", not_copied=True),
    "other_vectors": Sentence(
        lambda profile, provider: (
            f"{profile} ranks here {foreign_vectors(provider)}: {profiles.get(profile).title} itself gives other hits."
        ),
        "memory-tui openclaw compare-index shows its own index; --provider NAME embeds as it does.",
    ),
    "cut_otherwise": Sentence(_cut_otherwise, "Open this memory with --profile {profile}.", code="chunking"),
    "trust_unread": Sentence(
        "Whether OpenClaw trusts these notes is not known. {detail}", "{step}", code="ledger_unread"
    ),
    "never_recalled_there": Sentence(
        _never_recalled, "Close the comment, or name a project in it.", code="unreadable_project"
    ),
}


# --- notices that several places give --------------------------------------------------------------------------------


def without_effect(keys: Iterable[str], settings: Settings) -> tuple[Notice, ...]:
    """Return a notice of each of `keys` that has no effect under the profile of `settings`."""
    profile = profiles.get(settings.word("profile"))
    return tuple(notice("setting_ignored", key=key, profile=profile.name) for key in keys if key in profile.ignores)


def other_vectors(profile: str, provider: str) -> tuple[Notice, ...]:
    """Return what is said of a ranking by the rules of `profile` over vectors of `provider`."""
    is_release = profile.startswith("openclaw-") and provider in ("builtin", "onnx")
    return (notice("other_vectors", profile=profile, provider=provider),) if is_release else ()
