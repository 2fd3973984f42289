/**
 * memory-tui as the memory of OpenClaw's agent (plugins.slots.memory), for 2026.3.13 to 2026.9.
 *
 * Whatever is wrong with memory-tui, OpenClaw starts: what cannot be registered is logged, and each answer of a tool
 * says what is wrong and how to go back.
 */
import os from "node:os";
import path from "node:path";

import { addCommands, COMMAND } from "./commands.js";
import { runtimeOf } from "./manager.js";
import { Memories, settingsOf } from "./memories.js";
import { flushPlan, recallSection } from "./prompt.js";
import { CORRECT, GET, SEARCH, tool } from "./tools.js";

/** What is asked of OpenClaw, in one place, because its two releases name it differently. */
export function hostOf(api) {
  const config = () => api.runtime?.config?.current?.() ?? api.config;
  return {
    config,
    /** The folder of an agent's notes; the folder of the run where OpenClaw does not know it. */
    workspaceOf(cfg, agentId, otherwise) {
      const resolve = api.runtime?.agent?.resolveAgentWorkspaceDir;
      const found = agentId && resolve ? resolve(cfg ?? config(), agentId) : undefined;
      return found || otherwise || path.join(os.homedir(), ".openclaw", "workspace");
    },
    stateDir: () => api.runtime?.state?.resolveStateDir?.() ?? path.join(os.homedir(), ".openclaw"),
  };
}

function defaultAgent(cfg) {
  const listed = Object.entries(cfg?.agents?.entries ?? {}).map(([id, agent]) => ({ ...agent, id }));
  const agents = listed.length ? listed : (cfg?.agents?.list ?? []);
  return (agents.find((agent) => agent?.default) ?? agents[0])?.id ?? "main";
}

/** OpenClaw registers a plugin more than once in a process, and again when its configuration changes. */
let shared = null;

function memoriesFor(settings) {
  const key = JSON.stringify(settings);
  if (shared?.key !== key) {
    shared?.memories.stopAll();
    shared = { key, memories: new Memories(settings) };
  }
  return shared.memories;
}

function register(api) {
  const settings = settingsOf(api.pluginConfig);
  const memories = memoriesFor(settings);
  const host = hostOf(api);
  const guarded = (what, run) => {
    try {
      run();
    } catch (error) {
      api.logger?.warn?.(`memory-tui: ${what} is not registered: ${error?.message ?? error}`);
    }
  };

  for (const name of settings.allowWrite ? [SEARCH, GET, CORRECT] : [SEARCH, GET]) {
    const make = (ctx) => {
      const cfg = ctx?.getRuntimeConfig?.() ?? ctx?.config;
      const agentId = ctx?.agentId ?? "";
      const memory = memories.of(host.workspaceOf(cfg, agentId, ctx?.workspaceDir), agentId);
      return tool(name, memory, settings, ctx?.sessionKey);
    };
    guarded(name, () => api.registerTool(make, { names: [name] }));
  }
  guarded("the memory capability", () =>
    api.registerMemoryCapability?.({
      promptBuilder: recallSection,
      flushPlanResolver: flushPlan,
      runtime: runtimeOf(memories, settings, host),
      deterministicRecallToolName: SEARCH,
    }),
  );
  guarded("openclaw memory", () =>
    api.registerCli(
      ({ program, config }) =>
        addCommands(program, settings, (agent) => {
          const cfg = config ?? host.config();
          return host.workspaceOf(cfg, agent ?? defaultAgent(cfg));
        }),
      { commands: [COMMAND.name], descriptors: [COMMAND] },
    ),
  );
  guarded("the end of the gateway", () => api.on?.("gateway_stop", () => memories.stopAll()));
}

export default {
  id: "memory-tui",
  name: "memory-tui",
  description: "memory_search and memory_get, answered by memory-tui from the Markdown notes of the workspace.",
  kind: "memory",
  register,
};
