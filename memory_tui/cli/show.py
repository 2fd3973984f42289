"""Commands that show memory-tui to others: report, completion, man."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from memory_tui import __version__
from memory_tui.cli.common import Command, opened, query_of, spoken, waiting
from memory_tui.cli.main import COMMANDS as TABLE
from memory_tui.cli.main import EXIT_CODES, build_parser
from memory_tui.core.errors import QueryError

SHELLS = ("bash", "zsh", "fish")


def _declare_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", type=spoken, help="the query")
    parser.add_argument("--out", metavar="FILE", help="write FILE.html or FILE.md (default: print Markdown)")
    parser.add_argument(
        "--with-text", action="store_true", help="also the text of the notes that the agent reads; secrets are masked"
    )


def _report(given: argparse.Namespace) -> int:
    from memory_tui.doctor import runner
    from memory_tui.render import as_text, report

    query = query_of(given)
    if query is None:
        raise QueryError("There is no query.", 'For instance: memory-tui report "router vlan" --out report.html.')
    out = Path(given.out).expanduser() if hasattr(given, "out") else None
    if out is not None:
        report.require_kind(out)
    with opened(given) as engine:
        engine.plan.require_enabled()
        engine.indexer.catch_up()
        with waiting("Asking, comparing the profiles, examining"):
            checks = runner.unusual(engine)
            made = report.make(engine, query, engine.plan.settings, checks, with_text=hasattr(given, "with_text"))
    if out is None:
        sys.stdout.write(report.markdown(made))
        return 0
    report.save(made, out, replace=True)
    if hasattr(given, "json"):
        as_text.print_json({"file": str(out), "bytes": out.stat().st_size})
    else:
        text = "with the text of notes" if hasattr(given, "with_text") else "without the text of notes"
        as_text.print_lines([f"{out} written, {text}."])
    return 0


def _declare_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell whose script is printed")


def _completion(given: argparse.Namespace) -> int:
    sys.stdout.write(script(given.shell))
    return 0


def _man(given: argparse.Namespace) -> int:
    del given
    sys.stdout.write(man_page())
    return 0


NOTES = frozenset({"path", "place"})
"""Arguments that are a note: completed with paths of files."""


class Word(Struct, frozen=True):
    """An option or a positional argument: its names, its help, what it can be, whether it takes a value."""

    names: tuple[str, ...]
    help: str
    choices: tuple[str, ...] = ()
    takes_value: bool = True
    metavar: str = ""

    @property
    def is_option(self) -> bool:
        """Whether it begins with a dash."""
        return self.names[0].startswith("-")


def words_of(parser: argparse.ArgumentParser) -> list[Word]:
    """Every argument of `parser` but its subcommands."""
    found = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            continue
        metavar = action.metavar if isinstance(action.metavar, str) else ""
        names = tuple(action.option_strings) or (action.dest,)
        choices = tuple(map(str, action.choices or ()))
        found.append(Word(names, (action.help or "").replace("%%", "%"), choices, action.nargs != 0, metavar))
    return found


def commands() -> dict[str, list[Word]]:
    """Each command with its arguments, and under the empty name what stands before a command."""
    parser = build_parser()
    holder = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    found = {name: words_of(sub) for name, sub in holder.choices.items()}
    return {"": words_of(parser), **found}


def script(shell: str) -> str:
    """The completion script of bash, zsh or fish."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands())


def _options(words: list[Word]) -> str:
    return " ".join(name for word in words if word.is_option for name in word.names)


def _choices(words: list[Word]) -> str:
    return " ".join(choice for word in words if not word.is_option for choice in word.choices)


def _bash(table: dict[str, list[Word]]) -> str:
    cases = "\n".join(
        f'    {name}) words="{_options(words)} {_choices(words)}" ;;' for name, words in table.items() if name
    )
    return f"""# memory-tui completion for bash: eval "$(memory-tui completion bash)"
_memory_tui() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" command="" word words
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case " {" ".join(name for name in table if name)} " in *" $word "*) command="$word"; break ;; esac
  done
  case "$command" in
{cases}
    *) words="{" ".join(name for name in table if name)} {_options(table[""])}" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ "$current" == -* ]] || COMPREPLY+=($(compgen -f -- "$current"))
}}
complete -o filenames -F _memory_tui memory-tui
"""


def _quoted(text: str) -> str:
    return text.replace("'", "'\\''")


def _zsh(table: dict[str, list[Word]]) -> str:
    listed = "\n".join(f"    '{name}:{_quoted(TABLE[name].help.replace(':', ' '))}'" for name in table if name)
    cases = "\n".join(f"    {name}) {_zsh_arguments(words)} ;;" for name, words in table.items() if name)
    return f"""#compdef memory-tui
# memory-tui completion for zsh: source <(memory-tui completion zsh)
_memory_tui() {{
  local -a commands
  commands=(
{listed}
  )
  if (( CURRENT == 2 )); then _describe command commands; _files; return; fi
  case "$words[2]" in
{cases}
    *) _files ;;
  esac
}}
compdef _memory_tui memory-tui
"""


def _zsh_arguments(words: list[Word]) -> str:
    parts = []
    for word in words:
        said = _quoted(word.help).replace("[", "(").replace("]", ")").replace(":", " ")
        values = f"({' '.join(word.choices)})" if word.choices else "_files"
        if not word.is_option:
            parts.append(f"'*:{word.names[0]}:{values}'")
            continue
        value = f":{word.metavar or 'value'}:{values}" if word.takes_value else ""
        parts += [f"'{name}[{said}]{value}'" for name in word.names]
    return f"_arguments {' '.join(parts)}" if parts else "_files"


def _fish(table: dict[str, list[Word]]) -> str:
    names = " ".join(name for name in table if name)
    lines = [
        "# memory-tui completion for fish: memory-tui completion fish | source",
        f"set -l commands {names}",
    ]
    for name, words in table.items():
        if name:
            said = _quoted(TABLE[name].help)
            lines.append(f"complete -c memory-tui -n 'not __fish_seen_subcommand_from $commands' -a {name} -d '{said}'")
        where = f"__fish_seen_subcommand_from {name}" if name else "not __fish_seen_subcommand_from $commands"
        for word in words:
            lines += list(_fish_word(word, where))
    return "\n".join(lines) + "\n"


def _fish_word(word: Word, where: str) -> Iterator[str]:
    said = _quoted(word.help)
    choices = f" -a '{' '.join(word.choices)}'" if word.choices else ""
    if not word.is_option:
        if choices:
            yield f"complete -c memory-tui -n '{where}' -f{choices}"
        return
    for name in word.names:
        flag = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
        value = " -r" if word.takes_value else ""
        yield f"complete -c memory-tui -n '{where}' {flag}{value}{choices} -d '{said}'"


def man_page() -> str:
    """The manual page memory-tui(1) in the man macros."""
    today = dt.date.today().isoformat()
    lines = [
        f'.TH MEMORY-TUI 1 "{today}" "memory-tui {__version__}"',
        ".SH NAME",
        "memory-tui \\- see, search and explain the Markdown memory of an agent",
        ".SH SYNOPSIS",
        ".B memory-tui",
        "[\\fIOPTION\\fR]... [\\fICOMMAND\\fR] [\\fIARGUMENT\\fR]...",
        ".SH TABLE",
    ]
    table = commands()
    shared = {word.names for word in table[""]}
    for name, words in table.items():
        if not name:
            continue
        lines += [".TP", f".B {name}", _roff(f"{TABLE[name].help[:1].upper()}{TABLE[name].help[1:]}.")]
        own = [word for word in words if word.names not in shared]
        if own:
            lines += [".RS", *(line for word in own for line in _man_word(word)), ".RE"]
    lines += [".SH OPTIONS", *(line for word in table[""] for line in _man_word(word))]
    lines += [".SH EXIT STATUS", ".nf", *map(_roff, EXIT_CODES.split("\n")[1:]), ".fi"]
    lines += [".SH SEE ALSO", _roff("memory-tui help lists the pages of the manual.")]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text[:1] in (".", "'") else text


def _man_word(word: Word) -> Iterator[str]:
    value = word.metavar or ("|".join(word.choices) if word.choices else word.names[0].lstrip("-").upper())
    yield ".TP"
    if word.is_option:
        yield f"\\fB{_roff(', '.join(word.names))}\\fR" + (f" \\fI{_roff(value)}\\fR" if word.takes_value else "")
    else:
        yield f"\\fI{_roff(value)}\\fR"
    yield _roff(word.help)


COMMANDS: dict[str, Command] = {
    "report": Command(_report, _declare_report),
    "completion": Command(_completion, _declare_completion),
    "man": Command(_man),
}
