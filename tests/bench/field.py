"""Findings of the inbox by kind and group: `python -m tests.bench.field [DIR...]`, each DIR a folder of notes.

Without one the labelled notes below `tests/inbox/field` are examined, and precision and recall of each kind are
printed, with what was wrong or missed. What was kept silent is counted by its reason.
"""

import sys
import time
from collections import Counter
from statistics import median

from memory_tui.inbox import checks
from memory_tui.inbox.checks import InboxInputs
from memory_tui.notes import edit
from memory_tui.plan import Options, plan
from tests.support.inbox import FEWEST, Labels, found, labelled, measured


def read(folder: str) -> InboxInputs:
    """Read a workspace as the app does."""
    workspace = plan(Options(workspace=folder))
    return checks.inputs_of(workspace, edit.curator(workspace), None)


def main(folders: list[str]) -> None:
    spaces: dict[str, tuple[InboxInputs, Labels | None]] = {name: (read(name), None) for name in folders}
    groups: Counter[str] = Counter()
    counts, begun = [], time.process_time()
    for name, (notes, wanted) in (spaces or labelled()).items():
        findings = checks.examine(notes, kinds=checks.BY_KIND)
        print(name)
        for group in findings.groups:
            print(f"  {group.kind}: {group.cause.message}")
            for row in group.suggestions[:3]:
                print(f"    {row.place}  {row.place.text[:90]!r}" + (f"  < {row.other}" if row.other else ""))
        print("  silent:", dict(findings.quiet) or "nothing")
        groups.update(group.kind for group in findings.groups)
        counts.append(len(findings.groups))
        if wanted is not None:
            seen = found(findings)
            print(*(f"  wrong: {row}" for row in sorted(seen - wanted)), sep="\n")
            print(*(f"  missed: {row}" for row in sorted(wanted - seen)), sep="\n")
    print(f"groups: median {median(counts):g}, most {max(counts)}; {time.process_time() - begun:.1f} s of CPU")
    print("groups by kind:", dict(groups))
    for kind, (shown, right, expected, places) in ({} if spaces else measured()).items():
        fewer = f", not measured: {places} places, fewer than {FEWEST}" if places < FEWEST else f", {places} places"
        print(f"{kind}: right {right} of {shown}, found {right} of {expected}{fewer}")


if __name__ == "__main__":
    main(sys.argv[1:])
