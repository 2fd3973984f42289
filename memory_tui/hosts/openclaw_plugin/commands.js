/** `openclaw memory …`: the commands of memory-tui, for the workspace of an agent. */
import { spawn } from "node:child_process";

import { explained } from "./memories.js";
import { ServerError } from "./server.js";

export const COMMAND = {
  name: "memory",
  description: "Search, inspect and index the notes with memory-tui",
  hasSubcommands: true,
};

/** Add the commands to OpenClaw's program; `workspaceOf(agentId)` is the folder of an agent's notes. */
export function addCommands(program, settings, workspaceOf) {
  const memory = program.command(COMMAND.name).description(COMMAND.description);
  const run = (words, options, ...last) => {
    const agent = options.agent ? [`--agent=${options.agent}`] : [];
    const json = options.json ? ["--json"] : [];
    return start(settings, [...words, "--workspace", workspaceOf(options.agent), ...agent, ...json, ...last]);
  };
  const command = (name, description) =>
    memory.command(name).description(description).option("--agent <id>", "agent id (default: the default agent)");

  command("status", "Show what is indexed, by what, and what is missing")
    .option("--deep", "ask the embedding provider too")
    .option("--json", "print JSON")
    .action((options) => run(["status", ...(options.deep ? ["--deep"] : [])], options));
  command("search [query]", "Search the notes as the agent does")
    .option("--query <text>", "the question")
    .option("--max-results <n>", "how many hits")
    .option("--min-score <n>", "what a hit has to score")
    .option("--json", "print JSON")
    .action((query, options) => {
      const limits = [
        ...(options.maxResults ? ["--max-results", options.maxResults] : []),
        ...(options.minScore ? ["--min-score", options.minScore] : []),
      ];
      const question = query ?? options.query;
      // After two dashes a question may begin with one.
      return run(["search", ...limits], options, ...(question === undefined ? [] : ["--", question]));
    });
  command("index", "Bring the index up to date")
    .option("--force", "index every note again")
    .option("--json", "print JSON")
    .action((options) => run(["index", ...(options.force ? ["--force"] : [])], options));
  command("doctor", "Check the memory, and say what to do")
    .option("--json", "print JSON")
    .action((options) => run(["doctor"], options));
}

function start(settings, words) {
  return new Promise((resolve) => {
    const failed = (error) => {
      const missing = new ServerError("start", `${settings.command} cannot be started: ${error.message}.`);
      const { reason, action } = explained(missing, settings);
      process.stderr.write(`${reason} ${action}\n`);
      process.exitCode = 1;
      resolve();
    };
    try {
      const child = spawn(settings.command, [...settings.args, ...words], { stdio: "inherit", windowsHide: true });
      child.on("error", failed);
      child.on("exit", (code) => {
        process.exitCode = code ?? 1;
        resolve();
      });
    } catch (error) {
      failed(error);
    }
  });
}
