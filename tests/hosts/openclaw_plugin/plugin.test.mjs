/** The plugin by itself, against a server that plays every way to fail. The folder of the plugin is in PLUGIN. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const load = (name) => import(pathToFileURL(path.join(process.env.PLUGIN, name)).href);
const { default: plugin, hostOf } = await load("index.js");
const { Memories, settingsOf } = await load("memories.js");
const { runtimeOf } = await load("manager.js");
const { classify } = await load("origins.js");
const { flushPlan, recallSection } = await load("prompt.js");
const { CORRECT, GET, SEARCH, tool } = await load("tools.js");
const SERVER = fileURLToPath(new URL("fake_server.mjs", import.meta.url));

function folder(t) {
  const made = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "plugin-")));
  t.after(() => fs.rmSync(made, { recursive: true, force: true }));
  return made;
}

/** A memory whose server behaves as named, its settings, and what the server was asked so far. */
function memoryOf(t, behaviour, { timeoutSeconds = 20, ...config } = {}) {
  const place = folder(t);
  const log = path.join(place, "log");
  fs.writeFileSync(log, "");
  const given = { command: process.execPath, args: [SERVER, behaviour, log], timeoutSeconds, ...config };
  const settings = settingsOf(given);
  const memories = new Memories(settings);
  t.after(() => memories.stopAll());
  const asked = () => fs.readFileSync(log, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return { memories, memory: memories.of(place, "main"), settings, asked, place };
}

/** Wait until `fact` holds; the time limit of the run ends what never does. */
async function until(fact) {
  while (!fact()) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** Return when the server runs and takes questions, so that what is timed is no start of a process. */
async function running(memory, asked) {
  const caller = new AbortController();
  const waiting = memory.request("hello", {}, { signal: caller.signal, timeoutMs: 60_000 });
  await until(() => asked().some(({ method }) => method === "hello"));
  caller.abort();
  await assert.rejects(waiting, { kind: "aborted" });
}

const calls = (asked) => asked().filter(({ method }) => method === "tools/call");
const dataOf = (result) => JSON.parse(result.content[0].text);

test("a tool gives the server's answer, with the session and only known arguments", async (t) => {
  const { memory, settings, asked, place } = memoryOf(t, "good", { logRecalls: true });
  const get = tool(GET, memory, settings, "agent:main:group:7");
  const result = await get.execute("1", { path: "MEMORY.md", corpus: "wiki" });
  assert.equal(dataOf(result).text, "line\n");
  assert.equal(result.details.status, "ok");
  const [{ params }] = calls(asked);
  assert.deepEqual(params.arguments, { path: "MEMORY.md" });
  assert.equal(params._meta["memory-tui/sessionKey"], "agent:main:group:7");
  assert.ok(params._meta["memory-tui/patienceSeconds"] < 20);
  const { started } = asked().find((line) => line.started);
  assert.deepEqual(started, [
    ...["mcp", "--workspace", place, "--agent=main", "--log-recalls"],
  ]);
});

test("one server answers all questions of a workspace", async (t) => {
  const { memory, memories, settings, asked, place } = memoryOf(t, "good");
  const search = tool(SEARCH, memory, settings);
  await Promise.all(["a", "b", "c"].map((query) => search.execute("1", { query })));
  await tool(GET, memories.of(place, "main"), settings).execute("2", { path: "a.md" });
  assert.equal(asked().filter((line) => line.started).length, 1);
  assert.equal(calls(asked).length, 4);
});

test("a server that is killed in mid-call is started again and asked again", async (t) => {
  const { memory, settings, asked } = memoryOf(t, "dies");
  const found = dataOf(await tool(GET, memory, settings).execute("1", { path: "MEMORY.md" }));
  assert.equal(found.status, "ok");
  assert.equal(new Set(calls(asked).map(({ pid }) => pid)).size, 2);
});

test("what writes is asked once, and allowed by the configuration", async (t) => {
  const { memory, settings, asked } = memoryOf(t, "dies", { allowWrite: true });
  const given = { text: "The bins go out on Monday.", supersedes: "MEMORY.md:2" };
  const answer = dataOf(await tool(CORRECT, memory, settings).execute("1", given));
  assert.equal(answer.status, "error");
  assert.equal(calls(asked).length, 1);
  assert.ok(asked().find((line) => line.started).started.includes("--allow-write"));
});

test("a program that is missing is an answer that names the way back", async (t) => {
  const { memory, settings } = memoryOf(t, "good", { command: "/nowhere/memory-tui" });
  const found = dataOf(await tool(SEARCH, memory, settings).execute("1", { query: "x" }));
  assert.deepEqual([found.results, found.disabled, found.unavailable], [[], true, true]);
  assert.match(found.error, /\/nowhere\/memory-tui cannot be started/);
  assert.match(found.action, /openclaw config set plugins\.slots\.memory memory-core/);
  const read = dataOf(await tool(GET, memory, settings).execute("1", { path: "MEMORY.md" }));
  assert.deepEqual([read.status, read.disabled, read.text], ["error", true, ""]);
});

test("a Python environment that is gone is said with its last words", async (t) => {
  const { memory, settings } = memoryOf(t, "crashes");
  const found = dataOf(await tool(SEARCH, memory, settings).execute("1", { query: "x" }));
  assert.match(found.error, /ended at its start with status 1\. It said: No module named memory_tui/);
  assert.match(found.action, /memory-core/);
});

test("a server that hangs is stopped in time, and the next question starts another", async (t) => {
  const { memory, settings, asked } = memoryOf(t, "deaf", { timeoutSeconds: 1 });
  const search = tool(SEARCH, memory, settings);
  await running(memory, asked);
  const first = dataOf(await search.execute("1", { query: "x" }));
  assert.match(first.error, /did not answer within .* seconds and was stopped/);
  assert.match(first.action, /the next question starts it anew/);
  await search.execute("2", { query: "x" });
  await until(() => asked().filter((line) => line.started).length === 2);
});

test("a server that is slow but alive is left alone", async (t) => {
  const { memory, settings, asked } = memoryOf(t, "silent", { timeoutSeconds: 1 });
  const search = tool(SEARCH, memory, settings);
  await running(memory, asked);
  assert.match(dataOf(await search.execute("1", { query: "x" })).error, /still at work/);
  await search.execute("2", { query: "x" });
  assert.equal(asked().filter((line) => line.started).length, 1);
  await until(() => asked().filter(({ method }) => method === "notifications/cancelled").length === 3);
});

test("a question that is given up is cancelled at the server", async (t) => {
  const { memory, settings, asked } = memoryOf(t, "silent");
  const caller = new AbortController();
  const given = tool(SEARCH, memory, settings).execute("1", { query: "x" }, caller.signal);
  await until(() => calls(asked).length === 1);
  caller.abort();
  await assert.rejects(given, { kind: "aborted" });
  await until(() => asked().some(({ method }) => method === "notifications/cancelled"));
});

test("wrong arguments are an error of the call, so that the agent asks again", async (t) => {
  const { memory, settings } = memoryOf(t, "good");
  await assert.rejects(tool(SEARCH, memory, settings).execute("1", { query: "wrong" }), /query required/);
});

test("the host's own search has origins, and its status is at hand", async (t) => {
  const { memories, settings, place } = memoryOf(t, "good");
  fs.writeFileSync(path.join(place, "MEMORY.md"), "# Facts\n");
  const host = { workspaceOf: () => place, stateDir: () => path.join(place, "state") };
  const runtime = runtimeOf(memories, settings, host);
  const { manager } = await runtime.getMemorySearchManager({ cfg: {}, agentId: "main", purpose: "status" });
  assert.equal(manager.status().files, 2);
  assert.equal(manager.getCachedEmbeddingAvailability().ok, true);
  assert.deepEqual(await manager.probeEmbeddingAvailability(), { ok: true, checked: true });
  const [note, session] = await manager.search("x", { lexicalOnly: true, sources: ["memory"] });
  assert.deepEqual(note.provenance, { originClass: "agent", sessionKind: "unknown", observedAt: 5 });
  assert.equal(session.provenance.originClass, "untrusted");
  const read = await manager.readFile({ relPath: "MEMORY.md" });
  assert.deepEqual(read, { status: "ok", text: "line\n", path: "MEMORY.md", from: 1, lines: 1 });
});

test("a memory that does not run gives the host no manager and the reason", async (t) => {
  const { memories, settings, place } = memoryOf(t, "good", { command: "/nowhere/memory-tui" });
  const host = { workspaceOf: () => place, stateDir: () => place };
  const found = await runtimeOf(memories, settings, host).getMemorySearchManager({ agentId: "main", purpose: "status" });
  assert.equal(found.manager, null);
  assert.match(found.error, /cannot be started/);
});

test("files have the class of their name, unless a record says otherwise", async (t) => {
  const place = folder(t);
  const workspaceDir = path.join(place, "notes");
  fs.mkdirSync(path.join(workspaceDir, "memory", "dreaming"), { recursive: true });
  const named = ["MEMORY.md", "USER.md", "memory/2026-11-20.md", "memory/dreaming/x.md", "AGENTS.md"];
  for (const name of named) fs.writeFileSync(path.join(workspaceDir, name), "x\n");
  fs.writeFileSync(path.join(place, "outside.md"), "x\n");
  fs.symlinkSync(path.join(place, "outside.md"), path.join(workspaceDir, "memory", "link.md"));
  const relativePaths = [...named, "memory/link.md", "../outside.md", "memory/gone.md"];
  const classes = async (more) => {
    const found = await classify({ workspaceDir, relativePaths, stateDir: place, ...more });
    return found.map(({ originClass }) => originClass);
  };
  const byName = ["agent", "agent", "agent", "system", "untrusted", "untrusted", "untrusted", "untrusted"];
  assert.deepEqual(await classes(), byName);
  const read = [{ relativePath: "MEMORY.md", canonicalRelativePath: "MEMORY.md" }, { relativePath: "USER.md" }];
  assert.deepEqual((await classes({ readSources: read })).slice(0, 2), ["agent", "untrusted"]);

  const sqlite = await import("node:sqlite").catch(() => undefined);
  if (sqlite === undefined) return t.diagnostic("this Node has no SQLite, so no record is read");
  fs.mkdirSync(path.join(place, "state"));
  const file = path.join(place, "state", "openclaw.sqlite");
  const database = new sqlite.DatabaseSync(file);
  assert.deepEqual(await classes(), byName, "before the first record there is no table");
  database.exec(
    "CREATE TABLE plugin_state_entries (plugin_id TEXT, namespace TEXT, entry_key TEXT, value_json TEXT, " +
      "created_at INTEGER, expires_at INTEGER)",
  );
  const sha = (text) => createHash("sha256").update(text).digest("hex");
  database
    .prepare("INSERT INTO plugin_state_entries VALUES ('core:memory-artifact-provenance', 'workspace-files', ?, ?, 1, NULL)")
    .run(`${sha(workspaceDir)}:${sha("MEMORY.md")}`, JSON.stringify({ originClass: "untrusted" }));
  database.close();
  assert.deepEqual(await classes(), ["untrusted", ...byName.slice(1)]);
  fs.writeFileSync(file, "no database");
  await assert.rejects(classes(), "a record that cannot be read is not taken for none");
});

test("the flush plan writes today's log in the user's time zone", () => {
  const nowMs = Date.UTC(2026, 10, 22, 23, 30);
  const cfg = (more, zone) => ({ agents: { defaults: { userTimezone: zone, compaction: { memoryFlush: more } } } });
  const plan = flushPlan({ cfg: cfg({}, "Asia/Tokyo"), nowMs, contextWindowTokens: 200_000 });
  assert.equal(plan.relativePath, "memory/2026-11-23.md");
  assert.match(plan.prompt, /memory\/2026-11-23\.md/);
  assert.match(plan.prompt, /NO_REPLY/);
  assert.deepEqual([plan.softThresholdTokens, plan.reserveTokensFloor], [4000, 20_000]);
  assert.equal(plan.forceFlushTranscriptBytes, 2_097_152);
  const small = flushPlan({ cfg: cfg({ softThresholdTokens: 9000 }, "UTC"), nowMs, contextWindowTokens: 16_000 });
  assert.deepEqual([small.softThresholdTokens, small.reserveTokensFloor], [6000, 4000]);
  assert.equal(flushPlan({ cfg: cfg({ forceFlushTranscriptBytes: "3mb" }), nowMs }).forceFlushTranscriptBytes, 3 << 20);
  assert.equal(flushPlan({ cfg: cfg({ enabled: false }) }), null);
});

test("the section of the prompt names the tools that are there", () => {
  const of = (...names) => recallSection({ availableTools: new Set(names), citationsMode: "off" }).join("\n");
  assert.equal(of(), "");
  assert.match(of(SEARCH, GET), /memory_search, then read .* memory_get/);
  assert.doesNotMatch(of(GET), /memory_search/);
  assert.match(of(SEARCH), /Citations: off/);
  assert.match(of(SEARCH, "sessions_search"), /sessions_search/);
});

test("it registers with both releases, and with a host that refuses everything", () => {
  const seen = [];
  const api = (more) => ({
    pluginConfig: {},
    config: {},
    logger: { warn: (text) => seen.push(text) },
    registerTool: (make, { names }) => seen.push(make({ workspaceDir: "/w", agentId: "main", sessionKey: "s" }).name, names),
    registerCli: (_, { commands }) => seen.push(commands),
    ...more,
  });
  plugin.register(api({}));
  assert.deepEqual(seen.splice(0), [SEARCH, [SEARCH], GET, [GET], ["memory"]]);
  plugin.register(api({ pluginConfig: { allowWrite: true } }));
  assert.deepEqual(seen.splice(0), [SEARCH, [SEARCH], GET, [GET], CORRECT, [CORRECT], ["memory"]]);
  let capability;
  plugin.register(api({ registerMemoryCapability: (given) => (capability = given), on: () => {} }));
  assert.equal(capability.deterministicRecallToolName, SEARCH);
  assert.deepEqual(capability.runtime.resolveMemoryBackendConfig(), { backend: "builtin" });
  seen.length = 0;
  const refuse = () => {
    throw new Error("no");
  };
  plugin.register(api({ registerTool: refuse, registerCli: refuse, registerMemoryCapability: refuse, on: refuse }));
  assert.equal(seen.length, 5);
  assert.ok(seen.every((text) => text.includes("is not registered: no")));
});

test("the workspace is the agent's, as OpenClaw resolves it", () => {
  const resolve = (cfg, agentId) => `${cfg.root}/${agentId}`;
  const host = hostOf({ config: { root: "/a" }, runtime: { agent: { resolveAgentWorkspaceDir: resolve } } });
  assert.equal(host.workspaceOf(undefined, "main", "/run"), "/a/main");
  assert.equal(host.workspaceOf({ root: "/b" }, "two", "/run"), "/b/two");
  assert.equal(host.workspaceOf({}, "", "/run"), "/run");
});
