"""A plan is everything the engine must know before it opens or writes a file.

A configuration that names a remote provider was written for the agent, and a key in the environment for another
program: following them silently would send every note to that host and cost money. So nothing is sent before a person
approves it once, for this workspace, provider and host. `--provider NAME` chooses, and approves nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

import platformdirs
from msgspec import Struct
from msgspec.structs import replace

from memory_tui.approval import Approvals
from memory_tui.config import config_file, openclaw_release, places
from memory_tui.config import config_file as configuration
from memory_tui.config import settings as knobs
from memory_tui.config.config_file import Agent, Config
from memory_tui.config.settings import NEWEST_OPENCLAW, OWN_PROFILE, Knob, Profile, Settings, Value
from memory_tui.errors import ConfigError, IndexRefused, SettingError, WorkspaceError
from memory_tui.providers import registry
from memory_tui.providers.registry import BatchOptions, ProviderSettings, RequestLimits
from memory_tui.state_db import ScopedRecords, Table
from memory_tui.workspace.notes import media_rules, project_key
from memory_tui.workspace.roots import HIDDEN, Roots, check_folder, notes_below, shape_of


class Options(Struct, frozen=True):
    """What the command line asked for; None or empty where it said nothing. `now` is in seconds, for ages."""

    workspace: str | None = None
    config: str | None = None
    index: str | None = None
    provider: str = ""
    read_only: bool = False
    """Whether no note may be changed."""
    now: float | None = None
    changes: tuple[tuple[str, str], ...] = ()
    """Name and value of each `--set`, as written."""
    agent: str = ""
    """The id of one of the configuration's agents; empty for its default one."""
    once: bool = False
    """Whether one question will be asked and no more, so that little should be read for it."""
    answers: bool = False
    """Whether a person waits for one answer, so that a test text of a provider gets no more time than a question."""
    extra: tuple[str, ...] = ()
    """Notes and folders of notes besides those that the configuration names."""
    projects: tuple[str, ...] = ()
    """Keys of the projects that the agent works on, as a person writes them."""
    backend: str = ""
    """Who searches: builtin or qmd."""
    qmd_home: str | None = None
    """Folder of QMD's configuration and index."""
    memories: str = ""
    """Folder of the LanceDB table of long-term memories."""
    sample: bool = False
    """Whether it is a sample workspace, beside which nobody's own long-term memories are opened."""


DEFAULT_PROVIDER = "auto"


class Plan(Struct, frozen=True):
    """Everything decided: whose notes and where, which settings hold and why, which provider."""

    options: Options
    config: Config
    workspace: Path
    """Where the notes should be."""
    own_values: dict[str, Value]
    """What memory-tui's own configuration sets, but for the profile; it may stand beside OpenClaw's, which applies."""
    chosen: dict[str, Value]
    """What `--set` gave to knobs, by key."""
    settings: Settings
    provider: str
    """The name of a provider, auto or none."""
    provider_origin: str
    """Who chose it: `--provider`, a configuration file, or auto."""
    index: Path
    backend_values: Mapping[str, object]
    """Documented values of memory.backend and memory.qmd that were asked for now, by key."""
    roots: Roots
    """Where notes are read; whether anything is there is asked by `plan`."""
    mirror: bool = False
    """Whether the index is a mirror of a shared one, which nobody compares with the disk."""

    def clock(self) -> float:
        """Return the time that ages are counted from, in epoch seconds."""
        return time.time() if self.options.now is None else self.options.now

    @property
    def profile(self) -> Profile:
        """Return the rules in force."""
        return self.settings.profile

    @property
    def projects(self) -> frozenset[str]:
        """Return keys of the projects that the agent works on, which OpenClaw from 2026.9 on ranks by."""
        return frozenset(project_key(key) for key in self.options.projects)

    @property
    def backend(self) -> str:
        """Return who was chosen to search: builtin or qmd."""
        return str(self.backend_value(knobs.BACKEND))

    @property
    def backend_origin(self) -> str:
        """Return who chose the backend, in words."""
        if knobs.BACKEND in self.backend_values:
            return "--backend"
        entry = self.config.entries.get(knobs.BACKEND)
        # Of several places in files that set it the last counts.
        return str(entry.places[-1]) if entry else "default"

    @property
    def recalls_entries(self) -> bool:
        """Return whether entries of LanceDB are the agent's memory: by the slot, or by `--memories`."""
        return bool(self.options.memories) or self.config.text(openclaw_release.SLOT) == openclaw_release.LANCEDB_PLUGIN

    def backend_value(self, key: str) -> object:
        """Return the value of memory.backend or of a key below memory.qmd: as asked now, configured, or the default."""
        return self.backend_values[key] if key in self.backend_values else self.config.value(key)

    @property
    def agent(self) -> Agent:
        """Return the agent whose memory this is."""
        return self.config.agent

    def with_profile(self, name: str) -> Settings:
        """Return the settings under profile `name` (auto included), keeping what was explicitly chosen."""
        return _compose(name, self.config, self.own_values, self.chosen)

    def as_written(self) -> Settings:
        """Return what holds under the profile in force without anything that was only asked for now."""
        return _compose(self.settings.word("profile"), self.config, self.own_values, {})

    @property
    def index_command(self) -> str:
        """Return the command that makes this index, and asks before a provider gets the notes."""
        return "memory-tui index" + (f" --provider {self.provider}" if self.provider_origin == NAMED else "")

    @property
    def siblings(self) -> tuple[Path, ...]:
        """Return the indexes of the same notes that are cut by other rules."""
        # Every way of cutting has an entry in _SUFFIX.
        return tuple(path for chunking in _SUFFIX if (path := self.index_cut_by(chunking)) != self.index)

    def index_cut_by(self, chunking: str) -> Path:
        """Return the index of the same notes whose passages are cut by the rules of `chunking`."""
        current = self.profile.chunking
        if chunking == current:
            return self.index
        name = f"{self.index.stem.removesuffix(_SUFFIX[current])}{_SUFFIX[chunking]}"
        if self.options.index:
            # A named index is that of the ranking in force, whichever it is.
            name = f"{self.index.stem}-{chunking}"
        return self.index.with_name(f"{name}{self.index.suffix}")

    @property
    def own_named(self) -> Path | None:
        """Return the file of memory-tui's own configuration that was named for this run, None where none was."""
        return self.config.path if self.options.config and self.config.kind == "own" else None

    def require_enabled(self) -> None:
        """Raise ConfigError when the configuration says that the agent has no memory search."""
        # A sentence that says so, empty where it has one.
        if self.config.disabled:
            # Of several places that set it the last counts.
            place = self.config.entries["enabled"].places[-1]
            step = "Set it to true, or search with another one: --config FILE."
            raise ConfigError(self.config.disabled, step, line=place.line, column=place.column)

    @property
    def openclaw_index(self) -> Path:
        """Return where OpenClaw keeps its index: in the agent's database from 2026.8 on, in a file before."""
        database, file = places.agent_database(self.agent.id), self.config.store_path
        newest = self.settings.word("profile") == NEWEST_OPENCLAW and not file.is_file()
        return database if self.config.kind == "openclaw" and (newest or database.is_file()) else file


def choose(options: Options) -> Plan:
    """Decide everything; nothing need be where the workspace should be. Raises ConfigError or SettingError."""
    folder = Path(options.workspace).expanduser() if options.workspace else None
    if folder is None and not options.agent:
        folder = here()
    # A configuration that is named without a workspace is not looked for in a folder.
    by_file = bool(options.config) and not options.workspace
    config = configuration.load(options.config, None if by_file else folder, options.agent)
    if by_file and config.agent.named:
        # The agent whose configuration it is has a workspace of its own.
        folder = None
    chosen = {}
    backend_values: dict[str, object] = {}
    for name, text in options.changes:
        if (key := knobs.of_backend(name)) is not None:
            backend_values[key.path] = configuration.typed(key, text)
            continue
        knob = _knob(name)
        chosen[knob.key] = Value(knobs.parse(knob, text), "the command line")
    if options.backend:
        key = knobs.BY_PATH[knobs.BACKEND]
        backend_values[key.path] = configuration.typed(key, options.backend)
    # What our own configuration sets: `config` where that is ours, else our file beside OpenClaw's.
    rules = {key: value for key, value in configuration.own(config).values.items() if key != "profile"}
    provider = options.provider or config.provider
    automatic = provider in ("", "auto")
    if options.provider and not automatic and provider not in registry.NAMES:
        raise SettingError(f"There is no provider {provider!r}.", f"Choose one of auto, {', '.join(registry.NAMES)}.")
    origin = config.path.name if config.path and not automatic else "auto"
    if options.provider:
        origin = NAMED
    elif provider not in (*knobs.PROVIDERS, ""):
        # OpenClaw has providers that memory-tui has not: their fallback is used, or words alone.
        origin = f"{origin} names {provider}, which memory-tui does not ask"
        fallback = config.text("fallback")
        provider = fallback if fallback in registry.NAMES else "none"
    workspace = folder or config.agent.workspace
    named = chosen.get("profile") or config.values.get("profile")
    settings = _compose(str(named.value) if named else "auto", config, rules, chosen)
    provider = DEFAULT_PROVIDER if automatic else provider
    index = _index_path(workspace, config.agent, provider, options.extra, settings.profile.chunking)
    return Plan(
        options=options,
        config=config,
        workspace=workspace,
        own_values=rules,
        chosen=chosen,
        settings=settings,
        provider=provider,
        provider_origin=origin,
        index=_home(options.index) if options.index else index,
        backend_values=backend_values,
        roots=_roots(options, config, workspace, provider, settings),
    )


def _knob(name: str) -> Knob:
    """Return the knob called `name`.

    Raises SettingError; for a setting that is documented and no knob the error tells how it is set.
    """
    try:
        return knobs.find_knob(name)
    except SettingError:
        if (key := knobs.find_key(name)) is None:
            raise
    step = "Write it into the file that memory-tui config names, or give another: --config. A provider: provider --add."
    raise SettingError(f"--set does not change {key.path}: it is read from a configuration.", step)


def plan(options: Options) -> Plan:
    """Decide everything for a workspace that is there. Raises WorkspaceError, ConfigError or SettingError."""
    chosen = choose(options)
    if not options.workspace and chosen.workspace == chosen.agent.workspace and not chosen.workspace.is_dir():
        lacking = "neither MEMORY.md nor memory/ in this folder"
        message = f"There is no workspace here: {lacking}, and no {chosen.workspace}."
        if options.agent:
            message = f"The workspace of agent {chosen.agent.id} is not there: {chosen.workspace}."
        step = "Name one (memory-tui PATH, or COMMAND --workspace PATH), or look at a sample first: memory-tui demo."
        raise WorkspaceError(message, step)
    check_folder(str(chosen.roots.workspace))
    return chosen


def renewed(plan: Plan) -> Plan:
    """Return `plan` with the configuration as it is on disk now; the settings in force stay. Raises ConfigError."""
    now = choose(plan.options)
    return replace(plan, config=now.config, own_values=now.own_values)


def _roots(options: Options, config: Config, workspace: Path, provider: str, settings: Settings) -> Roots:
    """Return where notes are read.

    Transcripts are among them where the configuration asks for them twice, in `sources` and in
    `experimental.sessionMemory`, as documented.
    """
    named = config.value("sources")
    sources = [str(name) for name in named] if isinstance(named, tuple) else []
    if config.value("experimental.sessionMemory") is not True:
        sources = [name for name in sources if name != "sessions"]
    exclude = settings.word("exclude")
    extra = (*config.extra_paths, *options.extra)
    # All notes below a folder are memory: facts beside their index, or where a person said so.
    whole = config.kind != "openclaw" and (shape_of(workspace) == "facts" or _whole(workspace).read().get("agreed"))
    if whole:
        exclude = ",".join((exclude, *HIDDEN))
        extra = (*extra, ".")
    # From 2026.8 on OpenClaw has its sessions in a database, of which memory-tui keeps copies as files.
    copied = "sessions" in sources and places.agent_database(config.agent.id).is_file()
    return Roots.open(
        workspace,
        extra,
        sources=sources or ["memory"],
        sessions=(places.session_copies if copied else places.session_folder)(config.agent.id),
        archives=settings.on("sessions.archives"),
        chunking=settings.profile.chunking,
        media=media_rules(config, provider),
        exclude=exclude,
    )


_WHOLE = Table("whole_folders")
"""Whether every note of a folder is its memory, as a person answered."""


def _whole(workspace: Path) -> ScopedRecords:
    """Return what a person answered for this folder, whatever name it is called by."""
    return _WHOLE.of(os.path.realpath(workspace))


def unasked(plan: Plan) -> int:
    """Return how many notes a vault holds of which nobody was asked yet whether they are memory; 0 for no vault."""
    # An answer of either kind leaves a record behind.
    decided = plan.config.kind == "openclaw" or plan.roots.extra or shape_of(plan.workspace) != "vault"
    return 0 if decided or _whole(plan.workspace).read() else sum(1 for _ in notes_below(plan.workspace))


def answer_whole(plan: Plan, *, agreed: bool) -> None:
    """Remember whether every note of a folder is memory. Raises StateUnavailable."""
    _whole(plan.workspace).put("agreed", agreed)


def _compose(name: str, config: Config, rules: dict[str, Value], chosen: dict[str, Value]) -> Settings:
    """Return the settings under profile `name`: of `config`, over them our own `rules` where they hold, and `chosen`.

    The overlap of chunks is below their size, as OpenClaw has it, so that each chunk has something new.
    """
    meaning = openclaw_release.release_meant(name, config)
    profile = meaning.profile
    # What a person wrote for this program holds under any profile, or beside OpenClaw's file under our own rules.
    mine = rules if config.kind == "own" or profile == OWN_PROFILE else {}
    settings = knobs.compose(profile, config.values, {**mine, **chosen})
    if meaning.reason:
        concluded = Value(profile, f"auto: {meaning.reason}; from {config.path}")
        settings = Settings({**settings.values, "profile": concluded})
    tokens = settings.whole("chunking.tokens")
    if settings.whole("chunking.overlap") < tokens:
        return settings
    return settings.set("chunking.overlap", tokens - 1, f"one less than chunking.tokens, {tokens}")


def here() -> Path | None:
    """Return the current folder, when it looks like a workspace."""
    folder = Path.cwd()
    return folder if any((folder / sign).exists() for sign in ("MEMORY.md", "memory.md", "memory")) else None


def _home(index: str) -> Path:
    """Return `index` with a home folder for a tilde.

    Raises IndexRefused where nobody has that home, SettingError where it names a folder.
    """
    try:
        path = Path(index).expanduser()
    except RuntimeError:
        message = f"{index} cannot be the index: there is no such home folder."
        raise IndexRefused(message, "Name another file.") from None
    if not path.name:
        raise SettingError(f"--index {path} names a folder.", "Name a file in it, for instance index.sqlite.")
    return path


def _index_path(workspace: Path, agent: Agent, provider: str, extra: tuple[str, ...], chunking: str) -> Path:
    """Return one index a workspace, agent and provider, in the user's cache folder; two names of one folder share it.

    Each provider has its own, and so have `extra` notes and the rules of `chunking`, so that asking once in another way
    makes no index anew. Chunks of two releases in one index would share a full-text table, whose bm25 then counts
    every text twice and is that of neither.
    """

    # Two agents can share a folder and read it differently; the default one has the key of the folder alone.
    key = "" if agent.default else agent.id
    more = b"".join(b"\0\0" + os.fsencode(os.path.realpath(path)) for path in extra)
    name = places.private_name(workspace, key, more)
    folder = platformdirs.user_cache_path("memory-tui", appauthor=False) / name
    suffix = "" if provider == DEFAULT_PROVIDER else f"-{provider}"
    return folder / f"index{suffix}{_SUFFIX[chunking]}.sqlite"


_SUFFIX = {"headings": "", "2026.9": "-2026.9", "2026.3": "-2026.3"}
"""What the name of an index has that is cut by the rules of a release; those up to 2026.7 share one."""

NAMED = "--provider"


def settings(plan: Plan, approvals: Approvals) -> ProviderSettings:
    """Return the settings of the providers to make: as the configuration has them where it names the same provider."""
    config, options, text = plan.config, plan.options, plan.config.text
    usual = ProviderSettings(
        requested=plan.provider,
        scope=os.path.realpath(plan.workspace),
        # A variable comes as its value and the place that sets it; None where nothing does.
        env=lambda name: value[0] if (value := config.environment.lookup(name)) else None,
        may_send=lambda provider, host: approvals.find(provider, host) is not None,
        index_command=plan.index_command,
        once=options.once,
        batches=RequestLimits(
            concurrency=plan.settings.whole("remote.concurrency"),
            batch_seconds=config.whole("sync.embeddingBatchTimeoutSeconds") or None,
            probe="query" if options.once or options.answers else "document",
        ),
        threads=plan.settings.whole("local.threads"),
        # By the name of a provider, what the configuration says of it; worked out once for each.
        shared=cache(partial(config_file.shared, config)),
    )
    if config.provider not in ("", "auto", plan.provider):
        # What the configuration says of model, address and keys is for another provider.
        return usual

    folder = text("local.modelCacheDir")
    return replace(
        usual,
        model=config.model,
        fallback=text("fallback") if text("fallback") in registry.NAMES else "",
        base_url=text("remote.baseUrl"),
        api_keys=config.keys("remote.apiKey"),
        headers={name: header.value for name, header in config.headers() if header.value},
        output_dimensionality=config.whole("outputDimensionality") or None,
        input_type=text("inputType"),
        query_input_type=text("queryInputType"),
        document_input_type=text("documentInputType"),
        jobs=BatchOptions(
            enabled=config.value("remote.batch.enabled") is True,
            wait=config.value("remote.batch.wait") is True,
            poll_seconds=config.whole("remote.batch.pollIntervalMs") / 1000,
            timeout_seconds=config.whole("remote.batch.timeoutMinutes") * 60,
        ),
        model_path=text("local.modelPath"),
        model_cache=Path(folder).expanduser() if folder else None,
    )
