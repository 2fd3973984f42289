/** The memories of the workspaces: one server each, started when it is first asked and again after it ended. */
import { Server, ServerError } from "./server.js";

export const SESSION_KEY = "memory-tui/sessionKey";
const PATIENCE = "memory-tui/patienceSeconds";
const DEFAULT_TIMEOUT_SECONDS = 28;
/** What the server may take of the time before it answers by words alone. */
const PATIENCE_SHARE = 0.65;
const BACK = "openclaw config set plugins.slots.memory memory-core";

/** What the configuration of the plugin comes to. */
export function settingsOf(config) {
  const given = config ?? {};
  return {
    command: given.command || "memory-tui",
    args: Array.isArray(given.args) ? given.args : [],
    timeoutMs: 1000 * (given.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS),
    logRecalls: given.logRecalls === true,
    allowWrite: given.allowWrite === true,
  };
}

export class Memory {
  #server = null;
  #settings;
  #args;

  /** The memory in the folder `workspace` of the agent `agentId` (may be empty). */
  constructor(settings, workspace, agentId) {
    this.workspace = workspace;
    this.#settings = settings;
    this.#args = [
      ...settings.args,
      ...["mcp", "--workspace", workspace],
      ...(agentId ? [`--agent=${agentId}`] : []),
      ...(settings.logRecalls ? ["--log-recalls"] : []),
      ...(settings.allowWrite ? ["--allow-write"] : []),
    ];
  }

  /** The id of the process that answers, undefined while there is none. */
  get pid() {
    return this.#server?.alive ? this.#server.pid : undefined;
  }

  /**
   * The result of `method`. A server that ended meanwhile is started anew, once: what only reads may be asked twice.
   * What writes is asked `once`. Rejects with ServerError.
   */
  async request(method, params, { signal, once = false, timeoutMs = this.#settings.timeoutMs } = {}) {
    const until = Date.now() + timeoutMs;
    for (let tries = once ? 1 : 2; ; tries--) {
      if (!this.#server?.alive) this.#server = new Server(this.#settings.command, this.#args);
      try {
        return await this.#server.request(method, params, { signal, timeoutMs: Math.max(1, until - Date.now()) });
      } catch (error) {
        const again = error instanceof ServerError && error.kind === "gone" && tries > 1 && Date.now() < until;
        if (!again) throw error;
      }
    }
  }

  /** The answer of a tool, as the server gave it. Rejects with ServerError. */
  async call(name, given, { sessionKey, signal, once } = {}) {
    const patience = Math.max(1, (PATIENCE_SHARE * this.#settings.timeoutMs) / 1000);
    const meta = { [PATIENCE]: patience, ...(sessionKey ? { [SESSION_KEY]: sessionKey } : {}) };
    return await this.request("tools/call", { name, arguments: given, _meta: meta }, { signal, once });
  }

  /** Stop the server; the next question starts one again. */
  stop() {
    this.#server?.stop();
    this.#server = null;
  }
}

export class Memories {
  #found = new Map();
  #settings;

  constructor(settings) {
    this.#settings = settings;
  }

  /** The memory of a workspace. Agents that share a folder may read it by other settings, so each has its own. */
  of(workspace, agentId = "") {
    const key = JSON.stringify([workspace, agentId]);
    let found = this.#found.get(key);
    if (found === undefined) this.#found.set(key, (found = new Memory(this.#settings, workspace, agentId)));
    return found;
  }

  stopAll() {
    for (const memory of this.#found.values()) memory.stop();
    this.#found.clear();
  }
}

/** What is wrong, and what to do about it, in sentences for the agent and for a person. */
export function explained(error, settings) {
  const kind = error instanceof ServerError ? error.kind : "fault";
  const reason = error instanceof Error ? error.message : String(error);
  switch (kind) {
    case "start":
      return {
        reason,
        action:
          `Tell the user: memory-tui does not run (${settings.command}). Install it again and run ` +
          `memory-tui connect openclaw, or go back to OpenClaw's own memory: ${BACK}`,
      };
    case "gone":
    case "hung":
      return { reason, action: "Ask again: the next question starts it anew. If this repeats, run memory-tui doctor." };
    case "slow":
      return { reason, action: "Ask again in a moment: a first index can take minutes (memory-tui status)." };
    default:
      return { reason, action: "Run memory-tui doctor." };
  }
}
