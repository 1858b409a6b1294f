import { z } from "zod";
import {
  type AgentDefinition,
  AgentStopError,
  defineAgent,
  defineTool,
  type LanguageModel,
  type ModelRequest,
} from "../../src/index.ts";
import { hookNames } from "../../src/state/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { calling, createGate } from "./turn-probes.ts";

/** Every point of a turn at which user code runs. */
export const places = [
  "afterUserInput",
  "instructions",
  "beforeLlm",
  "model",
  "afterLlm",
  "beforeTools",
  "beforeEachTool",
  "needsApproval",
  "resolveAuth",
  "tool",
  "onError",
  "afterEachTool",
  "afterTools",
  "compaction",
  "output",
  "onComplete",
] as const;
export type HoldPoint = (typeof places)[number];

/** The behaviour of the code at the edge after it is released. */
export const deeds = ["nothing", "stops", "throws", "throws AgentStopError", "is refused a model call"] as const;
export type Deed = (typeof deeds)[number];

interface Struck {
  readonly stop?: ((reason: string) => void) | undefined;
  readonly generate?: ((request: { messages: { role: "user"; content: string }[] }) => Promise<unknown>) | undefined;
}

/** One edge that a test blocks, and a record of all calls. */
export class Edge {
  readonly gate = createGate();
  /** Each run of user code, by edge and subject. */
  readonly runs: string[] = [];
  readonly requests: ModelRequest[] = [];
  readonly place: HoldPoint | undefined;
  readonly deed: Deed;
  #isArmed = true;

  constructor(place: HoldPoint | undefined, deed: Deed = "nothing") {
    this.place = place;
    this.deed = deed;
  }

  /** Code with a journalled result that ran more than once. */
  repeated(): string[] {
    const journalled = this.runs.filter((run) => !/^(model|resolveAuth|compaction|output) /.test(run));
    return journalled.filter((run, index) => journalled.indexOf(run) !== index);
  }

  disarm(): void {
    this.#isArmed = false;
    this.gate.open();
  }

  /** Called by the code at an edge. It ignores signals, as hostile or careless code would. */
  async at(place: HoldPoint, about: string, struck: Struck = {}): Promise<void> {
    this.runs.push(`${place} ${about}`);
    if (place !== this.place || !this.#isArmed) return;
    await this.gate.pass();
    if (!this.#isArmed && this.gate.count === 0) return;
    await this.#act(struck);
  }

  async #act({ stop, generate }: Struck): Promise<void> {
    switch (this.deed) {
      case "nothing":
        return;
      case "stops":
        return stop?.("enough");
      case "throws":
        throw new RangeError("it is broken");
      case "throws AgentStopError":
        throw new AgentStopError("not today");
      case "is refused a model call":
        await generate?.({ messages: [{ role: "user", content: "side ".repeat(200_000) }] });
        return;
      default:
        this.deed satisfies never;
    }
  }
}

const struckBy = (run: object, draft?: object): Struck => ({
  ...("generate" in run ? { generate: run.generate as Struck["generate"] } : {}),
  ...(draft && "stop" in draft ? { stop: draft.stop as Struck["stop"] } : {}),
});

/** An agent with user code at every edge: two calls, one of which fails, then an answer that is checked. */
export function edgeAgent(edge: Edge, name = "worker"): AgentDefinition {
  const hooks = hookNames.map((name) => {
    const hook = async (draft: object, run: { readonly turnId: string; readonly step: number }): Promise<void> => {
      const call = "call" in draft ? (draft.call as { readonly callId: string }).callId : "";
      await edge.at(name, `${run.turnId}:${run.step} ${call}`, struckBy(run, draft));
    };
    return [name, hook] as const;
  });
  return defineAgent({
    name,
    model: modelOf(edge),
    tools: [toolOf(edge, "works", () => "done"), toolOf(edge, "fails", breaks)],
    instructions: async ({ turnId }) => {
      await edge.at("instructions", turnId);
      return "work";
    },
    hooks: Object.fromEntries(hooks),
    maxMessages: 1,
    autoCompact: {
      strategy: {
        name: "never",
        compact: async ({ generate, messages }) => {
          await edge.at("compaction", `${messages.length}`, struckBy({ generate }));
          return null;
        },
      },
    },
    output: z.object({ done: z.boolean() }).refine(async () => {
      await edge.at("output", "");
      return true;
    }),
    budget: { maxSeconds: 30, maxTokens: 200_000 },
  });
}

function breaks(): never {
  throw new Error("it does not work");
}

function modelOf(edge: Edge): LanguageModel {
  return scriptedModel(async (request) => {
    edge.requests.push(request);
    await edge.at("model", `${request.messages.length}`);
    const hasResults = request.messages.some(({ role }) => role === "tool");
    return hasResults ? JSON.stringify({ done: true }) : calling("works", "fails");
  });
}

function toolOf(edge: Edge, name: string, work: () => string) {
  return defineTool({
    name,
    description: "Works.",
    parameters: z.object({}),
    effect: "none",
    auth: "required",
    needsApproval: async (_args, run) => {
      await edge.at("needsApproval", run.callId, struckBy(run));
      return false;
    },
    execute: async (_args, run) => {
      await edge.at("tool", run.callId, struckBy(run));
      return work();
    },
  });
}
