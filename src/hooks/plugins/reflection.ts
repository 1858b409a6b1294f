import { nameRule, optionsOf, wholeNumberRule } from "../../base/index.ts";
import type { Plugin } from "../hooks.ts";
import { oneLine } from "./one-line.ts";

export interface ReflectionOptions {
  /** What the model is asked about the round. */
  readonly prompt?: string | undefined;
  /** Reflects after the rounds of every so many steps. Default 1: after each round. */
  readonly every?: number | undefined;
}

const defaultPrompt =
  "What do the results of these tool calls show, and what follows from them for the task? Answer in one or two sentences.";

/** Characters of each call's arguments and result that the model is shown. */
const shownCharacters = 2_000;

/** After a round of tool calls, asks the model what it shows and adds the answer as a message; on the agent's budget. */
export function reflection(options?: ReflectionOptions): Plugin {
  const { prompt = defaultPrompt, every = 1 } = optionsOf<ReflectionOptions>(options, "reflection()", {
    rules: { prompt: nameRule, every: wholeNumberRule(1) },
  });
  return {
    name: "reflection",
    hooks: {
      async afterTools(draft, run) {
        if (run.step % every !== 0) return;
        const round = draft.results.map(({ call, outcome, text }) => {
          const [args, result] = [call.arguments, text].map((one) => oneLine(one, shownCharacters));
          return `${call.name} ${args} (${outcome}): ${result}`;
        });
        const content = `${prompt}\n\nTask: ${run.prompt}\n\nTool calls:\n${round.join("\n")}`;
        const { content: answer } = await run.generate({ messages: [{ role: "user", content }] });
        if (answer.trim() !== "") draft.add({ role: "user", content: `Reflection on the last tool calls: ${answer}` });
      },
    },
  };
}
