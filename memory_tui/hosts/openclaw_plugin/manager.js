/** What OpenClaw itself asks of the memory, beside the agent's tools: recall before an answer, status, doctor. */
import { explained } from "./memories.js";
import { classify } from "./origins.js";
import { GET } from "./tools.js";

/** A message waits for a recall by words, so that one is short. */
const BY_WORDS_MS = 4000;
const STATUS_MS = 8000;
const NOT_READ = { backend: "builtin", provider: "unknown", dirty: true };

export class Manager {
  #memory;
  #settings;
  #stateDir;
  #status = NOT_READ;

  constructor(memory, settings, stateDir) {
    this.#memory = memory;
    this.#settings = settings;
    this.#stateDir = stateDir;
  }

  async search(query, options = {}) {
    const { maxResults, minScore, sessionKey, sources, lexicalOnly, signal } = options;
    const params = { query, maxResults, minScore, sessionKey, sources, lexicalOnly: lexicalOnly === true };
    const limits = { signal, ...(lexicalOnly ? { timeoutMs: BY_WORDS_MS } : {}) };
    const found = await this.#request("memory-tui/search", params, limits);
    if (found.disabled) throw new Error(`${found.error} ${found.action ?? ""}`.trim());
    return await this.#withOrigins(found.results);
  }

  async listTriggerCandidates({ limit } = {}) {
    const found = await this.#request("memory-tui/entries", { with: "triggers", limit }, { timeoutMs: BY_WORDS_MS });
    return await this.#withOrigins(found.entries);
  }

  async listCuratedProjectCandidates({ limit } = {}) {
    const found = await this.#request("memory-tui/entries", { with: "project", limit }, { timeoutMs: BY_WORDS_MS });
    return await this.#withOrigins(found.entries);
  }

  async readFile({ relPath, from, lines }) {
    const asked = { path: relPath, ...(from ? { from } : {}), ...(lines ? { lines } : {}) };
    const result = await this.#asked(this.#memory.call(GET, asked));
    const found = result?.structuredContent;
    if (found?.status === "not_found") return { status: "not_found", text: "", path: found.path };
    if (found?.status !== "ok") throw new Error(found?.error ?? result?.content?.[0]?.text ?? "memory_get failed");
    const { path: name, text, lines: count, truncated, nextFrom } = found;
    const more = truncated ? { truncated, ...(nextFrom ? { nextFrom } : {}) } : {};
    return { status: "ok", text, path: name, from: found.from, lines: count, ...more };
  }

  /** The state as it was last read: the host wants it at once. */
  status() {
    return this.#status;
  }

  async refreshStatus() {
    this.#status = await this.#request("memory-tui/status", {}, { timeoutMs: STATUS_MS });
  }

  /** Whether questions are embedded, as far as it is known; null before the first look. */
  getCachedEmbeddingAvailability() {
    const { provider, fallback } = this.#status;
    if (this.#status === NOT_READ) return null;
    return provider === "none"
      ? { ok: false, checked: true, error: fallback?.reason ?? "Only words are searched." }
      : { ok: true, checked: true };
  }

  async probeEmbeddingAvailability() {
    try {
      await this.refreshStatus();
    } catch (error) {
      return { ok: false, checked: true, error: error.message };
    }
    return this.getCachedEmbeddingAvailability();
  }

  async probeVectorAvailability() {
    return (await this.probeEmbeddingAvailability()).ok;
  }

  async #withOrigins(hits) {
    const paths = [...new Set(hits.filter(({ source }) => source === "memory").map((hit) => hit.path))];
    const classes = await classify({
      workspaceDir: this.#memory.workspace,
      relativePaths: paths,
      stateDir: this.#stateDir,
    });
    const byPath = new Map(classes.map(({ relativePath, originClass }) => [relativePath, originClass]));
    return hits.map((hit) => {
      const originClass = byPath.get(hit.path) ?? "untrusted";
      return { ...hit, provenance: { originClass, sessionKind: "unknown", observedAt: hit.observedAt } };
    });
  }

  #request(method, params, limits) {
    return this.#asked(this.#memory.request(method, params, limits));
  }

  async #asked(answer) {
    try {
      return await answer;
    } catch (error) {
      const { reason, action } = explained(error, this.#settings);
      throw new Error(`${reason} ${action}`, { cause: error });
    }
  }
}

/** The `runtime` of a memory capability. */
export function runtimeOf(memories, settings, host) {
  const managers = new Map();

  function managerOf(cfg, agentId) {
    const workspace = host.workspaceOf(cfg, agentId);
    const key = JSON.stringify([workspace, agentId]);
    let found = managers.get(key);
    if (found === undefined) {
      found = new Manager(memories.of(workspace, agentId), settings, host.stateDir());
      managers.set(key, found);
    }
    return found;
  }

  return {
    async getMemorySearchManager({ cfg, agentId, purpose }) {
      const began = Date.now();
      try {
        const manager = managerOf(cfg, agentId);
        if (purpose === "status" || purpose === "cli") await manager.refreshStatus();
        return { manager, debug: { backend: "builtin", purpose, managerMs: Date.now() - began } };
      } catch (error) {
        return { manager: null, error: error.message };
      }
    },
    resolveMemoryBackendConfig: () => ({ backend: "builtin" }),
    supportsWorkspaceMemoryReadSources: true,
    classifyWorkspaceMemoryPaths: ({ workspaceDir, relativePaths, readSources }) =>
      classify({ workspaceDir, relativePaths, readSources, stateDir: host.stateDir() }),
    async closeMemorySearchManager({ cfg, agentId }) {
      memories.of(host.workspaceOf(cfg, agentId), agentId).stop();
    },
    async closeAllMemorySearchManagers() {
      managers.clear();
      memories.stopAll();
    },
  };
}
