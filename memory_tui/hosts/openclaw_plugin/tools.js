/** The tools of the agent. Names, arguments and answers are those of OpenClaw's own memory, but for what corrects. */
import { explained } from "./memories.js";

export const SEARCH = "memory_search";
export const GET = "memory_get";
export const CORRECT = "memory_correct";

const TOOLS = {
  [SEARCH]: {
    label: "Memory Search",
    // Hosts that hide tools show only the first words: they carry the rule.
    description:
      "Recall, before you answer anything about earlier work, decisions, dates, people, preferences or todos: " +
      "searches MEMORY.md and memory/*.md (and transcripts of sessions where they are configured) by meaning and by " +
      "words, and gives the best pieces with path and lines. With disabled=true the memory could not be searched: " +
      "tell the user the error and the action.",
    parameters: {
      type: "object",
      additionalProperties: false,
      required: ["query"],
      properties: {
        query: { type: "string", description: "What to look for, in words or as a question." },
        maxResults: { type: "integer", minimum: 1, description: "How many hits at most." },
        maxCharacters: {
          type: "integer",
          minimum: 0,
          description: "How many characters of notes at most, as passages around what matched; 0 for whole hits.",
        },
        minScore: { type: "number", description: "What a hit has to score." },
        corpus: {
          type: "string",
          enum: ["memory", "sessions", "all"],
          description: "Where to look: the notes, the transcripts of sessions, or both (default).",
        },
        nearest: {
          type: "boolean",
          description: "Give the nearest hits even where nothing holds what was asked; probably not it.",
        },
      },
    },
    failed: ({ reason, action }) => ({
      results: [],
      disabled: true,
      unavailable: true,
      error: reason,
      warning: "Memory search is unavailable. Tell the user that the memory was not searched.",
      action,
    }),
  },
  [GET]: {
    label: "Memory Get",
    description:
      "Read lines of a note that memory_search named, MEMORY.md or memory/*.md: at most 120 lines and 12,000 " +
      "characters at once, with where to go on. A note that does not exist is empty text.",
    parameters: {
      type: "object",
      additionalProperties: false,
      required: ["path"],
      properties: {
        path: { type: "string", description: "A note as memory_search names it: MEMORY.md, memory/2026-11-20.md." },
        from: { type: "integer", minimum: 1, description: "First line, counted from 1." },
        lines: { type: "integer", minimum: 1, description: "How many lines, 120 at most." },
      },
    },
    failed: ({ reason, action }, given) => ({
      status: "error",
      path: String(given.path ?? ""),
      text: "",
      disabled: true,
      code: "MEMORY_READ_FAILED",
      error: reason,
      action,
    }),
  },
  [CORRECT]: {
    label: "Memory Correct",
    once: true,
    description:
      "Write down that a line of the notes holds no more: a dated line with what holds now, which names the older " +
      "one; that one stays, marked as superseded. Read the line first. The user can undo it.",
    parameters: {
      type: "object",
      additionalProperties: false,
      required: ["text", "supersedes"],
      properties: {
        text: { type: "string", description: "What holds now, as one sentence." },
        supersedes: {
          type: "string",
          description: "The line that it overtakes, as memory_search cites it: MEMORY.md:12 or MEMORY.md#L12.",
        },
      },
    },
    failed: ({ reason, action }) => ({ status: "error", error: reason, action }),
  },
};

/** The tool `name` of a memory; the session decides whether citations are given. */
export function tool(name, memory, settings, sessionKey) {
  const { label, description, parameters, failed, once } = TOOLS[name];
  return {
    name,
    label,
    description,
    parameters,
    async execute(_callId, params, signal) {
      const known = Object.entries(params ?? {}).filter(([key]) => key in parameters.properties);
      const given = Object.fromEntries(known);
      let result;
      try {
        result = await memory.call(name, given, { sessionKey, signal, once });
      } catch (error) {
        if (signal?.aborted) throw error;
        const answer = failed(explained(error, settings), given);
        return { content: [{ type: "text", text: JSON.stringify(answer, null, 2) }], details: answer };
      }
      const text = result?.content?.[0]?.text ?? "";
      // Wrong arguments come as a sentence alone: the agent is to ask again with right ones.
      if (result?.isError && result.structuredContent === undefined) throw new Error(text);
      return { content: [{ type: "text", text }], details: result?.structuredContent };
    },
  };
}
