"""Every documented key of OpenClaw's memory is one row. It has type, default, meaning and effect here; those of knobs
come from their rows.

The keys are those of 2026.3.13 and of 2026.9.6; those that memory-tui can change while it runs are its knobs, and
only named here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from memory_tui import profiles
from memory_tui.providers import registry
from memory_tui.providers.base import MOST_DIMS
from memory_tui.settings import KNOBS, Knob

Kind = Literal[
    "knob",
    "switch",
    "whole",
    "number",
    "choice",
    "choices",
    "text",
    "path",
    "paths",
    "secret",
    "headers",
    "size",
    "zone",
    "any",
]
Section = Literal["search", "file"]


class Key(Struct, frozen=True):
    """One documented key.

    `path` is below the section of memory search, or with `section` "file" from the top of the file. `effect` says why
    it changes nothing here, and is empty where it takes effect. `low` and `high` bound a number.
    """

    path: str
    kind: Kind
    default: object
    meaning: str
    effect: str = ""
    low: float = 0
    high: float = float("inf")
    choices: tuple[str, ...] = ()
    section: Section = "search"


def _knob(knob: Knob) -> Key:
    return Key(knob.key, "knob", knob.default, knob.help)


PROVIDERS = ("auto", *registry.NAMES)
NOT_ASKED = ("bedrock", "github-copilot")
"""Providers of OpenClaw from 2026.8 on whose wire and login are their own, whatever `models.providers` says of them."""
COMPATIBLE_APIS = ("openai-completions", "openai-responses")
"""What `models.providers.<id>.api` says of a server that embeds as OpenAI does."""


def _alternatives(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


_NO_LOCAL = "none here yet: a local model runs with a context of 512 tokens"
_NO_SESSIONS = "none here: memory-tui notices changed transcripts by itself, after a compaction as at any other time"
_NO_AGENT = "none here: it is about what the running agent does; memory-tui runs none"
_NO_BRIDGE = "none here: memory-tui runs the program qmd itself and needs no bridge to it"

SEARCH: tuple[Key, ...] = (
    Key("enabled", "switch", True, "whether the agent has memory search at all"),
    Key(
        "sources",
        "choices",
        ("memory",),
        "what is searched: notes, and transcripts of sessions",
        choices=("memory", "sessions"),
    ),
    Key("extraPaths", "paths", (), "more notes and folders of notes; an agent's own are added to the general ones"),
    Key(
        "rememberAcrossConversations",
        "switch",
        None,
        "recall earlier conversations too (2026.8)",
        "none here: conversations are searched where sources names sessions and experimental.sessionMemory allows them",
    ),
    Key("multimodal.enabled", "switch", False, "embed images and sounds below extraPaths, by Gemini"),
    Key("multimodal.modalities", "choices", ("all",), "which of them", choices=("image", "audio", "all")),
    Key("multimodal.maxFileBytes", "whole", 10_485_760, "larger files are left out", low=1),
    Key("experimental.sessionMemory", "switch", False, "allow transcripts as a source"),
    Key("provider", "text", "auto", "who turns text into vectors"),
    Key("remote.baseUrl", "text", None, "address of the provider"),
    Key("remote.apiKey", "secret", None, "key of the provider"),
    Key("remote.headers", "headers", None, "headers that are sent along"),
    Key(
        "remote.batch.enabled",
        "switch",
        False,
        f"leave 256 texts or more to the slow and cheap batch service of {_alternatives(registry.BATCHING)}",
    ),
    Key("remote.batch.wait", "switch", True, "whether memory-tui index stays until the batch is done"),
    Key("remote.batch.concurrency", "whole", 2, "batches at once", low=1),
    Key("remote.batch.pollIntervalMs", "whole", 2000, "first pause between two looks at a batch; pauses grow", low=1),
    Key("remote.batch.timeoutMinutes", "whole", 60, "when a batch is given up, and its texts are sent directly", low=1),
    Key("fallback", "text", "none", "who is asked when the provider fails, with a model of its own"),
    Key("model", "text", None, "the provider's model; without it, its usual one"),
    Key("outputDimensionality", "whole", None, "length of the vectors of a model with several", low=1, high=MOST_DIMS),
    Key("inputType", "text", None, "what an embedded text is called (2026.8)"),
    Key("queryInputType", "text", None, "the same, of a query (2026.8)"),
    Key("documentInputType", "text", None, "the same, of a note (2026.8)"),
    Key(
        "local.modelPath",
        "text",
        registry.row("local").model,
        "GGUF file of the provider local, or model of the provider onnx",
    ),
    Key("local.modelCacheDir", "path", None, "where downloaded models are kept"),
    Key("local.contextSize", "whole", 4096, "context of the local model (2026.4)", _NO_LOCAL, low=1),
    Key("store.driver", "choice", "sqlite", "kind of database", "none here: there is only one", choices=("sqlite",)),
    Key("store.path", "path", None, "OpenClaw's own index, which compare-index reads and nothing here writes"),
    Key(
        "store.vector.extensionPath",
        "path",
        None,
        "another build of sqlite-vec, once you agreed to run it: memory-tui index --approve-extension",
    ),
    Key(
        "sync.sessions.postCompactionForce", "switch", True, "index a session again when it was compacted", _NO_SESSIONS
    ),
    Key("sync.embeddingBatchTimeoutSeconds", "whole", None, "when a batch of texts is given up", low=1),
    Key(
        "cache.maxEntries",
        "whole",
        50_000,
        "the most vectors kept of text that is gone; the least recently used go first",
        low=1,
    ),
    *(_knob(knob) for knob in KNOBS if not knob.own),
)
"""Keys below the section of memory search: what memory-tui can change while it runs is a knob."""


def _file(
    path: str,
    kind: Kind,
    default: object,
    meaning: str,
    effect: str = _NO_AGENT,
    low: float = 0,
    choices: tuple[str, ...] = (),
    high: float = float("inf"),
) -> Key:
    return Key(path, kind, default, meaning, effect, low, high, choices, section="file")


_FLUSH = "agents.defaults.compaction.memoryFlush."
_HOOK = "hooks.internal.entries.session-memory."

LANCEDB = "plugins.entries.memory-lancedb.config."
"""How the keys of OpenClaw's LanceDB plug-in begin."""
_LANCEDB: tuple[tuple[str, Kind, object, str, float], ...] = (
    ("dbPath", "text", None, "folder or address of the table; ~/.openclaw/memory/lancedb", 0),
    ("storageOptions", "headers", None, "how an object store is reached: endpoint, region, keys", 0),
    ("embedding.provider", "text", None, "who makes its vectors; openai where a model or a key is named", 0),
    ("embedding.model", "text", None, "the model", 0),
    ("embedding.apiKey", "secret", None, "key of the provider", 0),
    ("embedding.baseUrl", "text", None, "address of the provider", 0),
    ("embedding.dimensions", "whole", None, "length of the vectors, where a model has several", 1),
    ("autoRecall", "switch", True, "entries before each answer: memory-tui hook recall", 0),
    ("autoCapture", "switch", False, "entries from what the user says: memory-tui hook capture", 0),
    ("captureMaxChars", "whole", 500, "longer texts are not captured", 100),
    ("recallMaxChars", "whole", 1000, "characters of a prompt that entries are searched by", 100),
    ("customTriggers", "any", (), "words that make a text worth capturing, beside the usual ones", 0),
)

BACKEND = "memory.backend"
QMD = "memory.qmd."
"""How the keys of QMD begin."""

_QMD: tuple[tuple[str, Kind, object, str, float], ...] = (
    ("command", "text", "qmd", "the program: a name, a path, or node and the path of its qmd.js", 0),
    ("includeDefaultMemory", "switch", True, "search MEMORY.md, memory.md and memory/", 0),
    ("paths", "any", (), "more folders to search, each with path, name and pattern", 0),
    ("sessions.enabled", "switch", False, "export transcripts as notes, and search them", 0),
    ("sessions.exportDir", "path", None, "folder of the exported transcripts", 0),
    ("sessions.retentionDays", "whole", None, "days after which a transcript is exported no more", 1),
    ("update.interval", "text", "5m", "how often QMD's index is brought up to date; 0 is never", 0),
    ("update.debounceMs", "whole", 15_000, "the least time between two updates that nobody asked for", 0),
    ("update.onBoot", "switch", True, "bring it up to date at the start too", 0),
    ("update.waitForBootSync", "switch", False, "let searches wait for that", 0),
    ("update.startup", "text", None, "off: no update at the start (2026.5)", 0),
    ("update.startupDelayMs", "whole", None, "wait before the update at the start (2026.5)", 0),
    ("update.embedInterval", "text", "60m", "how often new texts are embedded, where the mode needs vectors", 0),
    ("update.commandTimeoutMs", "whole", 30_000, "when any other command is given up", 1),
    ("update.updateTimeoutMs", "whole", 120_000, "when an update is given up", 1),
    ("update.embedTimeoutMs", "whole", 120_000, "when embedding is given up", 1),
    ("limits.maxResults", "whole", 6, "most hits", 1),
    ("limits.maxSnippetChars", "whole", 700, "most characters of a hit", 1),
    ("limits.maxInjectedChars", "whole", 4000, "most characters altogether", 1),
    ("limits.timeoutMs", "whole", 4000, "when a search is given up", 1),
    ("scope", "any", None, "in which chats it may be asked: default deny, direct chats allowed", 0),
)

_MCPORTER: tuple[tuple[str, Kind, object, str], ...] = (
    ("mcporter.enabled", "switch", False, "ask through the mcporter bridge"),
    ("mcporter.serverName", "text", "qmd", "its name there"),
    ("mcporter.startDaemon", "switch", True, "start the bridge"),
    ("searchTool", "text", None, "tool of the bridge"),
)

_SHARED: tuple[tuple[str, Kind, str], ...] = (
    ("baseUrl", "text", "address of the provider for everything, where remote.baseUrl names none"),
    ("apiKey", "secret", "its key for everything, after remote.apiKey, logins and the provider's variable"),
    ("headers", "headers", "headers that are sent along by everything; remote.headers count before them"),
)

INJECTION = "agents.defaults.contextInjection"
MEMORY_GET = "agents.defaults.contextLimits.memoryGetMaxChars"
OF_AGENT = (
    "sandbox.mode",
    "sandbox.workspaceAccess",
    "bootstrapMaxChars",
    "bootstrapTotalMaxChars",
    "contextInjection",
    "contextLimits.memoryGetMaxChars",
    "contextLimits.postCompactionMaxChars",
)
"""Keys below agents.defaults that an agent can have of its own."""

FILE: tuple[Key, ...] = (
    _file("agents.defaults.workspace", "path", None, "folder of the default agent", ""),
    _file(
        "agents.defaults.bootstrapMaxChars",
        "whole",
        20_000,
        "most characters of MEMORY.md that the agent is given at the start: memory-tui prompt --budget",
        "",
        low=1,
    ),
    _file(
        "agents.defaults.bootstrapTotalMaxChars",
        "whole",
        None,
        "the same, of all files of the prompt together; 150000, from 2026.8 on 60000",
        "",
        low=1,
    ),
    _file(
        INJECTION,
        "choice",
        "always",
        "whether files are put into the prompt; never: memory-tui prompt has none",
        "",
        choices=("always", "continuation-skip", "never"),
    ),
    _file(
        MEMORY_GET,
        "whole",
        12_000,
        "the most characters that memory_get and memory-tui get give",
        "",
        low=1,
        high=250_000,
    ),
    _file(
        "agents.defaults.contextLimits.postCompactionMaxChars",
        "whole",
        1800,
        "the same of AGENTS.md after a compaction",
    ),
    _file(
        "agents.defaults.userTimezone",
        "zone",
        None,
        "the user's time zone, by which a day begins; without it, this machine's",
        "",
    ),
    _file(
        "memory.backend",
        "choice",
        "builtin",
        "who searches for the agent: the built-in index, or the program QMD; --backend",
        "",
        choices=("builtin", "qmd"),
    ),
    _file(
        "memory.citations",
        "choice",
        "auto",
        "whether an agent is told where it has something from: memory-tui mcp",
        "",
        choices=("auto", "on", "off"),
    ),
    *(_file(f"{QMD}{path}", kind, default, f"QMD: {meaning}", "", low) for path, kind, default, meaning, low in _QMD),
    _file(
        f"{QMD}searchMode",
        "choice",
        "search",
        "QMD: search, vsearch or query",
        "",
        choices=("search", "vsearch", "query"),
    ),
    *(
        _file(f"{QMD}{path}", kind, default, f"QMD: {meaning}", _NO_BRIDGE)
        for path, kind, default, meaning in _MCPORTER
    ),
    _file("agents.defaults.compaction.reserveTokensFloor", "whole", 20_000, "room kept free in the context", ""),
    _file(
        "agents.defaults.compaction.postIndexSync",
        "choice",
        "async",
        "index a session after it was compacted",
        _NO_SESSIONS,
        choices=("off", "async", "await"),
    ),
    _file(_FLUSH + "enabled", "switch", True, "let the agent write down what it knows before it is compacted", ""),
    _file(_FLUSH + "softThresholdTokens", "whole", 4000, "how long before", ""),
    _file(_FLUSH + "forceFlushTranscriptBytes", "size", 2_097_152, "and at the latest at this size; 0 is never", ""),
    _file(_FLUSH + "prompt", "text", None, "what it is asked", ""),
    _file(_FLUSH + "systemPrompt", "text", None, "and told", ""),
    _file(_FLUSH + "model", "text", None, "by which model (2026.8)"),
    _file(
        _HOOK + "enabled",
        "switch",
        None,
        "save the end of a session as a note; false: memory-tui hook session-memory writes none",
        "",
    ),
    _file(_HOOK + "messages", "whole", 15, "how many messages of it", "", low=1),
    _file(_HOOK + "llmSlug", "switch", None, "let a model name the note"),
    *(
        _file(f"models.providers.{account}.{key}", kind, None, meaning, "")
        for account in registry.ACCOUNTS.values()
        for key, kind, meaning in _SHARED
    ),
    _file(
        "auth.profiles",
        "any",
        None,
        "names, kinds and e-mail addresses of logins",
        "none here: logins with their keys are read from auth-profiles.json, in the order of auth.order",
    ),
    _file("auth.order", "any", None, "which login of a provider is tried first; only those with an API key embed", ""),
    _file(
        "agents.defaults.sandbox.mode",
        "choice",
        "off",
        "which sessions run in a sandbox: memory-tui openclaw flush",
        "",
        choices=("off", "non-main", "all"),
    ),
    _file(
        "agents.defaults.sandbox.workspaceAccess",
        "choice",
        "none",
        "what those may do with the workspace; only rw lets them flush: memory-tui openclaw flush",
        "",
        choices=("none", "ro", "rw"),
    ),
    _file(
        "meta.lastTouchedVersion",
        "text",
        "",
        "the release of OpenClaw that wrote this file last; without a program on the search path, auto goes by it",
        "",
    ),
    _file(
        "plugins.slots.memory",
        "text",
        "memory-core",
        "which plug-in is the agent's memory; memory-tui: the profile of its entry holds here too; memory-lancedb: "
        "memory-tui ltm",
        "",
    ),
    *(_file(f"{LANCEDB}{path}", kind, default, meaning, "", low) for path, kind, default, meaning, low in _LANCEDB),
    _file(
        "plugins.entries.memory-tui.config.profile",
        "choice",
        profiles.OWN,
        "how the agent's recalls are ranked where memory-tui is its memory",
        "",
        choices=tuple(profiles.PROFILES),
    ),
    _file("plugins.entries.memory-core.config.dreaming", "any", None, "promotion of memories at night (2026.8)"),
    _file("plugins.entries.active-memory", "any", None, "recall before each answer (2026.8)"),
)

OWN_KEYS: tuple[Key, ...] = (
    *(_knob(knob) for knob in KNOBS if knob.own),
    Key("workspace", "path", None, "folder of the notes"),
)
"""Keys that only memory-tui's own configuration has."""

BY_PATH: Mapping[str, Key] = MappingProxyType({key.path: key for key in (*SEARCH, *FILE, *OWN_KEYS)})


def of_backend(name: str) -> Key | None:
    """The key called `name` where it chooses or configures the backend: `--set` takes those too."""
    key = find(name)
    return key if key is not None and (key.path == BACKEND or key.path.startswith(QMD)) else None


def find(name: str) -> Key | None:
    """The documented key called `name`: whole, or by a tail that no other key has."""
    if name in BY_PATH:
        return BY_PATH[name]
    tails = [key for key in BY_PATH.values() if key.path.endswith(f".{name}")]
    return tails[0] if len(tails) == 1 else None


_CHUNKING = "chunks are 400 tokens with 80 repeated"
_SYNC = "files are watched after 1500 ms of quiet, and looked for at session start and on search"
_BATCH = "a batch is waited for, 2 at once, looked at every 2000 ms, given up after 60 minutes"
_STORE = "the index is in the agent's database"

RETIRED: Mapping[str, str] = MappingProxyType(
    {
        "chunking": _CHUNKING,
        "chunkSize": _CHUNKING,
        "chunkOverlap": _CHUNKING,
        "query.hybrid": "weights are 0.7 and 0.3, MMR is on with lambda 0.7, age halves a score in 30 days",
        "sync": _SYNC,
        "cache.maxEntries": "the cache keeps 50,000 vectors",
        "remote.batch.wait": _BATCH,
        "remote.batch.concurrency": _BATCH,
        "remote.batch.pollIntervalMs": _BATCH,
        "remote.batch.timeoutMinutes": _BATCH,
        "remote.nonBatchConcurrency": "4 files are embedded at once",
        "local.contextSize": "nothing replaces it",
        "local.modelCacheDir": "nothing replaces it",
        "store.path": _STORE,
        "store.driver": _STORE,
        "qmd": "QMD is no backend any more",
    }
)
"""What 2026.9 always does in the place of each key that it took away, below the section of memory search."""


def retired(key: str) -> str:
    """What 2026.9 always does in the place of `key`, named below its section; empty where it still has the key."""
    return next((why for name, why in RETIRED.items() if key == name or key.startswith(f"{name}.")), "")
