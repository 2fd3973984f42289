"""Facts and log lines made from seeds, each with a question in other words: the built-in table is trained with them."""

from __future__ import annotations

import random
from collections.abc import Iterator

_PEOPLE = (
    "Anna",
    "Ben",
    "Carla",
    "David",
    "Elena",
    "Frank",
    "Grace",
    "Henry",
    "Irene",
    "Jack",
    "Karen",
    "Leo",
    "Maria",
)
_DIGITS = "0123456789"
_WHAT = {
    "pet": ("dog", "cat", "rabbit", "parrot", "hamster", "tortoise"),
    "place": ("Spain", "Japan", "Canada", "Norway", "Brazil", "Scotland", "Italy"),
    "sport": ("tennis", "swimming", "climbing", "football", "rowing", "chess"),
    "job": ("nurse", "teacher", "carpenter", "lawyer", "baker", "designer", "pilot"),
    "kin": ("sister", "brother", "mother", "father", "cousin", "aunt"),
    "food": ("lasagna", "curry", "pancakes", "sushi", "soup", "salad"),
    "day": ("Monday", "Tuesday", "last week", "yesterday", "in March", "two days ago"),
    "thing": ("bicycle", "camera", "laptop", "guitar", "car", "sofa"),
}
_FACTS = (
    ("I adopted a {pet} from the shelter {day}.", "What animal lives with {who} now?|Did {who} get a new companion?"),
    ("We had to put our {pet} to sleep {day}.", "Whose pet died?|What loss did {who} suffer?"),
    (
        "I flew to {place} {day} and stayed for ten days.",
        "Where did {who} spend the holidays?|Which country did {who} travel to?",
    ),
    ("I signed up for a {sport} class {day}.", "What hobby did {who} take up?|How does {who} keep fit?"),
    ("I hurt my knee while {sport} training.", "What injury does {who} have?|Why can't {who} do sports?"),
    ("I quit my position as a {job} {day}.", "When did {who} resign?|What did {who} do for a living before?"),
    ("I start as a {job} next month.", "What is the new profession of {who}?|What career does {who} begin?"),
    ("My {kin} is getting married {day}.", "Whose wedding is {who} going to?|Who in the family becomes a spouse?"),
    ("My {kin} had a baby girl {day}.", "Who in the family of {who} gave birth?|Is there a newborn in the family?"),
    ("My {kin} is in hospital after a fall.", "Which relative of {who} is ill?|Who was injured?"),
    ("I cooked {food} for everybody {day}.", "What meal did {who} prepare?|Who made dinner?"),
    ("I am allergic to nuts, so no {food} for me.", "What can {who} not eat?|Which food makes {who} sick?"),
    ("I sold my old {thing} {day}.", "What did {who} get rid of?|What does {who} no longer own?"),
    ("Somebody stole my {thing} {day}.", "What was taken from {who}?|Who was robbed?"),
    ("The {thing} I ordered arrived {day}.", "What did {who} purchase?|When was the parcel delivered?"),
    ("I moved to {place} because of my partner.", "Why did {who} relocate?|In which country does {who} live?"),
    ("I grew up in {place} with my {kin}.", "Where is {who} from?|Where was the childhood of {who}?"),
    ("I can't sleep before exams, I get so nervous.", "What makes {who} anxious?|Why is {who} awake at night?"),
    ("I passed my driving test {day}!", "What did {who} achieve?|Is {who} allowed to drive?"),
    ("I failed the final exam of the {job} school.", "Which setback did {who} have?|How did the test go?"),
    ("I broke up with my girlfriend {day}.", "Is {who} single?|Whose relationship ended?"),
    (
        "We are saving money for a house by the sea.",
        "What are {who}'s plans for the future?|What does {who} put cash aside for?",
    ),
    ("I paint landscapes to calm down after work.", "How does {who} relax?|What helps {who} against stress?"),
    ("I got {food} with my {kin} at that new restaurant.", "Where did {who} eat out?|With whom did {who} have a meal?"),
    ("I volunteer at the animal home every {day}.", "What charity does {who} support?|How does {who} help others?"),
    ("My boss gave me a raise {day}.", "Did the salary of {who} change?|Does {who} earn more?"),
    ("My {kin} taught me to play the violin.", "Which instrument did {who} learn?|Who introduced {who} to music?"),
    (
        "My flight to {place} was cancelled because of snow.",
        "What went wrong with the trip of {who}?|Why was {who} stuck?",
    ),
    ("The doctor told me to drink less coffee.", "What medical advice did {who} get?|Which habit should {who} reduce?"),
    (
        "I run five miles along the river before breakfast.",
        "What is the morning routine of {who}?|How does {who} exercise?",
    ),
    ("I finally finished writing my novel {day}.", "What book is {who} the author of?|What did {who} complete?"),
    ("My {thing} broke and the repair is too expensive.", "What does {who} need to replace?|What stopped working?"),
    ("I turned thirty {day} and we had a party.", "How old is {who}?|When is the birthday of {who}?"),
    (
        "The landlord raises our rent {day}.",
        "Why does the flat of {who} cost more?|What bad news came about the apartment?",
    ),
    ("I gave the children a puppy for Christmas.", "What present did {who} make?|What gift did the kids get?"),
)
_LINES = (
    (
        "{host}: {unit} failed with {error}, restarted by {who}",
        "which service crashed on {host}|who fixed {unit}|what broke {unit}",
    ),
    (
        "merged {pull} into {branch}, it fixes {ticket}",
        "which change solves {ticket}|what does {pull} repair|where did {pull} land",
    ),
    ("{who} moved {file} to {host}", "where is {file} now|who transferred {file}|what was copied to {host}"),
    ("upgraded {package} from {old} to {new}", "which version of {package} do we run|what was updated to {new}"),
    (
        "port {port} on {host} is taken by {unit}",
        "what listens on {port}|why can't I bind {port}|which port does {unit} use",
    ),
    ("the token of {who} for {host} ends on {date}", "when does the access of {who} expire|what ends on {date}"),
    (
        "{ticket}: {unit} leaks memory since {new}",
        "since when does {unit} grow|what is {ticket} about|which release made {unit} worse",
    ),
    (
        "build {build} of {branch} is red because of {file}",
        "why did {build} fail|what is wrong with {file}|which build broke on {branch}",
    ),
    ("{key} in {file} must be {number}", "what value has {key}|where is {key} set|how high is {key}"),
    ("{who} asked {other} to review {pull}", "who should look through {pull}|what does {other} have to read"),
    ("disk of {host} at {number} percent, deleted {file}", "how full is {host}|what was removed from {host}"),
    ("{address} is the new address of {host}", "what is the ip of {host}|which machine has {address}"),
)


def _chosen(rng: random.Random) -> dict[str, str]:
    return {name: rng.choice(choices) for name, choices in _WHAT.items()}


def facts(rng: random.Random, count: int = 3_000) -> Iterator[tuple[str, str, str]]:
    """`count` questions, each with a line of a chat that answers it in other words, and what it is about."""
    for _ in range(count):
        who, other = rng.sample(_PEOPLE, 2)
        line, questions = rng.choice(_FACTS)
        chosen = _chosen(rng)
        said = [f"- {who}: {line.format(**chosen)}"]
        for _ in range(rng.choice((0, 0, 1, 2))):
            near = rng.choice(_FACTS)[0].format(**_chosen(rng))
            said.insert(rng.randint(0, len(said)), f"- {other}: {near}")
        yield rng.choice(questions.split("|")).format(who=who), "\n".join(said), line


def _run(rng: random.Random, few: str, count: int) -> str:
    return "".join(rng.choice(few) for _ in range(count))


_PARTS = {
    "host": "app mail build edge|lab prod dev",
    "unit": "sync queue auth render ingest|worker proxy agent",
    "file": "dump core access schema|log tar sql yaml",
    "package": "lib py node-|parse crypt image net cache",
    "key": "max min default|threads retries timeout batch",
}
"""What comes first in an identifier, and what later."""


def _made(rng: random.Random) -> dict[str, str]:
    """Identifiers of each kind by the name that `_LINES` has for it."""

    def one(name: str, side: int) -> str:
        return rng.choice(_PARTS[name].split("|")[side].split())

    return {
        "host": f"{one('host', 0)}{_run(rng, _DIGITS, 2)}.{one('host', 1)}",
        "unit": f"{one('unit', 0)}-{one('unit', 1)}",
        "error": f"{rng.choice(('ERR', 'SIG', 'EXC'))}{_run(rng, _DIGITS, 3)}",
        "pull": f"#{_run(rng, _DIGITS[1:], 4)}",
        "ticket": f"{rng.choice(('CORE', 'BUG', 'INFRA'))}-{_run(rng, _DIGITS[1:], 3)}",
        "branch": rng.choice(("main", "develop", f"release/{rng.randint(1, 9)}.{rng.randint(0, 9)}")),
        "file": f"{one('file', 0)}_{_run(rng, 'abcdef' + _DIGITS, 4)}.{one('file', 1)}",
        "package": f"{one('package', 0)}{one('package', 1)}{rng.randint(2, 9)}",
        "old": f"{rng.randint(0, 4)}.{rng.randint(0, 9)}.{rng.randint(0, 9)}",
        "new": f"{rng.randint(5, 9)}.{rng.randint(0, 9)}.{rng.randint(0, 9)}",
        "port": _run(rng, _DIGITS[1:], 4),
        "date": f"2025-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
        "build": f"b{_run(rng, _DIGITS + 'abcdef', 6)}",
        "key": f"{one('key', 0)}_{one('key', 1)}",
        "number": str(rng.randint(3, 99)),
        "address": f"10.{rng.randint(0, 99)}.{rng.randint(0, 99)}.{rng.randint(1, 250)}",
    }


def identifiers(rng: random.Random, count: int = 2_000) -> Iterator[tuple[str, str, str]]:
    """`count` questions that name an identifier, each with the log line that holds it, and that line."""
    for _ in range(count):
        who, other = rng.sample(_PEOPLE, 2)
        named = {"who": who, "other": other, **_made(rng)}
        line, questions = rng.choice(_LINES)
        filled = f"- {line.format(**named)}"
        yield rng.choice(questions.split("|")).format(**named) + "?", filled, filled
