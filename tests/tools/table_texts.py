"""Questions and the passages that answer them, which `train_table.py` trains the built-in provider's table with.

Chats, questions that people asked of articles, sayings of the same wish, headings of a handbook, and facts and logs
that are made here. Every text is drawn with one seed. `SOURCES` names what is read, under which licence.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import random
import re
import subprocess
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.tools.table_facts import facts, identifiers


class Pair(NamedTuple):
    """A question, a passage that answers it, and what it is about: two of one group are no rivals."""

    question: str
    passage: str
    group: str


class Source(NamedTuple):
    """Files of a repository at a commit, or of a wheel; `sha256` is that of their bytes, one after the other."""

    place: str
    commit: str
    licence: str
    sha256: str
    files: tuple[str, ...]


Turns = Sequence[tuple[str, str]]
"""What was said: who, and the words."""

SOURCES = {
    "chitchat": Source(
        "chitchat_dataset-0.9.0-py3-none-any.whl",
        "0.9.0",
        "MIT",
        "d2a5d0bf6acf354fef51f3af39cbece2220d3b8f6086b658c3d335105798312a",
        ("chitchat_dataset/dataset.json",),
    ),
    "topical": Source(
        "alexa/Topical-Chat",
        "7c939229cbcf6f55f6977b341a5a2f2fe982d53f",
        "CDLA-Sharing-1.0",
        "3c1b89466d6180005ba213e92ffe786fb13397029769dfc5e730fd36f6de397e",
        tuple(f"conversations/{part}_{kind}.json" for part in ("valid", "test") for kind in ("freq", "rare")),
    ),
    "squad": Source(
        "xinyadu/nqg",
        "8211129a3e97d29f3e4563e35f65e4a892f70ef0",
        "CC-BY-SA-4.0",
        "c881322db4a4332ec4a52c380f4f3739d47ed640fc154c6a2667feca851bee58",
        ("data/processed/src-test.txt", "data/processed/tgt-test.txt"),
    ),
    "qed": Source(
        "google-research-datasets/QED",
        "2492920337122918bbfc7d12c1268b9af796c6cf",
        "CC-BY-SA-3.0",
        "2ea322b71a333023380c3954083b81af2d5670c8ac47ddec58c843233895c429",
        ("qed-dev.jsonlines",),
    ),
    "clinc": Source(
        "clinc/oos-eval",
        "828f8093932c8fe6ca7936c3d2e52903b1c523de",
        "CC-BY-3.0",
        "050e17476e6b4fa88f8518edaf09921c8f5e3a86dc8b63615361102a20b2ac01",
        ("data/data_small.json",),
    ),
    "banking": Source(
        "PolyAI-LDN/task-specific-datasets",
        "57ec275d8078af65b7731c2a98be812d844a6d6b",
        "CC-BY-4.0",
        "b06e26ac675513959a63135f11b94ea7786ed02da65db93a5650d8838cbc664b",
        ("banking_data/train.csv",),
    ),
    "book": Source(
        "rust-lang/book",
        "917544888a55e4da7109bdba8c88c893c0da70f4",
        "MIT OR Apache-2.0",
        "f9f78f89f39caaaa06fbe88a8930bff38c7246d9edb39a8fc825d1553f215fbb",
        ("src/*.md",),
    ),
}
_SHORTEST, _LONGEST = 4, 70
"""Words of a sentence that is asked about, and of a passage."""
_NAMED = """
Anna Ben Carla David Elena Frank Grace Henry Irene Jack Karen Leo Maria Nick Olivia Paul Rosa Sam Tina Victor Wendy
Adam Bella Chris Diana Emma Felix Gina Hugo Iris James Kate Liam Mia Noah Oscar Peter Ruth Simon Tara Max Priya Omar
Mei Kenji Lucia Ahmed Sofia Ivan Fatima Juan Nina Tom
"""
NAMES = _NAMED.split()
_COMMON_WORDS = """
a about after all also am an and any are as at be because been but by can could did do does don't for from get go got
had has have he her him his how i i'm i've if in into is it it's its just know like me more my no not of off oh ok on
one or other our out really say she so some than that that's the their them then there they thing things think this to
too up us very want was way we well were what when where which who will with would yeah yes you your
"""
_COMMON = frozenset(_COMMON_WORDS.split())


def repository(folder: Path, source: Source) -> dict[str, bytes]:
    """The files of `source` by path, from a clone or a wheel below `folder`. Raises SystemExit where they differ."""
    if source.place.endswith(".whl"):
        with zipfile.ZipFile(folder / source.place) as wheel:
            found = {name: wheel.read(name) for name in source.files}
    else:
        git = ["git", "-C", str(folder / source.place)]
        listed = ["ls-tree", "-r", "--name-only", source.commit, "--"]
        names = [
            name
            for pattern in source.files
            for name in (
                subprocess.check_output([*git, *listed, str(Path(pattern).parent) + "/"], text=True).splitlines()
                if "*" in pattern
                else [pattern]
            )
            if Path(name).match(pattern)
        ]
        found = {name: subprocess.check_output([*git, "show", f"{source.commit}:{name}"]) for name in sorted(names)}
    digest = hashlib.sha256(b"".join(found.values())).hexdigest()
    if digest != source.sha256:
        raise SystemExit(f"{source.place} holds other bytes than the table was trained with: SHA-256 {digest}")
    return found


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9][a-z0-9'’.-]*[a-z0-9]|[a-z0-9]", text.lower())


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+", " ".join(text.split()))


def _chats(loaded: dict[str, bytes]) -> Iterator[Turns]:
    for conversation in json.loads(loaded["chitchat_dataset/dataset.json"]).values():
        yield [(part[0]["sender"], " ".join(one["text"] for one in part)) for part in conversation["messages"] if part]


def _topical(loaded: dict[str, bytes]) -> Iterator[Turns]:
    for part in loaded.values():
        for conversation in json.loads(part).values():
            yield [(one["agent"], one["message"]) for one in conversation["content"]]


def _named(turns: Turns, rng: random.Random) -> Turns:
    """The same said by people with names."""
    names = dict(zip(dict.fromkeys(who for who, _ in turns), rng.sample(NAMES, len(NAMES)), strict=False))
    return [(names.get(who, who), " ".join(said.split())) for who, said in turns]


def _passage(turns: Turns, at: int, rng: random.Random) -> str:
    """What was said from `at` on: that turn alone, or as much as fits, as a line of notes each."""
    lines, words = [], 0
    least = rng.choice((1, 15, 40, _LONGEST))
    for who, said in turns[at:]:
        kept = said.split()[: _LONGEST - words]
        lines.append(f"- {who}: {' '.join(kept)}")
        words += len(kept)
        if words >= least:
            break
    return "\n".join(lines)


_OF_YOU = (
    (r"\b(?:do|did) you\b", {"do you": "does {0}", "did you": "did {0}"}),
    (r"\byou(?:'ve| have)\b", {"you've": "{0} has", "you have": "{0} has"}),
    (r"\b(?:are|were|have|had|can|could|would|will|should) you\b", None),
    (r"\byou(?:'re| are)\b", {"you're": "{0} is", "you are": "{0} is"}),
    (r"\byourself\b", {"yourself": "{0}"}),
    (r"\byours?\b", {"your": "{0}'s", "yours": "{0}'s"}),
    (r"\byou\b", {"you": "{0}"}),
)
_THIRD = {"are": "is", "were": "was", "have": "has"}


def _about(name: str, question: str) -> str:
    """A question to somebody as one about them."""

    def put(table: dict[str, str] | None) -> Callable[[re.Match[str]], str]:
        def one(found: re.Match[str]) -> str:
            words = " ".join(found[0].lower().split())
            if table is None:
                verb = words.split()[0]
                return f"{_THIRD.get(verb, verb)} {name}"
            return table[words].format(name)

        return one

    for pattern, table in _OF_YOU:
        question = re.sub(pattern, put(table), question, flags=re.IGNORECASE)
    return question[:1].upper() + question[1:]


def _asked(turns: Turns, at: int, rng: random.Random) -> str | None:
    """What the turn before `at` asked the one who speaks there; None where it asked nothing to remember."""
    if at == 0 or turns[at][0] == turns[at - 1][0]:
        return None
    asked = [one for one in _sentences(turns[at - 1][1]) if one.endswith("?")]
    if not asked or len(_words(turns[at][1])) < _SHORTEST:
        return None
    content = [word for word in _words(asked[-1]) if word not in _COMMON]
    if (
        not content
        or len(_words(asked[-1])) > 25
        or re.search(r"\b(?:how|what) about you|how are you", asked[-1], re.I)
    ):
        return None
    return _about(turns[at][0], asked[-1]) if rng.random() < 0.8 else asked[-1]


_VERBS = {
    "love": "What does {0} love?|Who loves {1}?",
    "like": "What does {0} like?|Who likes {1}?",
    "hate": "What does {0} hate?|Who hates {1}?",
    "have": "What does {0} have?|Who has {1}?",
    "need": "What does {0} need?|Who needs {1}?",
    "play": "What does {0} play?|Who plays {1}?",
    "work": "Where does {0} work?|What is {0}'s job?",
    "live": "Where does {0} live?|What is {0}'s home?",
    "study": "What does {0} study?|Who studies {1}?",
    "teach": "What does {0} teach?|Who teaches {1}?",
    "enjoy": "What does {0} enjoy?|Who enjoys {1}?",
    "prefer": "What does {0} prefer?|What would {0} rather have?",
    "read": "What did {0} read?|Who read {1}?",
    "went": "Where did {0} go?|Who went {1}?|When did {0} go {1}?",
    "got": "What did {0} get?|Who got {1}?|When did {0} get {1}?",
    "saw": "What did {0} see?|Who saw {1}?|When did {0} see {1}?",
    "watched": "What did {0} watch?|Who watched {1}?",
    "watch": "What does {0} watch?|Who watches {1}?",
    "bought": "What did {0} buy?|Who bought {1}?|When did {0} buy {1}?",
    "made": "What did {0} make?|Who made {1}?",
    "lost": "What did {0} lose?|Who lost {1}?",
    "found": "What did {0} find?|Who found {1}?",
    "heard": "What did {0} hear?|Who heard {1}?",
    "met": "Whom did {0} meet?|Who met {1}?|When did {0} meet {1}?",
    "visited": "Where was {0}?|Who visited {1}?|When did {0} visit {1}?",
    "moved": "Where did {0} move?|When did {0} move?",
    "started": "What did {0} start?|When did {0} start {1}?",
    "learned": "What did {0} learn?|Who learned {1}?",
    "used": "What did {0} use?|Who used {1}?",
    "wish": "What does {0} wish?|What is {0}'s dream?",
    "feel": "How does {0} feel?|How is {0} feeling?",
    "am": "Who is {1}?|What is {0}?|What is {0} doing?",
    "was": "Who was {1}?|What was {0}?|How was {0}?",
}
_FIRST = re.compile(rf"\bI (?:really |just |also |actually |still )?({'|'.join(_VERBS)})\b ?([^.,;!?]*)", re.I)
_WHY = re.compile(r"\bI (love|like|hate|need|want|prefer|enjoy|feel) ([^.,;!?]{4,40}) because\b", re.I)
_PERSONS = {
    "my": "their",
    "me": "them",
    "i": "they",
    "i'm": "they are",
    "our": "their",
    "we": "they",
    "myself": "themselves",
}


def _told(turns: Turns, at: int, rng: random.Random) -> str | None:
    """A question that the turn at `at` answers by what its speaker tells of themselves."""
    who, said = turns[at]
    if found := _WHY.search(said):
        return f"Why does {who} {found[1].lower()} {_of_them(found[2])}?"
    if not (found := _FIRST.search(said)) or len(_words(said)) < _SHORTEST:
        return None
    rest = _of_them(" ".join(found[2].split()[: rng.randint(2, 6)]))
    question = rng.choice(_VERBS[found[1].lower()].split("|"))
    if "{1}" in question and len([word for word in _words(rest) if word not in _COMMON]) == 0:
        return None
    return question.format(who, rest)


def _of_them(words: str) -> str:
    return " ".join(_PERSONS.get(word.lower(), word) for word in words.split())


_TOPIC = (
    "What did {0} say about {1}?",
    "What does {0} think of {1}?",
    "What happened with {1}?",
    "What was said about {1}?",
    "Who talked about {1}?",
    "{1}",
    "{0} {1}",
    "When did {0} mention {1}?",
    "What do we know about {1}?",
)


def _topic(turns: Turns, at: int, rng: random.Random, seen: Counter[str]) -> str | None:
    """A question about the rarest words of the turn at `at`, next to one another as they stand."""
    words = _words(turns[at][1])
    if len(words) < _SHORTEST:
        return None
    rarest = sorted(set(words) - _COMMON, key=lambda word: (seen[word], word))
    rare = set(rarest[: rng.choice((1, 2, 2, 3))])
    kept = [word for word in dict.fromkeys(words) if word in rare]
    return rng.choice(_TOPIC).format(turns[at][0], " ".join(kept)) if kept else None


def _of_chats(chats: Iterable[Turns], name: str, rng: random.Random) -> Iterator[Pair]:
    every = list(chats)
    seen = Counter(word for turns in every for _, said in turns for word in set(_words(said)))
    for number, turns in enumerate(every):
        turns = _named(turns, rng)
        for at in range(len(turns)):
            passage = _passage(turns, at, rng)
            ways = ((_asked, 1.0), (_told, 0.7))
            for ask, share in ways:
                if rng.random() < share and (question := ask(turns, at, rng)):
                    yield Pair(question, passage, f"{name}{number}-{at}")
            if rng.random() < 0.12 and (question := _topic(turns, at, rng, seen)):
                yield Pair(question, passage, f"{name}{number}-{at}")


def _squad(loaded: dict[str, bytes], rng: random.Random) -> Iterator[Pair]:
    sentences, questions = (
        part.decode().replace("-lrb-", "(").replace("-rrb-", ")").splitlines() for part in loaded.values()
    )
    distinct = list(dict.fromkeys(sentences))
    place = {sentence: at for at, sentence in enumerate(distinct)}
    for sentence, question in zip(sentences, questions, strict=True):
        at = place[sentence]
        around = distinct[max(0, at - rng.choice((0, 0, 1))) : at + rng.choice((1, 1, 2))]
        yield Pair(question, " ".join(" ".join(around).split()[:_LONGEST]), sentence)


def _qed(loaded: dict[str, bytes], rng: random.Random) -> Iterator[Pair]:
    for row in loaded["qed-dev.jsonlines"].splitlines():
        found = json.loads(row)
        yield Pair(
            found["question_text"] + "?", " ".join(found["paragraph_text"].split()[:_LONGEST]), found["title_text"]
        )


def _sayings(by_wish: dict[str, list[str]], rng: random.Random) -> Iterator[Pair]:
    for wish, texts in sorted(by_wish.items()):
        rng.shuffle(texts)
        for one, other in zip(texts[::2], texts[1::2], strict=False):
            yield Pair(one, other, wish)


def _clinc(loaded: dict[str, bytes], rng: random.Random) -> Iterator[Pair]:
    by_wish: defaultdict[str, list[str]] = defaultdict(list)
    for text, wish in json.loads(loaded["data/data_small.json"])["train"]:
        by_wish[wish].append(text)
    return _sayings(by_wish, rng)


def _banking(loaded: dict[str, bytes], rng: random.Random) -> Iterator[Pair]:
    by_wish: defaultdict[str, list[str]] = defaultdict(list)
    for row in csv.DictReader(io.StringIO(loaded["banking_data/train.csv"].decode())):
        by_wish[row["category"]].append(" ".join(row["text"].split()))
    return _sayings(by_wish, rng)


def _book(loaded: dict[str, bytes], rng: random.Random) -> Iterator[Pair]:
    """A heading of a handbook and the paragraph below it; a literal and a paragraph that names it."""
    for name, text in loaded.items():
        heading = ""
        for part in re.sub(r"```.*?```", "", text.decode(), flags=re.S).split("\n\n"):
            part = " ".join(part.split())
            if part.startswith("#"):
                heading = part.lstrip("# ").replace("`", "")
            elif len(_words(part)) >= 12 and part[0] not in "<[":
                passage = " ".join(part.split()[:_LONGEST])
                if heading and len(_words(heading)) > 1:
                    yield Pair(heading, passage, f"{name}{heading}")
                elif literals := re.findall(r"`([\w.:!-]{4,30})`", part):
                    yield Pair(f"What does {rng.choice(literals)} do?", passage, passage)
                heading = ""


_SHARES = {
    "chitchat": 15_000,
    "topical": 6_000,
    "squad": 9_000,
    "qed": 1_400,
    "clinc": 2_000,
    "banking": 2_000,
    "book": 1_500,
    "facts": 2_500,
    "logs": 1_500,
}
"""How many pairs of each kind are drawn."""


def pairs(folder: Path, seed: int) -> list[Pair]:
    """The pairs of all sources below `folder`, in the order of their kinds."""
    made: dict[str, Callable[[dict[str, bytes], random.Random], Iterable[Pair]]] = {
        "chitchat": lambda loaded, rng: _of_chats(_chats(loaded), "chitchat", rng),
        "topical": lambda loaded, rng: _of_chats(_topical(loaded), "topical", rng),
        "squad": _squad,
        "qed": _qed,
        "clinc": _clinc,
        "banking": _banking,
        "book": _book,
        "facts": lambda _, rng: (Pair(*one) for one in facts(rng)),
        "logs": lambda _, rng: (Pair(*one) for one in identifiers(rng)),
    }
    every: list[Pair] = []
    for kind, make in made.items():
        rng = random.Random(f"{seed} {kind}")
        loaded = repository(folder, SOURCES[kind]) if kind in SOURCES else {}
        found = list(make(loaded, rng))
        every += rng.sample(found, min(_SHARES[kind], len(found)))
    return every
