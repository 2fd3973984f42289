/**
 * A server of the memory that behaves as its first arguments say: good | silent | deaf | dies | crashes. It appends
 * each request to the file of the second argument, so that a test sees who was asked.
 */
import fs from "node:fs";
import readline from "node:readline";

const [behaviour, log] = process.argv.slice(2);
const note = (what) => fs.appendFileSync(log, `${JSON.stringify({ pid: process.pid, ...what })}\n`);
const answer = (id, result) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);

if (behaviour === "crashes") {
  process.stderr.write("No module named memory_tui\n");
  process.exit(1);
}
note({ started: process.argv.slice(4) });
const before = fs.readFileSync(log, "utf8").split("\n").filter((line) => line.includes('"tools/call"')).length;
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  note({ method, params });
  if (method === "initialize") return answer(id, { serverInfo: { name: "fake" } });
  // The loop of a server that hangs in the disk or the network answers pings; one that is stopped does not.
  if (method === "ping") return behaviour === "silent" ? answer(id, {}) : undefined;
  if (id === undefined || behaviour === "silent" || behaviour === "deaf") return undefined;
  if (behaviour === "dies" && before === 0) process.kill(process.pid, "SIGKILL");
  const given = params?.arguments ?? {};
  if (given.query === "wrong") {
    return answer(id, { isError: true, content: [{ type: "text", text: "query required. Say what to look for." }] });
  }
  if (method === "memory-tui/search") {
    const hit = { path: "MEMORY.md", startLine: 2, endLine: 2, score: 1, snippet: "x", source: "memory", observedAt: 5 };
    return answer(id, { results: [hit, { ...hit, path: "sessions/a.jsonl", source: "sessions" }] });
  }
  if (method === "memory-tui/status") return answer(id, { backend: "builtin", provider: "builtin", files: 2 });
  const found = { status: "ok", path: given.path, text: "line\n", from: 1, lines: 1, totalLines: 1, results: [] };
  return answer(id, { content: [{ type: "text", text: JSON.stringify(found) }], structuredContent: found });
});
process.stdin.on("end", () => process.exit(0));
