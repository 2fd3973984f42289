/**
 * One process of `memory-tui mcp`: JSON-RPC, a message a line, over its pipes.
 *
 * Nothing here throws into the host: what goes wrong rejects the request that it concerns, with a `kind`:
 * "start" (the program does not run), "gone" (it ended in the middle, or was killed at its start), "hung" (silent, so
 * it was killed), "slow" (alive, but not done in time), "refused" (it answered with an error), "aborted" (the caller
 * gave up).
 */
import { spawn } from "node:child_process";
import path from "node:path";

const PROTOCOL = "2025-06-18";
const KEPT_STDERR = 2000;
const GOODBYE_MS = 2000;
/** How long a start may take, whatever the first question can wait: a loaded machine is slow, not broken. */
const START_MS = 60_000;
/** The part of a request's time that is left to find out whether a silent process still lives. */
const PING_SHARE = 0.15;
const LONGEST_PING_MS = 2000;

export class ServerError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = "ServerError";
    this.kind = kind;
  }
}

export class Server {
  #child = null;
  #pending = new Map();
  #next = 1;
  #unread = "";
  #stderr = "";
  #ended = null;
  #greeted = false;
  #ready = null;

  /** Start `command` with `args`. It does not keep the host alive; its end, and the host's end, end the other's pipes. */
  constructor(command, args) {
    try {
      // The root folder is always there; a folder that is gone would be reported as a missing program.
      const cwd = path.parse(process.execPath).root;
      this.#child = spawn(command, args, { cwd, stdio: ["pipe", "pipe", "pipe"], windowsHide: true });
    } catch (error) {
      this.#end(new ServerError("start", `${command} cannot be started: ${messageOf(error)}.`));
      return;
    }
    const { stdin, stdout, stderr } = this.#child;
    this.#child.on("error", (error) => {
      this.#end(new ServerError("start", `${command} cannot be started: ${messageOf(error)}.`));
    });
    this.#child.on("exit", (code, signal) => this.#exited(command, code, signal));
    for (const pipe of [stdin, stdout, stderr]) {
      // Its end is reported by "exit"; without a listener a broken pipe would end the host.
      pipe?.on("error", () => {});
      pipe?.unref?.();
    }
    stdout?.setEncoding("utf8");
    stdout?.on("data", (text) => this.#read(text));
    stderr?.setEncoding("utf8");
    stderr?.on("data", (text) => {
      this.#stderr = (this.#stderr + text).slice(-KEPT_STDERR);
    });
    this.#child.unref();
  }

  /** Whether it can still be asked. */
  get alive() {
    return this.#ended === null;
  }

  /** Whether it has answered the greeting. */
  get greeted() {
    return this.#greeted;
  }

  /** The process id, or undefined where it never started. */
  get pid() {
    return this.#child?.pid;
  }

  /** The result of `method` within `timeoutMs`. Rejects with ServerError. */
  async request(method, params, { signal, timeoutMs }) {
    const until = Date.now() + timeoutMs;
    this.#ready ??= this.#greet();
    // Who waits is told of its failure; with nobody waiting it would be an unhandled one.
    this.#ready.catch(() => {});
    await within(this.#ready, signal, timeoutMs);
    return await this.#ask(method, params, signal, Math.max(1, until - Date.now()));
  }

  /** End it: by the end of its input, and by force where that is not enough. */
  stop() {
    if (this.#ended !== null || this.#child === null) return;
    this.#child.stdin?.end();
    setTimeout(() => this.kill(), GOODBYE_MS).unref();
  }

  /** End it now. */
  kill() {
    if (this.#ended === null) this.#child?.kill("SIGKILL");
  }

  async #greet() {
    const clientInfo = { name: "openclaw-plugin", version: "1" };
    const greeting = { protocolVersion: PROTOCOL, capabilities: {}, clientInfo };
    try {
      await this.#ask("initialize", greeting, undefined, START_MS, true);
    } catch (error) {
      this.kill();
      this.#end(error);
      throw error;
    }
    this.#greeted = true;
    this.#send({ jsonrpc: "2.0", method: "notifications/initialized" });
  }

  /** Timers keep the host alive until there is an answer, as nothing else of the process does; not in `background`. */
  #ask(method, params, signal, timeoutMs, background = false) {
    return new Promise((resolve, reject) => {
      if (this.#ended !== null) return reject(this.#ended);
      if (signal?.aborted) return reject(new ServerError("aborted", "The question was given up."));
      const id = this.#next++;
      let pinged = false;
      let heard = false;
      const settle = (finish, value) => {
        clearTimeout(ping);
        clearTimeout(limit);
        signal?.removeEventListener("abort", abort);
        this.#pending.delete(id);
        finish(value);
      };
      const cancel = () => this.#send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } });
      const abort = () => {
        cancel();
        settle(reject, new ServerError("aborted", "The question was given up."));
      };
      const ping = setTimeout(() => {
        pinged = true;
        const probe = this.#next++;
        this.#pending.set(probe, { resolve: () => (heard = true), reject: () => {} });
        this.#send({ jsonrpc: "2.0", id: probe, method: "ping" });
      }, timeoutMs - Math.min(LONGEST_PING_MS, timeoutMs * PING_SHARE));
      const limit = setTimeout(() => {
        const seconds = Math.round(timeoutMs / 100) / 10;
        cancel();
        if (pinged && heard) {
          settle(reject, new ServerError("slow", `memory-tui is still at work after ${seconds} seconds.`));
          return;
        }
        const hung = new ServerError("hung", `memory-tui did not answer within ${seconds} seconds and was stopped.`);
        settle(reject, hung);
        this.kill();
        this.#end(hung);
      }, timeoutMs);
      if (background) for (const timer of [ping, limit]) timer.unref();
      signal?.addEventListener("abort", abort, { once: true });
      this.#pending.set(id, {
        resolve: (value) => settle(resolve, value),
        reject: (error) => settle(reject, error),
      });
      this.#send({ jsonrpc: "2.0", id, method, params });
    });
  }

  #send(message) {
    if (this.#ended === null) this.#child?.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  #read(text) {
    const lines = (this.#unread + text).split("\n");
    this.#unread = lines.pop() ?? "";
    for (const line of lines) {
      let message;
      try {
        message = JSON.parse(line);
      } catch {
        // A line that is no message answers nothing; the deadline of the request says so.
        continue;
      }
      const waiting = this.#pending.get(message?.id);
      if (waiting === undefined) continue;
      this.#pending.delete(message.id);
      if (message.error) waiting.reject(new ServerError("refused", String(message.error.message ?? "refused")));
      else waiting.resolve(message.result);
    }
  }

  #exited(command, code, signal) {
    const how = signal ? `by ${signal}` : `with status ${code}`;
    const last = lastLine(this.#stderr);
    const said = last ? ` It said: ${last}` : "";
    const message = this.#greeted ? `memory-tui ended ${how}.${said}` : `${command} ended at its start ${how}.${said}`;
    // What a signal ended can run: only a program that ends by itself is one that does not start.
    this.#end(new ServerError(this.#greeted || signal ? "gone" : "start", message));
  }

  #end(error) {
    if (this.#ended !== null) return;
    this.#ended = error;
    const waiting = [...this.#pending.values()];
    this.#pending.clear();
    for (const one of waiting) one.reject(error);
  }
}

function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

function lastLine(text) {
  const lines = text.split("\n").map((line) => line.trim());
  // Control characters of a foreign program have no place in a prompt.
  return (lines.filter(Boolean).at(-1) ?? "").replace(/[\u0000-\u001f\u007f-\u009f]/g, " ").slice(0, 300);
}

/** What `promise` comes to, unless the caller gives up or its time is over first. */
function within(promise, signal, timeoutMs) {
  return new Promise((resolve, reject) => {
    const abort = () => finish(reject, new ServerError("aborted", "The question was given up."));
    const seconds = Math.round(timeoutMs / 100) / 10;
    const late = () => finish(reject, new ServerError("slow", `memory-tui did not start within ${seconds} seconds.`));
    const limit = setTimeout(late, timeoutMs);
    const finish = (settle, value) => {
      clearTimeout(limit);
      signal?.removeEventListener("abort", abort);
      settle(value);
    };
    if (signal?.aborted) return abort();
    signal?.addEventListener("abort", abort, { once: true });
    promise.then(
      (value) => finish(resolve, value),
      (error) => finish(reject, error),
    );
  });
}
