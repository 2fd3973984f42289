"""The keys that a configuration file may hold, one row each: type, meaning, effect; `settings.py` has those of knobs.

The keys are those of 2026.3.13 and of 2026.9.6; those that memory-tui can change while it runs are its knobs, and
only named here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.config.settings import OPENCLAW_KNOBS, OWN_KNOBS, OWN_PROFILE, PROFILES, Knob
from memory_tui.providers import registry
from memory_tui.providers.base import MOST_DIMS

Kind = Literal[
    "knob", "switch", "whole", "choice", "choices", "text", "path", "paths", "secret", "headers", "size", "zone", "any"
]


class Key(Struct, frozen=True):
    """One documented key.

    `path` is below the section of memory search, or from the top of the file. `effect` says why it changes nothing
    here, and is empty where it takes effect. `low` and `high` bound a number.
    """

    path: str
    kind: Kind
    default: object
    meaning: str
    effect: str = ""
    low: float = 0
    high: float = float("inf")
    choices: tuple[str, ...] = ()


def _knobs(knobs: tuple[Knob, ...]) -> tuple[Key, ...]:
    """Return the rows of the keys that are knobs: their type and range stand in the table of knobs."""
    return tuple(Key(knob.key, "knob", knob.default, knob.help) for knob in knobs)


def _below(prefix: str, *rows: Key) -> tuple[Key, ...]:
    """Return `rows` with `prefix` before the path of each."""
    return tuple(replace(row, path=prefix + row.path) for row in rows)


PROVIDERS = ("auto", *registry.NAMES)
NOT_ASKED = ("bedrock", "github-copilot")
"""Providers of OpenClaw from 2026.8 on whose wire and login are their own, whatever `models.providers` says of them."""
COMPATIBLE_APIS = ("openai-completions", "openai-responses")
"""What `models.providers.<id>.api` says of a server that embeds as OpenAI does."""

_NO_LOCAL = "none here: a local model runs with a context of 512 tokens"
_NO_SESSIONS = "none here: changed transcripts are noticed at any time"
_NO_AGENT = "none here: memory-tui runs no agent"
_NO_BRIDGE = "none here: memory-tui runs qmd itself"
_NO_UPKEEP = "none here: no clock updates QMD"
_NO_EXPORT = "none here: sources names sessions"
_NO_REMOTE = "none here: the table is a folder"
_NO_HOOK = "none here: the plug-in does it"
_NO_RECALL = "none here: sources with sessions and experimental.sessionMemory search them"
_NO_PROFILES = "none here: logins with their keys are read from auth-profiles.json, in the order of auth.order"
_BATCH_SERVICES = " or ".join(filter(None, (", ".join(registry.BATCHING[:-1]), registry.BATCHING[-1])))

_BATCHES = f"leave 256 texts or more to the slow and cheap batch service of {_BATCH_SERVICES}"
_NO_BUILD = "none here: memory-tui has its own sqlite-vec, with the same answers"
_CACHE = "the most vectors kept of text that is gone; the least recently used go first"
_COMPACTED = "index a session after it was compacted"
_SOURCES, _MEDIA = ("memory", "sessions"), ("image", "audio", "all")
SEARCH: tuple[Key, ...] = (
    Key("enabled", "switch", True, "whether the agent has memory search at all"),
    Key("sources", "choices", ("memory",), "what is searched: notes, and transcripts of sessions", choices=_SOURCES),
    Key("extraPaths", "paths", (), "more notes and folders of notes; an agent's own are added to the general ones"),
    Key("rememberAcrossConversations", "switch", None, "recall earlier conversations too (2026.8)", _NO_RECALL),
    Key("multimodal.enabled", "switch", False, "embed images and sounds below extraPaths, by Gemini"),
    Key("multimodal.modalities", "choices", ("all",), "which of them", choices=_MEDIA),
    Key("multimodal.maxFileBytes", "whole", 10_485_760, "larger files are left out", low=1),
    Key("experimental.sessionMemory", "switch", False, "allow transcripts as a source"),
    Key("provider", "text", "auto", "who turns text into vectors"),
    Key("remote.baseUrl", "text", None, "address of the provider"),
    Key("remote.apiKey", "secret", None, "key of the provider"),
    Key("remote.headers", "headers", None, "headers that are sent along"),
    *_below(
        "remote.batch.",
        Key("enabled", "switch", False, _BATCHES),
        Key("wait", "switch", True, "whether memory-tui index stays until the batch is done"),
        Key("concurrency", "whole", 2, "batches at once", "none here: one job runs at a time", low=1),
        Key("pollIntervalMs", "whole", 2000, "first pause between two looks at a batch; pauses grow", low=1),
        Key("timeoutMinutes", "whole", 60, "when a batch is given up, and its texts are sent directly", low=1),
    ),
    Key("fallback", "text", "none", "who is asked when the provider fails, with a model of its own"),
    Key("model", "text", None, "the provider's model; without it, its usual one"),
    Key("outputDimensionality", "whole", None, "length of the vectors of a model with several", "", 1, MOST_DIMS),
    Key("inputType", "text", None, "what an embedded text is called (2026.8)"),
    Key("queryInputType", "text", None, "the same, of a query (2026.8)"),
    Key("documentInputType", "text", None, "the same, of a note (2026.8)"),
    *_below(
        "local.",
        Key("modelPath", "text", registry.row("local").model, "GGUF file of the provider local"),
        Key("modelCacheDir", "path", None, "where downloaded models are kept"),
        Key("contextSize", "whole", 4096, "context of the local model (2026.4)", _NO_LOCAL, 1),
    ),
    Key("store.driver", "choice", "sqlite", "kind of database", "none here: there is only one", choices=("sqlite",)),
    Key("store.path", "path", None, "OpenClaw's own index, which compare-index reads and nothing here writes"),
    Key("store.vector.enabled", "switch", True, "whether sqlite-vec is used", _NO_BUILD),
    Key("store.vector.extensionPath", "path", None, "another build of sqlite-vec", _NO_BUILD),
    Key(
        "sync.sessions.postCompactionForce", "switch", True, "index a session again when it was compacted", _NO_SESSIONS
    ),
    Key("sync.embeddingBatchTimeoutSeconds", "whole", None, "when a batch of texts is given up", low=1),
    Key("cache.maxEntries", "whole", 50_000, _CACHE, low=1),
    *_knobs(OPENCLAW_KNOBS),
)
"""Keys below the section of memory search: what memory-tui can change while it runs is a knob."""

LANCEDB = "plugins.entries.memory-lancedb.config."
"""How the keys of OpenClaw's LanceDB plug-in begin."""
BACKEND, QMD = "memory.backend", "memory.qmd."
"""Who searches, and how the keys of QMD begin."""
_QMD = (
    Key("command", "text", "qmd", "QMD: the program: a name, a path, or node and the path of its qmd.js"),
    Key("includeDefaultMemory", "switch", True, "QMD: search MEMORY.md, memory.md and memory/"),
    Key("paths", "any", (), "QMD: more folders to search, each with path, name and pattern"),
    Key("sessions.enabled", "switch", False, "QMD: export transcripts as notes, and search them", _NO_EXPORT),
    Key("sessions.exportDir", "path", None, "QMD: folder of the exported transcripts", _NO_EXPORT),
    Key("sessions.retentionDays", "whole", None, "QMD: days a transcript stays exported", _NO_EXPORT, low=1),
    Key("update.interval", "text", "5m", "QMD: 0: bring its index up to date by hand alone"),
    Key("update.debounceMs", "whole", 15_000, "QMD: the least time between two updates that nobody asked for"),
    Key("update.onBoot", "switch", True, "QMD: bring it up to date at the start too", _NO_UPKEEP),
    Key("update.waitForBootSync", "switch", False, "QMD: let searches wait for that", _NO_UPKEEP),
    Key("update.startup", "text", None, "QMD: off: no update at the start (2026.5)", _NO_UPKEEP),
    Key("update.startupDelayMs", "whole", None, "QMD: wait before the update at the start (2026.5)", _NO_UPKEEP),
    Key("update.embedInterval", "text", "60m", "QMD: how often new texts are embedded", _NO_UPKEEP),
    Key("update.commandTimeoutMs", "whole", 30_000, "QMD: when any other command is given up", low=1),
    Key("update.updateTimeoutMs", "whole", 120_000, "QMD: when an update is given up", low=1),
    Key("update.embedTimeoutMs", "whole", 120_000, "QMD: when embedding is given up", low=1),
    Key("limits.maxResults", "whole", 6, "QMD: most hits", low=1),
    Key("limits.maxSnippetChars", "whole", 700, "QMD: most characters of a hit", low=1),
    Key("limits.maxInjectedChars", "whole", 4000, "QMD: most characters altogether", low=1),
    Key("limits.timeoutMs", "whole", 4000, "QMD: when a search is given up", low=1),
    Key("scope", "any", None, "QMD: in which chats it may be asked"),
    Key("searchMode", "choice", "search", "QMD: search, vsearch or query", choices=("search", "vsearch", "query")),
    Key("mcporter.enabled", "switch", False, "QMD: ask through the mcporter bridge", _NO_BRIDGE),
    Key("mcporter.serverName", "text", "qmd", "QMD: its name there", _NO_BRIDGE),
    Key("mcporter.startDaemon", "switch", True, "QMD: start the bridge", _NO_BRIDGE),
    Key("searchTool", "text", None, "QMD: tool of the bridge", _NO_BRIDGE),
)
_COMPACTION = (
    Key("reserveTokensFloor", "whole", 20_000, "room kept free in the context"),
    Key("postIndexSync", "choice", "async", _COMPACTED, _NO_SESSIONS, choices=("off", "async", "await")),
    *_below(
        "memoryFlush.",
        Key("enabled", "switch", True, "let the agent write down what it knows before it is compacted"),
        Key("softThresholdTokens", "whole", 4000, "how long before"),
        Key("forceFlushTranscriptBytes", "size", 2_097_152, "and at the latest at this size; 0 is never"),
        Key("prompt", "text", None, "what it is asked", _NO_AGENT),
        Key("systemPrompt", "text", None, "and told", _NO_AGENT),
        Key("model", "text", None, "by which model (2026.8)", _NO_AGENT),
    ),
)
_ACCOUNT = (
    Key("baseUrl", "text", None, "address of the provider for everything, where remote.baseUrl names none"),
    Key("apiKey", "secret", None, "its key for everything, after remote.apiKey, logins and the provider's variable"),
    Key("headers", "headers", None, "headers that are sent along by everything; remote.headers count before them"),
)
_LANCEDB = (
    Key("dbPath", "text", None, "folder of the table; ~/.openclaw/memory/lancedb"),
    Key("storageOptions", "headers", None, "how an object store is reached: endpoint, region, keys", _NO_REMOTE),
    Key("embedding.provider", "text", None, "who makes its vectors; openai where a model or a key is named"),
    Key("embedding.model", "text", None, "the model"),
    Key("embedding.apiKey", "secret", None, "key of the provider"),
    Key("embedding.baseUrl", "text", None, "address of the provider"),
    Key("embedding.dimensions", "whole", None, "length of the vectors, where a model has several", low=1),
    Key("autoRecall", "switch", True, "entries before each answer", _NO_HOOK),
    Key("autoCapture", "switch", False, "entries from what the user says", _NO_HOOK),
    Key("captureMaxChars", "whole", 500, "longer texts are not captured", _NO_HOOK, low=100),
    Key("recallMaxChars", "whole", 1000, "characters of a prompt that entries are searched by", _NO_HOOK, low=100),
    Key("customTriggers", "any", (), "words that make a text worth capturing, beside the usual ones", _NO_HOOK),
)

DEFAULTS = "agents.defaults."
INJECTION = f"{DEFAULTS}contextInjection"
MEMORY_GET = f"{DEFAULTS}contextLimits.memoryGetMaxChars"
_INJECTED = "most characters of MEMORY.md that the agent is given at the start: memory-tui prompt --budget"
_SANDBOXES = "which sessions run in a sandbox: memory-tui openclaw flush"
_INJECTED_ALL = "the same, of all files of the prompt together; 150000, from 2026.8 on 60000"
_INJECTS = "whether files are put into the prompt; never: memory-tui prompt has none"
_GETS = "the most characters that memory_get and memory-tui get give"
_RW_ONLY = "what those may do with the workspace; only rw lets them flush: memory-tui openclaw flush"
_OF_AGENT = _below(
    DEFAULTS,
    Key("sandbox.mode", "choice", "off", _SANDBOXES, choices=("off", "non-main", "all")),
    Key("sandbox.workspaceAccess", "choice", "none", _RW_ONLY, choices=("none", "ro", "rw")),
    Key("bootstrapMaxChars", "whole", 20_000, _INJECTED, low=1),
    Key("bootstrapTotalMaxChars", "whole", None, _INJECTED_ALL, low=1),
    Key("contextInjection", "choice", "always", _INJECTS, choices=("always", "continuation-skip", "never")),
    Key("contextLimits.memoryGetMaxChars", "whole", 12_000, _GETS, "", 1, 250_000),
    Key("contextLimits.postCompactionMaxChars", "whole", 1800, "the same of AGENTS.md after a compaction", _NO_AGENT),
)
OF_AGENT = tuple(key.path.removeprefix(DEFAULTS) for key in _OF_AGENT)
"""Keys below agents.defaults that an agent can have of its own."""

_ZONE = "the user's time zone, by which a day begins; without it, this machine's"
_BACKEND = "who searches for the agent: the built-in index, or the program QMD; --backend"
_CITATIONS = "whether an agent is told where it has something from: memory-tui mcp"
_ORDER = "which login of a provider is tried first; only those with an API key embed"
_WRITER = "the release of OpenClaw that wrote this file last; without a program on the search path, auto goes by it"
_SLOT = (
    "which plug-in is the agent's memory; memory-tui: the profile of its entry holds here too; memory-lancedb: "
    "memory-tui ltm"
)
_RANKED = "how the agent's recalls are ranked where memory-tui is its memory"

FILE: tuple[Key, ...] = (
    Key(f"{DEFAULTS}workspace", "path", None, "folder of the default agent"),
    *_OF_AGENT,
    Key(f"{DEFAULTS}userTimezone", "zone", None, _ZONE),
    Key(BACKEND, "choice", "builtin", _BACKEND, choices=("builtin", "qmd")),
    Key("memory.citations", "choice", "auto", _CITATIONS, choices=("auto", "on", "off")),
    *_below(QMD, *_QMD),
    *_below(f"{DEFAULTS}compaction.", *_COMPACTION),
    *_below(
        "hooks.internal.entries.session-memory.",
        Key("enabled", "switch", None, "save the end of a session as a note", _NO_AGENT),
        Key("messages", "whole", 15, "how many messages a session note holds", low=1),
        Key("llmSlug", "switch", None, "let a model name the note", _NO_AGENT),
    ),
    *(key for account in registry.ACCOUNTS.values() for key in _below(f"models.providers.{account}.", *_ACCOUNT)),
    Key("auth.profiles", "any", None, "names, kinds and e-mail addresses of logins", _NO_PROFILES),
    Key("auth.order", "any", None, _ORDER),
    Key("meta.lastTouchedVersion", "text", "", _WRITER),
    Key("plugins.slots.memory", "text", "memory-core", _SLOT),
    *_below(LANCEDB, *_LANCEDB),
    *_below(
        "plugins.entries.",
        Key("memory-tui.config.profile", "choice", OWN_PROFILE, _RANKED, choices=tuple(PROFILES)),
        Key("memory-core.config.dreaming", "any", None, "promotion of memories at night (2026.8)", _NO_AGENT),
        Key("active-memory", "any", None, "recall before each answer (2026.8)", _NO_AGENT),
    ),
)

_SCOPE = "workspaces that are kept here too, apart by commas: this, OWNER/NAME, group:ROLE, all"
_SHARED = (
    Key("url", "text", None, "PostgreSQL that a team shares its index in: postgresql://LOGIN@HOST/DATABASE"),
    Key("password", "secret", None, "its password, where neither PGPASSWORD nor PGPASSFILE has one"),
    Key("tenant", "text", "default", "whose index it is, where several teams use one database"),
    Key("name", "text", None, "what this workspace is called there: OWNER/NAME"),
    Key("publish", "switch", False, "publish the index after each sync"),
    Key("mirror.scope", "text", "", _SCOPE),
    Key("mirror.maxChunks", "whole", 300_000, "chunks that a mirror holds at most", low=1),
    Key("askTimeoutMs", "whole", 2000, "how long a search waits for the database", low=1),
    Key("silentAfterSeconds", "whole", 600, "after how long another machine may publish a workspace", low=1),
)
OWN_KEYS: tuple[Key, ...] = (
    *_knobs(OWN_KNOBS),
    Key("workspace", "path", None, "folder of the notes"),
    *_below("shared.", *_SHARED),
)
"""Keys that only memory-tui's own configuration has."""

BY_PATH: Mapping[str, Key] = MappingProxyType({key.path: key for key in (*SEARCH, *FILE, *OWN_KEYS)})


def find(name: str) -> Key | None:
    """Return the documented key called `name`: whole, or by a tail that no other key has; None for no such key."""
    fitting = [key for key in BY_PATH.values() if key.path.endswith(f".{name}")]
    only_fitting = fitting[0] if len(fitting) == 1 else None
    return BY_PATH.get(name, only_fitting)


def of_backend(name: str) -> Key | None:
    """Return the key called `name` where it chooses or configures the backend, else None: `--set` takes those too."""
    key = find(name)
    return key if key and key.path.startswith((BACKEND, QMD)) else None


_BATCH = "a batch is waited for, 2 at once, looked at every 2000 ms, given up after 60 minutes"

RETIRED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("chunking", "chunkSize", "chunkOverlap"), "chunks are 400 tokens with 80 repeated"),
        "query.hybrid": "weights are 0.7 and 0.3, MMR is on with lambda 0.7, age halves a score in 30 days",
        "sync": "files are watched after 1500 ms of quiet, and looked for at session start and on search",
        "cache.maxEntries": "the cache keeps 50,000 vectors",
        **{f"remote.batch.{name}": _BATCH for name in ("wait", "concurrency", "pollIntervalMs", "timeoutMinutes")},
        "remote.nonBatchConcurrency": "4 files are embedded at once",
        **dict.fromkeys(("local.contextSize", "local.modelCacheDir"), "nothing replaces it"),
        **dict.fromkeys(("store.path", "store.driver"), "the index is in the agent's database"),
        "qmd": "QMD is no backend any more",
    }
)
"""What 2026.9 always does in the place of each key that it took away, below the section of memory search."""


def retired(key: str) -> str:
    """Return what 2026.9 always does in the place of `key`, named below its section; empty where it has the key."""
    # A key below one that was taken away is gone with it; the dots keep "sync" from fitting "syncing".
    return next((rule for name, rule in RETIRED.items() if f"{key}.".startswith(f"{name}.")), "")
