import { z } from "zod";
import {
  defineAgent,
  defineTool,
  type HookContext,
  type Hooks,
  type LanguageModel,
  subagent,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { calling } from "./turn-probes.ts";

/** Called with every value that user code receives, and the name of its source. */
export type Give = (place: string, value: unknown) => void;

export const hookNames = [
  "afterUserInput",
  "beforeLlm",
  "afterLlm",
  "beforeTools",
  "beforeEachTool",
  "afterEachTool",
  "onError",
  "afterTools",
  "onComplete",
] as const;

function hooksOf(give: Give): Hooks {
  const seen = (name: string) => async (draft: object, run: HookContext) => {
    give(`${name}: draft`, draft);
    give(`${name}: run`, { ...run });
    if (name !== "beforeLlm") return;
    const response = await run.generate({ messages: [{ role: "user", content: "a side question" }] });
    give("generate: response", response);
  };
  return Object.fromEntries(hookNames.map((name) => [name, seen(name)]));
}

/** A custom adapter. It records its requests and passes each value that it receives to `give`. */
function modelOf(prompts: string[], give: Give): LanguageModel {
  const scripted = scriptedModel((request) => {
    prompts.push(JSON.stringify(request));
    const last = request.messages.at(-1);
    if (last?.content === "a side question") return "aside";
    if (last?.content !== "first") return "done";
    return calling({ name: "save", arguments: { deep: { list: [1, 2] } } }, "child", "fails");
  });
  return {
    ...scripted,
    contextWindow: 100_000,
    generate: async (request, options) => {
      const answer = await scripted.generate(structuredClone(request), options);
      give("model: generate", request);
      return answer;
    },
    countPromptTokens: (request) => {
      give("model: count", request);
      return 20;
    },
    boundPromptTokens: (request) => {
      give("model: bound", request);
      return 4_000;
    },
  };
}

/** An agent with user code everywhere that an agent can have some. */
export function deskOf(prompts: string[], give: Give) {
  const child = defineAgent({ name: "child", model: scriptedModel("a child's answer") });
  const save = defineTool({
    name: "save",
    description: "Saves.",
    parameters: z.object({ deep: z.object({ list: z.array(z.number()) }) }),
    effect: "none",
    auth: "required",
    needsApproval: (args, run) => {
      give("approval: arguments", args);
      give("approval: run", { ...run });
      return true;
    },
    describeCall: (args) => {
      give("describe", args);
      return "save it?";
    },
    execute: async (args, run) => {
      await run.saveArtifact({ name: "notes", contentType: "text/plain", content: JSON.stringify(args) });
      run.progress({ done: [1, { of: 2 }] });
      give("tool: arguments", args);
      give("tool: run", { ...run });
      return "saved";
    },
  });
  const fails = defineTool({
    name: "fails",
    description: "Fails.",
    parameters: z.object({}),
    effect: "none",
    execute: () => {
      throw new Error("it failed");
    },
  });
  return defineAgent({
    name: "desk",
    model: modelOf(prompts, give),
    tools: [
      save,
      fails,
      subagent(child, {
        parameters: z.object({ about: z.array(z.string()).default(["x"]) }),
        policy: { maxChildren: 5, deniedTools: [] },
        input: (args) => {
          give("subagent: input", args);
          return "tell me";
        },
      }),
    ],
    instructions: (context) => {
      give("instructions", context);
      return "be brief";
    },
    history: {
      name: "own",
      internalTools: false,
      compile: (input) => {
        const chosen = [...input.history];
        give("compile", input);
        return chosen;
      },
    },
    autoCompact: {
      strategy: {
        name: "none",
        compact: async (input) => {
          give("compact", input);
          return null;
        },
      },
    },
    maxMessages: 2,
    budget: { maxTokens: 50_000 },
    responseFormat: { type: "json_schema", name: "any", schema: { type: "object", properties: { a: {} } } },
    hooks: hooksOf(give),
  });
}
