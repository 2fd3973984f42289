"""The Markdown headings under which a line stands."""

from __future__ import annotations

import re
from bisect import bisect_left

LONGEST = 200
"""Characters of a heading that count; a whole file in one `#` line would otherwise be repeated in every chunk."""

_MARK = re.compile(r"^ {0,3}(?:(?P<hashes>#{1,6})[ \t]+(?P<title>[^\n]+)|(?P<fence>```+|~~~+)(?P<info>[^\n]*))", re.M)
_CLOSING = re.compile(r"(?:^|[ \t]+)#+\s*$")


class Headings:
    """Where the headings of a note are; `#` lines inside fenced code are none."""

    def __init__(self, text: str) -> None:
        self._lines: list[int] = []
        self._trails: list[tuple[str, ...]] = []
        levels: dict[int, str] = {}
        fence = ""
        line, seen = 1, 0
        for match in _MARK.finditer(text):
            if match["fence"]:
                fence = _fence_after(fence, match["fence"], match["info"].strip())
                continue
            title = _CLOSING.sub("", match["title"][:LONGEST]).strip()
            if fence or not title:
                continue
            level = len(match["hashes"])
            levels = {above: name for above, name in levels.items() if above < level} | {level: title}
            line += text.count("\n", seen, match.start())
            seen = match.start()
            self._lines.append(line)
            self._trails.append(tuple(levels.values()))

    def above(self, line: int) -> tuple[str, ...]:
        """The nearest heading of each level above `line` (1-based), outermost first."""
        at = bisect_left(self._lines, line)
        return self._trails[at - 1] if at else ()


def _fence_after(fence: str, mark: str, info: str) -> str:
    """The fence that is open after a line with `mark`, given the one open before ("" for none)."""
    if not fence:
        return "" if mark[0] in info and mark[0] == "`" else mark
    return "" if mark.startswith(fence) and not info else fence
