/**
 * Whose words a memory file holds: owner, agent, untrusted or system.
 *
 * OpenClaw writes down in its state database which files were changed by others than the agent, and puts none of them
 * into a prompt by itself. The record is only read here; a file without one has the class of its name.
 */
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";

const PLUGIN = "core:memory-artifact-provenance";
const NAMESPACE = "workspace-files";
const CURATED = new Set(["MEMORY.md", "memory.md", "USER.md"]);
const CLASSES = new Set(["owner", "agent", "untrusted", "system"]);

/** The class of each of `relativePaths` below `workspaceDir`; `readSources` are files of another machine, read already. */
export async function classify({ workspaceDir, relativePaths, readSources, stateDir }) {
  const root = realpath(workspaceDir);
  const named = relativePaths.map((relativePath) => {
    const read = readSources?.find((source) => source.relativePath === relativePath);
    const inside = readSources === undefined ? below(root, workspaceDir, relativePath) : clean(read?.canonicalRelativePath);
    return { relativePath, inside };
  });
  const recorded = await records(stateDir, root, [...new Set(named.map(({ inside }) => inside).filter(Boolean))]);
  return named.map(({ relativePath, inside }) => ({
    relativePath,
    originClass: inside ? ofName(inside, recorded) : "untrusted",
  }));
}

function ofName(inside, recorded) {
  const parts = inside.split("/");
  const dreams = parts.length === 1 && (inside === "DREAMS.md" || inside === "dreams.md");
  if (dreams || (parts[0] === "memory" && (parts[1] === "dreaming" || parts[1] === ".dreams"))) return "system";
  const ours =
    CURATED.has(inside) ||
    /^users\/[a-zA-Z0-9][a-zA-Z0-9_-]{0,127}\/USER\.md$/.test(inside) ||
    (parts[0] === "memory" && inside.endsWith(".md"));
  return ours ? (recorded.get(inside) ?? "agent") : "untrusted";
}

function realpath(name) {
  try {
    return fs.realpathSync(name);
  } catch {
    return "";
  }
}

/** `relativePath` as it really stands below the workspace, empty where it does not. */
function below(root, workspaceDir, relativePath) {
  const real = realpath(path.resolve(workspaceDir, relativePath));
  return root && real ? clean(path.relative(root, real).split(path.sep).join("/")) : "";
}

function clean(inside) {
  const absolute = !inside || path.posix.isAbsolute(inside) || path.win32.isAbsolute(inside) || inside.includes("\\");
  return absolute || inside.split("/").some((part) => part === "" || part === "." || part === "..") ? "" : inside;
}

/** The recorded classes by path; none where nothing is recorded. Rejects when the record is there and unreadable. */
async function records(stateDir, root, paths) {
  const found = new Map();
  const file = path.join(stateDir, "state", "openclaw.sqlite");
  if (!root || paths.length === 0 || !fs.existsSync(file)) return found;
  const { DatabaseSync } = await import("node:sqlite");
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const query = database.prepare(
      "SELECT value_json FROM plugin_state_entries WHERE plugin_id = ? AND namespace = ? AND entry_key = ?",
    );
    const sha = (text) => createHash("sha256").update(text).digest("hex");
    for (const inside of paths) {
      const row = query.get(PLUGIN, NAMESPACE, `${sha(root)}:${sha(inside)}`);
      const originClass = row && JSON.parse(row.value_json).originClass;
      if (CLASSES.has(originClass)) found.set(inside, originClass);
    }
  } catch (error) {
    // Before the first record there is no table.
    if (!String(error).includes("no such table")) throw error;
  } finally {
    database.close();
  }
  return found;
}
