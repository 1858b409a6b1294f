import { z } from "zod";
import {
  type AgentDefinition,
  defineAgent,
  defineTool,
  type HistoryCompiler,
  type LanguageModel,
} from "../../src/index.ts";
import type { StrictPart, StrictRequest } from "./strict-thinking.ts";

const lookup = defineTool({
  name: "lookup",
  description: "Looks a word up.",
  parameters: z.object({ word: z.string() }),
  effect: "none",
  maxOutputCharacters: 2_000,
  execute: ({ word }) => `${word}: found${word.endsWith("long") ? " word".repeat(1_000) : ""}`,
});

/** A window that moves with each message. */
export const lastThree: HistoryCompiler = {
  name: "lastThree",
  internalTools: false,
  compile: ({ history }) => history.slice(-3),
};

export type ClerkOptions = Omit<Partial<Parameters<typeof defineAgent>[0]>, "model">;

/** An agent with one tool, for servers of thinking that is bound to its prefix. */
export function clerkOn(model: LanguageModel, options: ClerkOptions = {}): AgentDefinition {
  return defineAgent({ name: "clerk", instructions: "Be brief.", tools: [lookup], ...options, model });
}

/** Answers in turn: a call of the tool (`c`), one with a long result (`l`), or a text. It thinks before each answer, and before a call again. */
export function thinker(script: string) {
  return ({ index, isLast }: StrictRequest): readonly StrictPart[] => {
    const kind = isLast ? "t" : (script[index] ?? "t");
    const thought = { thought: `thought ${index}` };
    if (kind === "t") return [thought, { text: `Answer ${index}.` }];
    const word = `w${index}${kind === "l" ? "long" : ""}`;
    const again = { thought: `second thought ${index}` };
    return [thought, { text: `I look ${index}.` }, again, { call: "lookup", arguments: { word } }];
  };
}
