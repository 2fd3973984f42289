"""One table of sentences: what is unusual about an answer or an index, why an answer is empty, and what to do about it.

A notice is a kind of the table with the fields that its sentence names. Programs know it by its code, which several
kinds may share.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from string import Formatter
from typing import Any

from msgspec import Struct

from memory_tui.config.settings import OWN_PROFILE, Settings, profile_named
from memory_tui.formatting import one_line, plural

Template = str | Callable[..., str]
"""A text with fields in braces, or a function of the fields."""


class Sentence(Struct, frozen=True):
    """One row of the table: what is said, what to do, and the code for programs, where that is not the kind."""

    text: Template
    next_step: Template = ""
    code: Template = ""
    brief: Template = ""
    """The same in two or three words, for a title."""
    short: Template = ""
    """The same as short, with its number, for a list."""
    clause: Template = ""
    """The same as a part of another sentence."""
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
    def brief(self) -> str:
        """Return what is the case in two or three words; empty where the table has none."""
        return written(TABLE[self.kind].brief, self.fields)

    @property
    def short(self) -> str:
        """Return what is the case as short, with its number."""
        return written(TABLE[self.kind].short, self.fields)

    @property
    def clause(self) -> str:
        """Return what is the case as a part of another sentence."""
        return written(TABLE[self.kind].clause, self.fields)

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
    """Return the text of `template`: its fields in braces filled, or the function called with the fields."""
    return _WORDS.vformat(template, (), fields) if isinstance(template, str) else template(**fields)


class _Words(Formatter):
    """Format fields as people write them, beside the formats of Python.

    `{n:of file}` counts files, `{n:nth}` is 3rd, `{x:plain}` a number without the digits that arithmetic adds,
    `{names:join; }` a list with what stands between, `{words:quoted}` at most five words in quotes, `{name:title}` the
    title of a profile.
    """

    def format_field(self, value: Any, format_spec: str) -> str:  # noqa: ANN401 - any field
        """Return `value` as `format_spec` says."""
        # `of file`: the kind of format, and what it needs.
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
                return profile_named(value).title
        if format_spec.startswith("join"):
            return format_spec.removeprefix("join").join(map(str, value))
        return str(format(value, format_spec))


_WORDS = _Words()


def _twice(count: int, path: str, twin: str, holders: int = 2, **_: object) -> str:
    """Say of lines that two notes say them, or one note, twice."""
    if path != twin:
        where = f"{path} and {twin}" if holders == 2 else f"{holders} notes, such as {path} and {twin},"
        return f"{plural(count, 'line')} of {where} are said twice."
    return f"{plural(count, 'line')} of {path} are said twice there."


_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def ordinal(n: int) -> str:
    """Return 1st, 2nd, 3rd, 4th, 11th, 21st ..."""
    ending = "th" if n % 100 in (11, 12, 13) else _ENDINGS.get(n % 10, "th")
    return f"{n}{ending}"


def number(value: float) -> str:
    """Return a setting as it was given, without the digits that arithmetic adds."""
    return f"{value:.10g}"


def quoted(words: Iterable[str], most: int = 5) -> str:
    """Return words in quotes, those beyond `most` as a count, a very long one cut."""
    every = [f'"{one_line(word, 60)}"' for word in words]
    start = ", ".join(every[:most])
    return f"{start} and {len(every) - most} more" if len(every) > most else start


def begun(clause: str) -> str:
    """Return a clause as the beginning of a sentence."""
    return f"{clause[0].upper()}{clause[1:]}"


# --- sentences of an answer, of which nothing may be recalled --------------------------------------------------------


def _empty_index(pending: int, unreadable: int, **_: object) -> str:
    """Say why nothing is indexed: files wait or cannot be read, or there are none."""
    if pending:
        return f"Nothing is indexed yet: {plural(pending, 'file')} waiting."
    if unreadable:
        return f"Nothing is indexed: {plural(unreadable, 'file')} could not be read."
    return "This workspace holds no notes yet."


def _fill_index(pending: int, unreadable: int, **_: object) -> str:
    """Say what fills an empty index."""
    if pending:
        return "Wait for the index, or run memory-tui index."
    if unreadable:
        return "Run memory-tui status to see each file and the reason."
    return "Write MEMORY.md or memory/YYYY-MM-DD.md, then search again."


def _no_usable_word(pointless: bool, **_: object) -> str:
    """Say that neither words nor meaning can find anything; the vector of a `pointless` question points nowhere."""
    vectors = "the embedding model knows nothing in it" if pointless else "there are no vectors to go by"
    return f"The query has no word to search for, and {vectors}."


def _nothing_matched(missing: Sequence[str], join: str) -> str:
    """Say which words stand nowhere (`missing`), or else that no chunk holds all (AND) or any (OR) of them."""
    if missing:
        noun = "The word" if len(missing) == 1 else "The words"
        return f"{noun} {quoted(missing)} {'was' if len(missing) == 1 else 'were'} found in no indexed note."
    return f"No chunk was found to hold {'all' if join == 'AND' else 'one'} of these words, and meaning found none."


def _all_below(candidates: int, best: float, floor: float, decayed: int) -> str:
    """Say that all candidates score below the floor, and how many of them only for their age (`decayed`)."""
    fade = f" Without age {decayed} of them would reach it." if decayed else ""
    below, reached = f"below minScore {number(floor)}", against(best, floor)
    every = f"all score {below}; the best has {reached}" if candidates > 1 else f"it has {reached}, {below}"
    return f"{plural(candidates, 'chunk')} found, but {every}.{fade}"


def _answer_level(level: str, part: str, held: float, share: float, needs: float) -> str:
    """Say at which `level` an answer is: its lines hold the share `held` of the question, of which `share` counts.

    A question counts as found from `needs` on; `part` names what a found answer lacks, and is empty for a whole one.
    """
    phrases = {"found": "Found", "nearby only": "Nearby only, which may not answer it"}
    phrase = f"Found in part ({part})" if part else phrases.get(level, "Probably nothing answers it")
    less = f", which distance in meaning lowers to {int(share * 100)}%" if round(held - share, 2) > 0 else ""
    # The bound is rounded up, so that a share below it never reads as the same percentage.
    needs_words = f"; from {needs + 0.0049:.0%} on it counts as found" if level != "found" else ""
    return f"{phrase}: by words and like words the best lines match {held:.0%} of the question{less}{needs_words}."


# --- sentences that depend on more than their fields' values --------------------------------------------------------


def language_label(language: str, share: float) -> str:
    """Return what stands beside a question whose language the built-in table knows to a `share`."""
    return f"{'MOSTLY WORDS' if share else 'WORDS ONLY'} ({language})"


def _language_unknown(language: str, known: float) -> str:
    """Say how much the table knows of a question: the share `known`, which may be 0."""
    label = language_label(language, known)
    if not known:
        return f"{label}: the built-in table does not know {language}, so meaning does not count."
    return f"{label}: the built-in table knows {known:.0%} of this question, so meaning counts less in proportion."


def _searched_otherwise(correction: Any) -> str:  # noqa: ANN401 - search.trace.Correction
    """Say which words were searched in the place of one that was asked, or beside it."""
    also = "also " if correction.also else ""
    return f'"{correction.asked}" was searched {also}as "{" ".join(correction.searched)}".'


def _vectors_refused(chunks: int, reasons: tuple[str, ...]) -> str:
    """Say how many chunks the provider refused, and the first of its reasons."""
    count = "1 chunk has" if chunks == 1 else f"{chunks:,} chunks have"
    return f"{count} no vector, because the provider refused the text ({'; '.join(reasons[:3])}); words still find it."


def _setting_ignored(key: str, profile: str) -> str:
    """Say that a setting has no effect under `profile`, and why."""
    return f"{key} as set has no effect under profile {profile}: {profile_named(profile).ignores[key]}."


def _setting_elsewhere(key: str, **_: object) -> str:
    """Say under which profile a setting has an effect; empty where it has none under our own either."""
    recommended = profile_named(OWN_PROFILE)
    return "" if key in recommended.ignores else f"Set it with --profile {recommended.name}, or leave it out."


def _meaning_alone(plan: Any, hits: int, near: int, dated: int) -> str:  # noqa: ANN401 - search.trace.QueryPlan
    """Say that words found nothing: of so many hits some are `near` in meaning, some `dated` as the query asks."""
    unmatched = begun(plan.unmatched)
    if dated:
        return f"{unmatched}. {_of_named_days(hits, dated)}"
    less = ", those with a cosine of 0 or less not even that" if near < hits else ""
    nearness = f"near in meaning alone{less}" if near else "not near in meaning either (cosine 0 or less)"
    return f"{unmatched}. These hits are {nearness}, and may have nothing to do with it."


def _of_named_days(hits: int, dated: int) -> str:
    """Say how many of the hits are of the days that the question names."""
    others = hits - dated
    if not others:
        return f"{'This hit is' if hits == 1 else 'These hits are'} of the days that it names."
    rest = "the other one" if others == 1 else f"the other {others}"
    named = "1 hit is" if dated == 1 else f"{dated} hits are"
    return f"{named} of the days that it names; {rest} may have nothing to do with it."


def _answered_code(who: Any) -> str:  # noqa: ANN401 - providers.chain.ServingProvider
    """Return the code of a notice that somebody else answers than was asked for."""
    codes = {"fallback": "fallback", "fallback starts": "fallback", "other model": "model_mismatch"}
    return codes.get(who.standing, "provider")


def _zero_vectors(count: int, profile: str = "") -> str:
    """Say how vectors of zeros count here, and there: under `profile`, or in OpenClaw at large without one."""
    chunks = f"Chunks whose vector is all zeros, for want of a known word: {count}."
    if not profile:
        return f"{chunks} Their cosine counts 0 here; OpenClaw counts it 1."
    return f"{chunks} They count 0 here; {profile_named(profile).title} loses its whole vector side by one of them."


def foreign_vectors(provider: str) -> str:
    """Return whose vectors a release of OpenClaw ranks by here, for a line that has little room."""
    return f"by vectors of {'the built-in table' if provider == 'builtin' else provider}, not OpenClaw's"


def _cut_otherwise(chunking: str, profile: str) -> str:
    """Say that the chunks of an index are not those of `profile`."""
    other = profile_named(profile)
    words = ", and finds words otherwise" if other.exact_paths else ""
    cut = "end at headings" if chunking == "headings" else f"are cut as OpenClaw {chunking} cuts them"
    return f"These chunks {cut}; {other.title} has others{words}."


def _never_recalled(profile: str, citations: tuple[str, ...]) -> str:
    """Say which chunks `profile` never recalls, for a project marker that it cannot read."""
    where = f"{', '.join(citations[:3])}{' and more' if len(citations) > 3 else ''}"
    return (
        f"{profile_named(profile).title} never recalls these chunks, because a project marker in them is not closed or "
        f"names no project: {where}."
    )


def _rebuild_next(failed: bool, **_: object) -> str:
    """Say what a rebuild waits for: a provider that has `failed`, or the next sync."""
    waits = "The rebuild starts when the provider answers. Run memory-tui provider --test to try now."
    return waits if failed else "Run memory-tui index."


# --- sentences about a line -----------------------------------------------------------------------------------------


def shortfall(value: float) -> str:
    """Return what a score lacks, with as many digits as it takes to be more than nothing."""
    return f"{value:.3f}" if value >= 0.0005 else f"{value:.1g}"


def against(score: float, floor: float) -> str:
    """Return `score` with enough digits to see on which side of `floor` it is."""
    # Rounded, a score just below the floor can read as the floor.
    ways = (f"{score:.{digits}f}" for digits in range(3, 18))
    return next((figure for figure in ways if (float(figure) >= floor) == (score >= floor)), repr(score))


def _recalled(place: int, relaxed: bool, rescued: bool, kept_back: bool) -> str:
    """Say as which hit a line is recalled, and over which floor; one that is `kept_back` no agent gets unasked."""
    how = " over the relaxed floor for keyword hits" if relaxed else ""
    if rescued:
        how = ", although it is below minScore: words found it and meaning did not"
    if kept_back:
        why = "probably no note answers the query, so an agent gets it only if it asks for the nearest"
        return f"The {ordinal(place)} of the nearest{how}. It is kept back: {why}."
    return f"Recalled as the {ordinal(place)} hit{how}."


def _floor(floor: float, *, relaxed: bool) -> str:
    """Return the floor in words."""
    return f"{number(floor)}, the relaxed floor" if relaxed else f"minScore {number(floor)}"


def _lowered(floor: float, margin: float, age_days: float, factor: float, relaxed: bool) -> str:
    """Say that age took so much of a score that it fell below the floor, and what it lacks (`margin`)."""
    return (
        f"Age lowered its score below {_floor(floor, relaxed=relaxed)}. The note is {age_days:.0f} days old, so its "
        f"score was multiplied by {factor:.3f}; it lacks {shortfall(margin)}."
    )


def _in_no_chunk(line: int | None, lines: int) -> str:
    """Say why a line is in no chunk of a note of so many lines; without a line, why the note has none."""
    if line is None or not lines:
        return "The note holds no text."
    if 1 <= line <= lines:
        return f"Line {line} is in no chunk: only blank lines are there."
    return f"There is no line {line}: the note ends with line {lines}."


def _changed(change: str) -> str:
    """Say that a line is not in the text that was indexed: its note is new, or has changed."""
    if change == "new":
        return "The note is new and has not been indexed yet."
    return "The note has changed since it was indexed, and this line is not in what was indexed."


def _alone(gate: Template) -> Template:
    """Return a template that makes the clause `gate`, why words did not find a chunk, a sentence of its own.

    It is for chunks that meaning cannot find, as there are no vectors.
    """
    return lambda **fields: f"{begun(written(gate, fields))}, and there are no vectors to go by."


def _no_word(dropped: Sequence[str]) -> str:
    """Say as a clause that no word is left to search for, and which were left out."""
    left = f" (left out: {', '.join(dropped)})" if dropped else ""
    return f"the query has no word to search for{left}"


# `join` is AND where every word is needed, OR where one is enough; `hidden` words stand only inside longer ones.
def _not_matched(
    words: Sequence[str], absent: Sequence[str], nowhere: Sequence[str], join: str, hidden: Sequence[str]
) -> str:
    """Say as a clause which words a chunk lacks, and which of these stand nowhere."""
    lacks = [word for word in absent if word not in hidden]
    reasons = []
    if lacks:
        reasons.append(f"it {'holds none of' if join == 'OR' and len(lacks) > 1 else 'lacks'} {quoted(lacks)}")
    if hidden:
        inside, them = ("a longer word", "it") if len(hidden) == 1 else ("longer words", "them")
        reasons.append(f"it holds {quoted(hidden)} only inside {inside}, where this tokenizer cannot see {them}")
    reason = "; ".join(reasons)
    if join != "OR":
        every = {1: "the word is", 2: "both words are"}.get(len(words), f"all {len(words)} words are")
        reason = f"{every} needed, and {reason}"
    were = "was" if len(nowhere) == 1 else "were"
    return f"{reason}; {quoted(nowhere)} {were} found in no indexed note" if nowhere else reason


def _outside_text_pool(rank: int, pool: int, bm25: float, edge: float) -> str:
    """Say as a clause that a chunk is matched, but not among the best; `edge` is the bm25 of the last of these."""
    # SQLite's bm25 is negative, and lower is better.
    return (
        f"it ranks {ordinal(rank)} by bm25 ({-bm25:.2f}), and only the {pool} best are candidates (down to {-edge:.2f})"
    )


def _no_single_knob(*, recalled: bool) -> str:
    """Say that no setting alone turns the verdict."""
    return f"No single setting that was tried would {'drop this hit' if recalled else 'recall this line'}."


def _no_rephrasing(words: Sequence[str], shorter: str) -> str:
    """Say which other questions were tried in vain: with one of `words` more, or the `shorter` one."""
    tried = [f"adding one of these words of the chunk ({', '.join(words)})"] if words else []
    tried += [f'the question "{shorter}"'] if shorter else []
    return f"The chunk is not recalled by {' or '.join(tried)}."


LEFT_OUT: Mapping[str, str] = {
    "common": "in over half of the chunks: counted with others",
    "stop word": "stop words",
    "number": "numbers alone",
    "short": "too short",
}
"""Why words are not searched for."""


_WORDS_OFF = "they do not count, hybrid search is off"


# --- the table -------------------------------------------------------------------------------------------------------


def _not_utf8(replaced: int, utf16: bool) -> str:
    """Say which bytes of a note are no UTF-8: all of UTF-16, or so many sequences."""
    if utf16:
        return "It looks like UTF-16, not UTF-8: its words match no question, here or in OpenClaw."
    pieces = f"{plural(replaced, 'byte sequence')} in it {'is' if replaced == 1 else 'are'}"
    return f"{pieces} not UTF-8: the words with them match no question; likeness alone may find them."


def _lines_lost(lines: int, at: float, by: str, gone: bool, **_: object) -> str:
    """Say when and by whom lines of a note were removed; it may be gone as a whole."""
    when = dt.datetime.fromtimestamp(at).astimezone()
    what = f"It was removed by {by}" if gone else f"It lost {plural(lines, 'line')} of text to {by}"
    return f"{what}, {when:%Y-%m-%d %H:%M}. The record has the text."


def _beyond_budget(path: str, first: int, last: int, host: str, entries: int) -> str:
    """Say which lines of a file a session of `host` does not start with; a `last` of 0 means all from the first on."""
    until = f"to line {last}" if last else "on"
    return f"No session of {host} starts with {path} from line {first} {until}: {plural(entries, 'entry')}."


TABLE: Mapping[str, Sentence] = {
    # An answer: why nothing was recalled, and whether the notes hold what was asked.
    "blank_query": Sentence("The query is empty.", "Type a query."),
    "empty_index": Sentence(_empty_index, _fill_index),
    "no_usable_word": Sentence(_no_usable_word, "Add a word."),
    "all_below_gate": Sentence(_all_below, "Lower minScore."),
    "nothing_matched": Sentence(_nothing_matched, "Try other words."),
    "answer_level": Sentence(_answer_level),
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
        lambda words, days, alone: f"To search its words{' alone' if alone else ''}: --set questionTime.enabled=off.",  # noqa: ARG005
        code="question_time",
    ),
    "long_question": Sentence(
        "The query has {different:,} different words: of those that notes hold at most the {rarest} rarest are looked "
        "for, and where every word is needed its first {first:,}.",
        "Ask in fewer words.",
    ),
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
    # What answers.
    "meaning_off": Sentence("Meaning-based recall is off: {cause}", "{remedy}", code="provider"),
    "other_model": Sentence(
        "The index was made with {made_with}, not with {asked_with}: its vectors cannot be compared.",
        "Run memory-tui index.",
        code="model_mismatch",
    ),
    "answered_otherwise": Sentence("{who.sentence}", "{who.next_step}", code=_answered_code),
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
    "media_not_read": Sentence(
        "Images and sounds are not read: they need the provider gemini, the model {model} and the fallback none.",
        "Set provider, model and fallback so, or multimodal.enabled to false; the notes are searched as ever.",
        code="media",
    ),
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
            f"{profile} ranks here {foreign_vectors(provider)}: {profile_named(profile).title} itself gives other hits."
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
    # What became of a line: the file.
    "outside_roots": Sentence("The file is outside the folders of the notes. {detail}", brief="outside the roots"),
    "excluded": Sentence("The file is not part of this memory ({rule}). {detail}", brief="excluded: {rule}"),
    "no_such_file": Sentence("{detail}", brief="no such file"),
    "unreadable_file": Sentence("{detail}", brief="{rule}"),
    "changed_since_indexed": Sentence(_changed, brief="not indexed yet"),
    "in_no_chunk": Sentence(_in_no_chunk, brief="in no chunk"),
    # The pools: the texts of the word side are clauses where meaning has its say first.
    "words_off": Sentence(_alone(_WORDS_OFF), brief="no match", clause=_WORDS_OFF),
    "no_word": Sentence(_alone(_no_word), brief="no match", clause=_no_word),
    "not_matched": Sentence(_alone(_not_matched), brief="no match", clause=_not_matched),
    "outside_text_pool": Sentence(_alone(_outside_text_pool), brief="not a candidate", clause=_outside_text_pool),
    "no_vector": Sentence("Meaning could not find it: {cause}. By words: {text.clause}.", brief="no vector"),
    "model_mismatch": Sentence("{detail} By words: {text.clause}.", brief="other model"),
    "outside_vector_pool": Sentence(
        "By meaning it ranks {rank:nth} of {of:,} (cosine {cosine:.3f}); only the {pool} nearest are candidates (down "
        "to {edge:.3f}). By words: {text.clause}.",
        brief="not a candidate",
    ),
    "copy_of": Sentence(
        lambda what, citation: (
            f"The same passage stands at {citation}, which takes its place: an answer gives a passage one place."
            if what == "passage"
            else f"Its line with your words stands at {citation}, which takes its place: no line has much more of them."
        ),
        brief="shown elsewhere",
    ),
    "unreadable_project": Sentence(
        "OpenClaw 2026.9 never recalls it: a project marker (<!-- project: ... -->) of its entry is not closed, or "
        "names no project.",
        brief="project marker",
    ),
    # Ranking, and what comes after it.
    "recalled": Sentence(_recalled),
    "below_min_score": Sentence(
        lambda floor, margin, relaxed: f"Its score is {shortfall(margin)} below {_floor(floor, relaxed=relaxed)}.",
        brief="minScore",
        short=lambda margin, **_: f"{shortfall(margin)} below",
    ),
    "lowered_by_decay": Sentence(_lowered, brief="decay", short="decay, {age_days:.0f}d old"),
    "displaced_by_mmr": Sentence(
        "By its score it is among the first {limit}, but it shares {similarity:.0%} of its words with {twin.citation}, "
        "which MMR chose before it. MMR ranks it {place:nth}; the limit is {limit:of result}.",
        brief="mmr",
        short="like {twin.citation}",
    ),
    "beyond_limit": Sentence(
        "It ranked {place:nth}; the limit is {limit:of result}.", brief="limit", short="{place:nth}, limit {limit}"
    ),
    "no_single_knob": Sentence(_no_single_knob),
    "no_pair": Sentence("No two settings that were tried recall it together either."),
    "no_rephrasing": Sentence(_no_rephrasing),
    "words_left_out": Sentence(lambda words, reason: f"Not searched for: {', '.join(words)} ({LEFT_OUT[reason]})."),
    # What the inbox finds.
    "secret_found": Sentence("It looks like a secret: {sort}. Agents can recall it, and tell it to their model."),
    "commands_agent": Sentence(
        lambda what, hidden: (
            f"It looks like an order to your agent: it {what}.{f' It is hidden in {hidden}.' if hidden else ''} "
            "Agents read it."
        )
    ),
    "not_utf8": Sentence(_not_utf8),
    "not_trusted": Sentence("OpenClaw's ledger says: {state}."),
    "promoted_there": Sentence(lambda key, night: f"OpenClaw promoted it{f' on {night}' if night else ''}."),  # noqa: ARG005
    "lines_lost": Sentence(_lines_lost),
    "annotation_idle": Sentence("{cause}."),
    "invalid_day": Sentence("There is no day {day}, so this note counts as undated and never fades."),
    "day_ahead": Sentence("Its date is {days} days ahead. The note counts as new until then."),
    "said_twice": Sentence("{twin} says the same."),
    "file_copied": Sentence("It is a copy of {twin}."),
    "overtakes": Sentence("It overtakes {twin}, which is the older line."),
    "opposes": Sentence("It says the opposite of {twin}. One of the two does not hold."),
    "kept_silent": Sentence("Nothing is to be done: {reason}."),
    # What the inbox found several of, with one cause.
    "secrets": Sentence("{count:of line} of {notes:of note} look like they hold a secret. Agents can recall them."),
    "instructions": Sentence("{count:of line} of {notes:of note} hold known patterns that command the agent."),
    "lost_here": Sentence("Text of {notes:of note} was removed outside memory-tui."),
    "encodings": Sentence("{notes:of note} are not UTF-8, so that words in them are not found."),
    "untrusted": Sentence("OpenClaw's ledger does not trust {notes:of note}, or soon will not."),
    "promotions": Sentence("OpenClaw promoted {count:of entry}."),
    "annotations_idle": Sentence("{count:of annotation} have no effect."),
    "odd_dates": Sentence("The names of {notes:of note} hold a date that cannot be, or is far ahead."),
    "beyond_budgets": Sentence("No session reads parts of {path}."),
    "notes_too_long": Sentence("{notes:of note} are too long to be examined whole."),
    "files_copied": Sentence("{count:of note} are copies of others: {path} of {twin}, for instance."),
    "blocks_copied": Sentence("{count:of block} of lines stand in two places: in {path} and in {twin}, for instance."),
    "lines_twice": Sentence(_twice),
    "corrections": Sentence("{count:of line} correct older ones: {path} one of {twin}, for instance."),
    "paths_gone": Sentence("{count:of link} lead to notes that are not there."),
    "unlisted_notes": Sentence(
        "{notes:of note} are not in Claude Code's index, so that a session does not know of them."
    ),
    "notes_never_delivered": Sentence("No logged search or read delivered {notes:of note}."),
    "path_gone": Sentence("{path} is not there."),
    "unlisted": Sentence("MEMORY.md does not point to it, so no session of Claude Code knows of it. Add: {line}"),
    "beyond_budget": Sentence(_beyond_budget),
    "beginning_examined": Sentence(
        "Only its first {lines:of line} were examined, because it is long. Split it into days or topics."
    ),
    "never_delivered": Sentence("It is {age} days old, and no logged search or read delivered it."),
}


def why_empty(cause: Notice, profile: str) -> tuple[str, str]:
    """Return why nothing was recalled under `profile`, which is the notice `cause`, and what to do next."""
    if cause.kind in ("all_below_gate", "nothing_matched") and profile != OWN_PROFILE:
        return cause.message, f"{cause.next_step.removesuffix('.')}, or try the profile {OWN_PROFILE}."
    return cause.message, cause.next_step


# --- notices that several places give --------------------------------------------------------------------------------


def without_effect(keys: Iterable[str], settings: Settings) -> tuple[Notice, ...]:
    """Return a notice of each of `keys` that has no effect under the profile of `settings`."""
    profile = settings.profile
    return tuple(notice("setting_ignored", key=key, profile=profile.name) for key in keys if key in profile.ignores)


def other_vectors(profile: str, provider: str) -> tuple[Notice, ...]:
    """Return what is said of a ranking by the rules of `profile` over vectors of `provider`."""
    is_release = profile.startswith("openclaw-") and provider in ("builtin", "local-small")
    return (notice("other_vectors", profile=profile, provider=provider),) if is_release else ()
