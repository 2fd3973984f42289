"""Simulated sets for recall.py: `python tests/bench/simulated.py FOLDER` writes FOLDER/faq and FOLDER/ids.

Each is made from a seed. `faq` holds answers to questions that are asked in other words than the notes have; `ids`
holds logs full of identifiers that differ in a letter or a digit, and questions that name one of them.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
from collections.abc import Iterator
from pathlib import Path

SEED, WORKSPACES = 17, 4
FIRST_DAY = dt.date(2026, 3, 2)
PRODUCTS = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Ginkgo", "Hazel", "Juniper", "Larch", "Maple", "Oak")
TOPICS = (
    ("To change the password of {0}, open Account and choose Security.", "how do I set new login credentials for {0}"),
    ("{0} keeps a backup of every project for {1} days.", "how long can I restore old copies in {0}"),
    ("Refunds for {0} arrive within {1} working days.", "when do I get my money back after I return {0}"),
    ("The free plan of {0} is limited to {1} members.", "how many people may join {0} without paying"),
    ("{0} stores all customer data in {2}.", "in which country does {0} keep what I upload"),
    ("Support for {0} answers the telephone until {1} o'clock.", "what are the hours when I can call {0}"),
    ("To delete an account in {0}, write to the privacy team.", "how can I leave {0} and have everything erased"),
    ("{0} cannot be installed on computers older than {1} years.", "does {0} run on my ancient laptop"),
    ("Invoices of {0} are sent by e-mail on day {1} of the month.", "when does the bill of {0} come"),
    ("{3} is responsible for the roadmap of {0}.", "who decides what is built next in {0}"),
    ("The offline mode of {0} keeps the last {1} documents.", "can I work in {0} on a plane without internet"),
    ("Students pay {1} euros a year for {0}.", "is there a discount on {0} for people at university"),
    ("{0} was first released in {2} by {3}.", "who brought out the original version of {0}"),
    ("The screen of {0} turns dark after {1} minutes without input.", "why does the display of {0} go black"),
    ("Parcels with {0} leave the warehouse in {2} each morning.", "where is {0} shipped from"),
    ("Colours of {0} are changed under Appearance.", "how do I get another theme in {0}"),
)
CITIES = ("Lisbon", "Dublin", "Vienna", "Oslo", "Turin", "Ghent", "Malmo", "Porto")
PEOPLE = ("Ines", "Bram", "Carla", "Dmitri", "Esther", "Farid", "Greta", "Hugo", "Jonas", "Kirsten")
EVENTS = (
    ("{3} closed {0} after the restart of {1}", "who closed {0}"),
    ("{1} ran out of disk, {3} removed old logs", "what was wrong with {1}"),
    ("release {2} went to {1} without problems", "where was {2} rolled out"),
    ("error {4} came back on {1}, see {0}", "on which machine did {4} appear"),
    ("{3} set {5} to {6} because requests took too long", "why did we change {5}"),
    ("{3} reverted commit {7} in release {2}", "who took back {7}"),
    ("rotated the certificate of {1} with {8}", "how was the certificate of {1} renewed"),
    ("{0} waits for a review by {3}", "who has to look at {0}"),
)


def digits(rng: random.Random, few: str, count: int) -> str:
    """`count` characters out of `few`, so that many identifiers are nearly the same."""
    return "".join(rng.choice(few) for _ in range(count))


def identifiers(rng: random.Random) -> tuple[str, ...]:
    """A ticket, a host, a release, a person, an error, a variable, a number, a commit and a file."""
    return (
        f"{rng.choice(('OPS', 'APP', 'NET'))}-{digits(rng, '12345678', 4)}",
        f"{rng.choice(('db', 'web', 'cache'))}-{rng.choice(('eu', 'us'))}-{digits(rng, '01234567', 2)}",
        f"v{rng.randint(1, 3)}.{rng.randint(0, 14)}.{rng.randint(0, 9)}",
        rng.choice(PEOPLE),
        f"E_{rng.choice(('CONN', 'AUTH', 'DISK'))}_{digits(rng, '01456789', 3)}",
        f"{rng.choice(('POOL', 'QUEUE', 'RETRY'))}_{rng.choice(('MAX', 'MIN'))}_{rng.choice(('SIZE', 'WAIT', 'AGE'))}",
        str(rng.randint(2, 900)),
        digits(rng, "0123abcdef", 7),
        f"/etc/{rng.choice(('nginx', 'haproxy', 'certs'))}/{digits(rng, 'abc', 3)}.conf",
    )


def faq_notes(rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Facts of every product and topic, eight a day: the note, the line, and the question that it answers."""
    every = [(product, *topic) for product in PRODUCTS for topic in TOPICS]
    for at, (product, line, question) in enumerate(rng.sample(every, len(every))):
        filled = (product, rng.randint(2, 90), rng.choice(CITIES), rng.choice(PEOPLE))
        path = f"memory/{FIRST_DAY + dt.timedelta(days=at // 8)}.md"
        yield path, line.format(*filled), question.format(product) + "?"


def ids_notes(rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Log lines of ninety days, each with the question that it answers."""
    for day in range(90):
        for line, question in rng.sample(EVENTS, 6):
            found = identifiers(rng)
            path = f"memory/{FIRST_DAY + dt.timedelta(days=day)}.md"
            yield path, line.format(*found), question.format(*found) + "?"


def write(folder: Path, made: dict[str, list[tuple[str, str, str]]]) -> None:
    """A set of the `made` workspaces; what several lines answer is right on each of them."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "queries.jsonl").open("w", encoding="utf-8") as file:
        for name, rows in made.items():
            notes: dict[str, list[str]] = {}
            evidence: dict[str, list[dict[str, str | int]]] = {}
            for path, line, question in rows:
                lines = notes.setdefault(path, [f"# {Path(path).stem}", ""])
                lines.append(f"- {line}")
                evidence.setdefault(question, []).append({"path": path, "line": len(lines)})
            for path, lines in notes.items():
                note = folder / "workspaces" / name / path
                note.parent.mkdir(parents=True, exist_ok=True)
                note.write_text("\n".join(lines) + "\n", encoding="utf-8")
            for question, right in evidence.items():
                file.write(json.dumps({"workspace": name, "question": question, "evidence": right}) + "\n")


def main() -> None:
    """Write both sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    for name, notes in (("faq", faq_notes), ("ids", ids_notes)):
        made = {f"w{at}": list(notes(random.Random(SEED + at))) for at in range(WORKSPACES)}
        write(given.folder / name, made)
        print(f"{name}: {sum(map(len, made.values()))} lines in {len(made)} workspaces")


if __name__ == "__main__":
    main()
