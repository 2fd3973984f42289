"""Notices: what is lost or unusual about an answer or an index, each with its evidence.

A kind stands here where plain values are its evidence, else beside the type that is. Each has a checker in the tests.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from memory_tui.core import profiles

if TYPE_CHECKING:
    from memory_tui.core.settings import Settings
    from memory_tui.core.spelling import Correction
    from memory_tui.providers.chain import ServingProvider


class Notice(Struct, frozen=True):
    """Something lost or unusual, for a person: a claim with its code, its sentence and the next step."""

    not_copied = False
    """Whether it only says what OpenClaw does otherwise, which is of use to who asks for the arithmetic alone."""

    @property
    @abstractmethod
    def code(self) -> str:
        """What programs know it by; several kinds may share one."""

    @property
    @abstractmethod
    def message(self) -> str:
        """The claim as a sentence."""

    @property
    def next_step(self) -> str:
        """What a person can do; empty where there is nothing to do."""
        return ""

    @property
    def sentence(self) -> str:
        """Both, as one text."""
        return f"{self.message} {self.next_step}".rstrip()


# --- the question --------------------------------------------------------------------------------------------------


class WordsUnknown(Notice, frozen=True):
    """The embedding model knows no word of the query; words alone found what was `recalled`."""

    recalled: int
    code = "unknown_words"

    @property
    def message(self) -> str:
        """That nothing was compared by meaning."""
        return f"The embedding model knows no word of the query{': found by words alone' if self.recalled else ''}."


class LanguageUnknown(Notice, frozen=True):
    """The built-in table hardly knows the `language` of a question, or its script: only the share `known` of it."""

    language: str
    known: float
    code = "unknown_language"

    @property
    def pill(self) -> str:
        """What stands beside the question."""
        return f"{'MOSTLY WORDS' if self.known else 'WORDS ONLY'} ({self.language})"

    @property
    def message(self) -> str:
        """Which language, and what follows."""
        if not self.known:
            return f"{self.pill}: the built-in table does not know {self.language}, so meaning does not count."
        share = f"{self.known:.0%} of this question"
        return f"{self.pill}: the built-in table knows {share}, so meaning counts less in proportion."

    @property
    def next_step(self) -> str:
        """Another provider."""
        return "A provider that knows the language compares meaning as well: memory-tui help providers."


class NotTranslated(Notice, frozen=True):
    """No note holds the `words`, which are in another script, and the built-in vectors do not translate."""

    words: tuple[str, ...]
    code = "translation"
    next_step = "A multilingual provider finds them by meaning: memory-tui help providers."

    @property
    def message(self) -> str:
        """Which words, and what cannot be done."""
        named = ", ".join(self.words)
        return (
            f"No note holds {named}, and the built-in vectors do not translate: they find no note in another language."
        )


class SearchedOtherwise(Notice, frozen=True):
    """A word was searched otherwise than it was asked."""

    correction: Correction
    code = "spelling"

    @property
    def message(self) -> str:
        """What was searched instead, or beside it."""
        one = self.correction
        return f'"{one.asked}" was searched {"also " if one.also else ""}as "{" ".join(one.searched)}".'

    @property
    def next_step(self) -> str:
        """How to search as asked."""
        return "To search as asked: --set spelling.enabled=off."


class AskedInParts(Notice, frozen=True):
    """A question asks several things at once; the best note of each part comes first."""

    parts: tuple[str, ...]
    code = "parts"

    @property
    def message(self) -> str:
        """Each part."""
        return f"Asked in {len(self.parts)} parts, the best note of each first: {'; '.join(self.parts)}"

    @property
    def next_step(self) -> str:
        """Nothing to do."""
        return ""


class ReadAsTime(Notice, frozen=True):
    """These `words` of the query were read as a time, and `days` says which; `alone`: it asks nothing else."""

    words: str
    days: str
    alone: bool = False
    code = "question_time"

    @property
    def message(self) -> str:
        """Which words, which days, and what follows."""
        words = "" if self.alone else ", its words are not searched"
        return f'Read "{self.words}" as {self.days}: notes of these days come first{words}.'

    @property
    def next_step(self) -> str:
        """How to search the words."""
        return f"To search its words{' alone' * self.alone}: --set questionTime.enabled=off."


class LongQuestion(Notice, frozen=True):
    """The query has `different` words; of those that notes hold the `rarest` are looked for, or its `first`
    where all are needed."""

    different: int
    rarest: int
    first: int
    code = "long_question"

    @property
    def message(self) -> str:
        """How many words it has, and which are looked for."""
        return (
            f"The query has {self.different:,} different words: of those that notes hold at most the {self.rarest} "
            f"rarest are looked for, and where every word is needed its first {self.first:,}."
        )

    @property
    def next_step(self) -> str:
        """Fewer words."""
        return "Ask in fewer words."


class TimeFromToday(Notice, frozen=True):
    """The ages are those of another day, the time that the query names is counted from `today` (ISO) all the same."""

    today: str
    code = "date"

    @property
    def message(self) -> str:
        """That the named time did not move."""
        return "The time that the query names is still counted from today."


class UnevenWeights(Notice, frozen=True):
    """Both weights as they were given, by whom, and what they count as, because they do not add up to 1."""

    vector: float
    vector_origin: str
    text: float
    text_origin: str
    vector_counts: float
    text_counts: float
    code = "weights"

    @property
    def message(self) -> str:
        """What was given, and what it counts as."""
        return (
            f"vectorWeight {self.vector:g} ({self.vector_origin}) and textWeight {self.text:g} ({self.text_origin}) do "
            f"not add up to 1: they count as {self.vector_counts:.2f} and {self.text_counts:.2f}."
        )


class QuestionWithheld(Notice, frozen=True):
    """The query looks like it holds secrets of `kinds`, and was not sent to `host`."""

    kinds: tuple[str, ...]
    host: str
    code = "provider"

    @property
    def message(self) -> str:
        """That meaning is off for this query, and why."""
        return (
            f"Meaning-based recall is off for this query: it looks like it holds a secret ({'; '.join(self.kinds)}), "
            f"and was not sent to {self.host}."
        )

    @property
    def next_step(self) -> str:
        """Without the secret, or with leave to send it."""
        return "Ask without it, or set remote.withholdSecrets to false."


# --- what answers --------------------------------------------------------------------------------------------------


class MeaningOff(Notice, frozen=True):
    """The provider could not embed the query, for the `cause` that its error names with a `remedy`."""

    cause: str
    remedy: str = ""
    code = "provider"

    @property
    def message(self) -> str:
        """That meaning is off, and why."""
        return f"Meaning-based recall is off: {self.cause}"

    @property
    def next_step(self) -> str:
        """That of the error."""
        return self.remedy


class OtherModel(Notice, frozen=True):
    """The vectors of the index are of one provider and model, that of the query would be of another."""

    made_with: str
    asked_with: str
    code = "model_mismatch"

    @property
    def message(self) -> str:
        """Which two cannot be compared."""
        return f"The index was made with {self.made_with}, not with {self.asked_with}: its vectors cannot be compared."

    @property
    def next_step(self) -> str:
        """A new index."""
        return "Run memory-tui index."


class AnsweredOtherwise(Notice, frozen=True):
    """Who answers is not who was asked for, or nobody answers by meaning: the record of the provider."""

    who: ServingProvider

    @property
    def code(self) -> str:
        """By what stands in the way."""
        codes = {"fallback": "fallback", "fallback starts": "fallback", "other model": "model_mismatch"}
        return codes.get(self.who.standing, "provider")

    @property
    def message(self) -> str:
        """The record as a sentence."""
        return self.who.sentence

    @property
    def next_step(self) -> str:
        """That of the record."""
        return self.who.next_step


class NoFullText(Notice, frozen=True):
    """There is no full-text search, for `reason`, or the index was made without (empty).

    Chunks are found `by_text`, or not so; None where it is said of every question.
    """

    reason: str
    by_text: bool | None = None
    code = "full_text"

    @property
    def message(self) -> str:
        """Why, and what happens instead."""
        letters = "a chunk is found when its text holds the letters of a word"
        either = f"vectors answer alone, or without any, {letters}"
        instead = either if self.by_text is None else letters if self.by_text else "vectors answer alone"
        made = "The index was made without full-text search"
        return f"{f'There is no full-text search ({self.reason})' if self.reason else made}: {instead}."

    @property
    def next_step(self) -> str:
        """A new index, where that helps."""
        return "" if self.reason else "Run memory-tui index."


class PassagesByWords(Notice, frozen=True):
    """The second stage compares windows and lines by words alone, for `problem`."""

    problem: str
    code = "second_stage"

    @property
    def message(self) -> str:
        """That meaning is not compared there, and why."""
        return f"Windows and lines are compared by words alone: {self.problem}"

    @property
    def next_step(self) -> str:
        """The table is part of the package."""
        return "Install memory-tui again."


# --- the index -----------------------------------------------------------------------------------------------------


class BatchWaits(Notice, frozen=True):
    """So many `texts` wait for the provider's batch service."""

    texts: int
    code = "batch"

    @property
    def message(self) -> str:
        """How many texts, and what finds them meanwhile."""
        return f"{self.texts:,} texts wait for the provider's batch service; until it is done, words alone find them."

    @property
    def next_step(self) -> str:
        """Who fetches them."""
        return "The app or memory-tui index fetches the vectors when they are ready."


class VectorsRefused(Notice, frozen=True):
    """The provider refused the texts of so many `chunks`, for `reasons`."""

    chunks: int
    reasons: tuple[str, ...]
    code = "refused"

    @property
    def message(self) -> str:
        """How many chunks, and why."""
        some = "1 chunk has" if self.chunks == 1 else f"{self.chunks:,} chunks have"
        reasons = "; ".join(self.reasons[:3])
        return f"{some} no vector, because the provider refused the text ({reasons}); words still find it."

    @property
    def next_step(self) -> str:
        """When it is asked again."""
        return (
            "It is asked again when the text or the provider changes, after a day, when you try the provider again in "
            "its view, or by memory-tui index --force."
        )


class RootLost(Notice, frozen=True):
    """The root at `path` is in a `state` in which it cannot be relied on; `detail` says why, `remedy` what to do."""

    path: str
    state: str
    detail: str
    remedy: str
    code = "root"

    @property
    def message(self) -> str:
        """Why it cannot."""
        return self.detail

    @property
    def next_step(self) -> str:
        """What a person can do about it."""
        return self.remedy


# --- this machine --------------------------------------------------------------------------------------------------


class ConfigProblem(Notice, frozen=True):
    """In line `line` of the configuration `file` something at `key` is not used as it is: what, what counts instead."""

    said: str
    key: str
    file: str
    line: int
    code = "config"

    @property
    def message(self) -> str:
        """As the reader of the configuration says it."""
        return self.said


class SettingIgnored(Notice, frozen=True):
    """The knob `key` was set for this run, and has no effect under `profile`."""

    key: str
    profile: str
    code = "setting"

    @property
    def message(self) -> str:
        """What is ignored, and why."""
        why = profiles.get(self.profile).ignores[self.key]
        return f"{self.key} as set has no effect under profile {self.profile}: {why}."

    @property
    def next_step(self) -> str:
        """A profile under which it has one."""
        own = profiles.get(profiles.OWN)
        return "" if self.key in own.ignores else f"Set it with --profile {own.name}, or leave it out."


def without_effect(keys: Iterable[str], settings: Settings) -> tuple[SettingIgnored, ...]:
    """A notice of each of `keys` that has no effect under the profile of `settings`."""
    profile = profiles.get(settings.word("profile"))
    return tuple(SettingIgnored(key, profile.name) for key in keys if key in profile.ignores)


class NoTrigrams(Notice, frozen=True):
    """SQLite has no trigram tokenizer, for `reason`."""

    reason: str
    code = "trigram"

    @property
    def message(self) -> str:
        """What cuts the words instead."""
        return f"Trigrams are not possible ({self.reason}): unicode61 cuts the words."


class NumpyCompares(Notice, frozen=True):
    """sqlite-vec is wanted and not used, for `reason`."""

    reason: str
    code = "vec0"

    @property
    def message(self) -> str:
        """What compares the vectors instead."""
        return f"sqlite-vec is not used ({self.reason}): numpy compares the vectors, with the same answers."


class MediaNotRead(Notice, frozen=True):
    """Images and sounds are asked for and not read, because `reason`."""

    reason: str
    code = "media"
    next_step = "Set provider, model and fallback so, or multimodal.enabled to false; the notes are searched as ever."

    @property
    def message(self) -> str:
        """What they need, and what was found."""
        return self.reason


class ExtensionNotRun(Notice, frozen=True):
    """The build of sqlite-vec that a configuration names is not run, because `reason`; the installed one serves."""

    reason: str
    code = "extension"
    next_step = "To agree: memory-tui index --approve-extension."

    @property
    def message(self) -> str:
        """Who asks for what, and what serves."""
        return f"{self.reason}; the sqlite-vec that memory-tui was installed with serves, with the same answers."


class UnknownSwitch(Notice, frozen=True):
    """The variable `switch` names a part of SQLite, `name`, that is none of `known`."""

    name: str
    switch: str
    known: tuple[str, ...]
    code = "switch"

    @property
    def message(self) -> str:
        """What it names, and what there is."""
        return f"{self.switch} names {self.name!r}, which is none of {', '.join(self.known)}."
