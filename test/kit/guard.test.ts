import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  type AgentOptions,
  clientTool,
  createRuntime,
  defineAgent,
  defineTool,
  type Plugin,
  type RuntimeOptions,
  subagent,
  textOf,
  type TroupeEvent,
} from "../../src/index.ts";
import { guard, type GuardOptions } from "../../src/kit/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

const mailed: unknown[] = [];
const mail = defineTool({
  name: "mail",
  description: "Sends a mail.",
  parameters: z.object({ to: z.string(), text: z.string().default("") }),
  execute: (args) => {
    mailed.push(args);
    return `mailed to ${args.to}`;
  },
});
const page = (text: string) =>
  defineTool({ name: "page", description: "Reads.", parameters: z.object({}), effect: "none", execute: () => text });

interface Played {
  readonly text: string;
  readonly status: string;
  readonly events: readonly TroupeEvent[];
  readonly prompts: readonly string[];
  readonly tools: readonly string[];
}

type Script = (
  prompt: string,
  index: number,
) => string | { readonly text?: string; readonly toolCalls: readonly { name: string; arguments: object }[] };

/** Runs turns of one agent and records what its model and its followers see. */
async function play(
  plugins: readonly Plugin[],
  script: Script,
  { inputs = ["Go."], ...options }: Partial<AgentOptions> & { readonly inputs?: readonly string[] } = {},
): Promise<Played> {
  const prompts: string[] = [];
  const model = scriptedModel(({ messages }, { index }) => {
    const prompt = messages.map(({ role, content }) => `${role}: ${textOf(content)}`).join("\n");
    prompts.push(prompt);
    return script(prompt, index) as string;
  });
  const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model, plugins, ...options })] });
  const agent = await runtime.agent("clerk", { agentId: "clerk-1" });
  await agent.start();
  const events: TroupeEvent[] = [];
  let last = { text: "", status: "" };
  for (const input of inputs) {
    const turn = agent.executeTurn(input);
    for await (const event of turn) events.push(event);
    last = await turn.result;
  }
  const tools = await toolTextsOf(agent);
  await runtime.shutdown();
  return { text: last.text, status: last.status, events, prompts, tools };
}

const blocks = (reason = "not here"): { block: string } => ({ block: reason });
const throws = (): never => {
  throw new Error("canary in an error");
};
const calls =
  (name: string, args: object): Script =>
  (_prompt, index) =>
    index === 0 ? { toolCalls: [{ name, arguments: args }] } : "Done.";

const add = (name: string) => guard({ name, input: (text) => ({ rewrite: `${text}${name}` }) });

describe("guard({ input })", () => {
  test("a blocked input stops the turn before the model, with the reason, and no later prompt has it", async () => {
    const own = guard({
      name: "door",
      input: (text) => (text.includes("canary") ? blocks("it sings") : undefined),
    });
    const first = await play([own], () => "Hello.", { inputs: ["canary"] });
    expect(first.prompts).toEqual([]);
    expect(first.status).toBe("stopped");
    expect(first.text).toBe('Task incomplete: The input was blocked by the guard "door": it sings.');
    expect(first.events.find(({ type }) => type === "warning")).toMatchObject({ code: "guard_input" });
    const later = await play([own], () => "Hello.", { inputs: ["canary", "Hi."] });
    expect(later.text).toBe("Hello.");
    expect(later.prompts.join("\n")).not.toContain("canary");
  });

  test("a rewritten input stays rewritten for the model, hooks and tools, in this turn and later ones", async () => {
    const seen: string[] = [];
    const spy: Plugin = {
      name: "spy",
      hooks: { beforeLlm: (draft, run) => void seen.push(run.prompt, JSON.stringify(draft.messages)) },
    };
    const own = guard({ input: (text) => ({ rewrite: text.replaceAll("canary", "bird") }) });
    const { prompts } = await play([spy, own], calls("mail", { to: "ada" }), {
      inputs: ["a canary", "Hi."],
      tools: [mail],
    });
    expect(prompts).toHaveLength(3);
    for (const prompt of prompts) expect(prompt).toContain("user: a bird");
    expect([...prompts, ...seen].join("\n")).not.toContain("canary");
  });

  test.each([
    ["throws", throws],
    ["returns true", () => true],
    ["returns an empty object", () => ({})],
    ["rewrites to no text", () => ({ rewrite: 1 })],
    ["returns null", () => null],
  ])("a guard that %s blocks, and its error is not shown", async (_what, input) => {
    const played = await play([guard({ input: input as unknown as GuardOptions["input"] })], () => "Hello.");
    expect(played.prompts).toEqual([]);
    expect(played.status).toBe("stopped");
    expect(JSON.stringify(played.events)).not.toContain("canary");
  });

  test("guards of several plugins run in order, each on what the one before has made", async () => {
    const { prompts } = await play([add("a"), add("b")], () => "Hello.", { inputs: ["x"] });
    expect(prompts[0]).toContain("user: xab");
  });
});

describe("guard({ toolCall })", () => {
  test("a blocked call never runs, and the model reads why; arguments can be rewritten", async () => {
    mailed.length = 0;
    const own = guard({
      toolCall: ({ name, arguments: args }) => {
        const { to } = args as { to: string };
        if (name === "mail" && to === "mallory") return blocks("mallory gets no mail");
        return { rewrite: { to: to.toUpperCase() } };
      },
    });
    const blocked = await play([own], calls("mail", { to: "mallory" }), { tools: [mail] });
    expect(blocked.tools).toEqual(['The call of mail was blocked by the guard "guard": mallory gets no mail.']);
    const changed = await play([own], calls("mail", { to: "ada" }), { tools: [mail] });
    expect(changed.tools).toEqual(["mailed to ADA"]);
    expect(mailed).toEqual([{ to: "ADA", text: "" }]);
    const broken = await play([guard({ toolCall: () => ({ rewrite: { to: 1 } }) })], calls("mail", { to: "ada" }), {
      tools: [mail],
    });
    expect(broken.tools[0]).toContain("to");
    expect(mailed).toHaveLength(1);
  });

  test.each([
    ["blocks", () => blocks("no")],
    ["throws", throws],
    ["would change", () => ({ rewrite: { to: "other" } })],
  ])("arguments that a person has edited do not run if the guard %s them", async (_what, verdict) => {
    mailed.length = 0;
    const careful = defineTool({ ...mailDefinition, needsApproval: true });
    const own = guard({
      toolCall: ({ arguments: args }) => ((args as { to: string }).to === "ada" ? undefined : verdict()),
    });
    const model = scriptedModel([{ toolCalls: [{ name: "mail", arguments: { to: "ada" } }] }, "Done."]);
    const runtime = await createRuntime({
      agents: [defineAgent({ name: "clerk", model, tools: [careful], plugins: [own] })],
    });
    const agent = await runtime.agent("clerk");
    await agent.start();
    const turn = agent.executeTurn("Go.");
    await turn.settled;
    const [request] = await agent.requests();
    await agent.decide(request?.requestId ?? "", { verdict: "edited", arguments: { to: "mallory" } });
    expect((await turn.result).text).toBe("Done.");
    expect((await toolTextsOf(agent))[0]).toMatch(/^The call of mail was blocked by (?:the|a) guard/);
    expect(mailed).toEqual([]);
    await runtime.shutdown();
  });

  test("what a person has edited runs if the guard lets it pass", async () => {
    mailed.length = 0;
    const careful = defineTool({ ...mailDefinition, needsApproval: true });
    const model = scriptedModel([{ toolCalls: [{ name: "mail", arguments: { to: "ada" } }] }, "Done."]);
    const plugins = [guard({ toolCall: () => undefined })];
    const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model, tools: [careful], plugins })] });
    const agent = await runtime.agent("clerk");
    await agent.start();
    const turn = agent.executeTurn("Go.");
    await turn.settled;
    const [request] = await agent.requests();
    await agent.decide(request?.requestId ?? "", { verdict: "edited", arguments: { to: "ben" } });
    await turn.result;
    expect(mailed).toEqual([{ to: "ben", text: "" }]);
    await runtime.shutdown();
  });
});

const mailDefinition = {
  name: "mail",
  description: "Sends a mail.",
  parameters: z.object({ to: z.string(), text: z.string().default("") }),
  execute: (args: { readonly to: string; readonly text: string }) => {
    mailed.push(args);
    return `mailed to ${args.to}`;
  },
};

const hidden = ({ events, prompts, tools }: Played) => JSON.stringify([events, prompts, tools]);

describe("guard({ toolResult })", () => {
  const own = guard({
    toolResult: ({ text }) => (text.includes("canary") ? { rewrite: text.replaceAll("canary", "bird") } : undefined),
  });

  test("a result is rewritten before it is stored: no event, prompt or artifact has the original", async () => {
    const played = await play([own], calls("page", {}), { tools: [page("a canary")] });
    expect(played.tools).toEqual(["a bird"]);
    expect(hidden(played)).not.toContain("canary");
    const long = await play([own], calls("page", {}), {
      tools: [page(`${"x".repeat(40_000)}canary${"y".repeat(40_000)}`)],
    });
    expect(long.tools[0]).toMatch(/^x+[^]*y+$/);
    expect(hidden(long)).not.toContain("canary");
  });

  test("files and structured values of a result are checked too", async () => {
    const tool = defineTool({
      name: "page",
      description: "Reads.",
      parameters: z.object({}),
      effect: "none",
      execute: () => ({
        content: [
          { type: "text", text: "see" },
          { type: "file", mediaType: "text/plain", data: Buffer.from("a canary"), name: "a.txt" },
        ],
        structured: { found: "canary" },
      }),
    });
    const model = scriptedModel([{ toolCalls: [{ name: "page", arguments: {} }] }, "Done."]);
    const runtime = await createRuntime({
      agents: [defineAgent({ name: "clerk", model, tools: [tool], plugins: [own] })],
    });
    const agent = await runtime.agent("clerk");
    await agent.start();
    const structured: unknown[] = [];
    for await (const event of agent.executeTurn("Go."))
      if (event.type === "tool.completed") structured.push(event.structured);
    const artifacts = await agent.getArtifacts();
    const contents = await Promise.all(
      artifacts.map(async ({ artifactId }) => (await agent.getArtifact(artifactId))?.content),
    );
    expect([structured, contents]).toEqual([[{ found: "bird" }], ["a bird"]]);
    await runtime.shutdown();
  });

  test("a blocked result, a failing guard and an error of the tool: the model reads only the reason", async () => {
    const failing = defineTool({
      ...mailDefinition,
      name: "page",
      parameters: z.object({}),
      effect: "none",
      execute: throws,
    });
    const blocked = await play([guard({ toolResult: () => blocks("no") })], calls("page", {}), {
      tools: [page("a canary")],
    });
    expect(blocked.tools).toEqual(['The result of page was blocked by the guard "guard": no. The tool has run.']);
    const broken = await play([guard({ toolResult: throws })], calls("page", {}), { tools: [page("a canary")] });
    const error = await play([own], calls("page", {}), { tools: [failing] });
    expect(error.tools).toEqual(["Error: bird in an error"]);
    for (const played of [blocked, broken, error]) expect(hidden(played)).not.toContain("canary");
  });

  test("answers of subagents and of client tools are results", async () => {
    const child = defineAgent({ name: "reader", model: scriptedModel("the canary sings") });
    const reading = await play([own], calls("reader", { input: "Read." }), { tools: [subagent(child)] });
    expect(reading.tools).toEqual(["the bird sings"]);
    const pick = clientTool({ name: "pick", description: "Picks.", parameters: z.object({}) });
    const model = scriptedModel([{ toolCalls: [{ name: "pick", arguments: {} }] }, "Done."]);
    const runtime = await createRuntime({
      agents: [defineAgent({ name: "clerk", model, tools: [pick], plugins: [own] })],
    });
    const agent = await runtime.agent("clerk");
    await agent.start();
    const turn = agent.executeTurn("Go.");
    await turn.settled;
    const [request] = await agent.requests();
    await agent.decide(request?.requestId ?? "", { verdict: "answered", result: "a canary" });
    await turn.result;
    expect(await toolTextsOf(agent)).toEqual(["a bird"]);
    await runtime.shutdown();
  });
});

const singing: Script = (_prompt, index) =>
  index === 0 ? { text: "the canary", toolCalls: [{ name: "mail", arguments: { to: "ada" } }] } : "Fine.";

describe("guard({ output })", () => {
  const own = guard({
    output: (text) => (text.includes("canary") ? { rewrite: text.replaceAll("canary", "bird") } : undefined),
  });

  test("an answer is rewritten before it is shown or stored, also where it streams", async () => {
    const played = await play([own], () => "The canary sings. ".repeat(20), { inputs: ["Go.", "Again."] });
    expect(played.text).toContain("The bird sings.");
    expect(JSON.stringify([played.events, played.prompts])).not.toContain("canary");
    const deltas = played.events.flatMap((event) => (event.type === "text.delta" ? [event.text] : []));
    expect(deltas.join("")).toContain("The bird sings.");
  });

  test("a blocked answer stops the turn; its tool calls do not run, and later prompts have only the reason", async () => {
    mailed.length = 0;
    const door = guard({ output: (text) => (text.includes("canary") ? blocks("it sings") : undefined) });
    const played = await play([door], singing, { tools: [mail], inputs: ["Go.", "And now?"] });
    expect(mailed).toEqual([]);
    expect(played.prompts).toHaveLength(2);
    expect(played.prompts[1]).toContain('The answer was blocked by the guard "guard": it sings.');
    expect(JSON.stringify([played.events, played.prompts])).not.toContain("canary");
    expect(played.text).toBe("Fine.");
  });
});

describe("guards of subagents", () => {
  const shared = guard({ name: "house", input: () => undefined, subagents: true });
  const model = scriptedModel("Hello.");

  test("a subagent without the plugin is refused when the agent is defined, and when code spawns it", async () => {
    const bare = defineAgent({ name: "reader", model });
    expect(() => defineAgent({ name: "lead", model, plugins: [shared], tools: [subagent(bare)] })).toThrow(
      'its subagent "reader" lacks the plugin "house"',
    );
    const guarded = defineAgent({ name: "reader", model, plugins: [shared] });
    expect(() => defineAgent({ name: "lead", model, plugins: [shared], tools: [subagent(guarded)] })).not.toThrow();
    const spawning = defineTool({
      name: "spawning",
      description: "Spawns.",
      parameters: z.object({}),
      execute: async (_args, run) => await run.spawn(bare, "Go.", { key: "a" }).then(() => "spawned"),
    });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel([{ toolCalls: [{ name: "spawning", arguments: {} }] }, "Done."]),
      plugins: [shared],
      tools: [spawning],
    });
    const runtime = await createRuntime({ agents: [lead, bare] });
    const agent = await runtime.agent("lead");
    await agent.start();
    await agent.executeTurn("Go.").result;
    expect((await toolTextsOf(agent))[0]).toContain('lacks the guards "house"');
    await runtime.shutdown();
  });
});

describeRuntimes("guards after a restart", (stage) => {
  test("verdicts are facts: no guard runs again for what was stored", async () => {
    const gate = createGate<string>();
    const asked: string[] = [];
    const note = (what: string) => (text: string) => {
      asked.push(`${what} ${text}`);
      return what === "input" ? { rewrite: "rewritten" } : undefined;
    };
    const own = guard({
      input: note("input"),
      toolCall: ({ arguments: args }) => void note("call")(JSON.stringify(args)),
      toolResult: ({ text }) => void note("result")(text),
      output: note("output"),
    });
    const prompts: string[] = [];
    const definitionFor = (hold: boolean): RuntimeOptions["agents"] => {
      const wait = defineTool({
        name: "wait",
        description: "Waits.",
        parameters: z.object({}),
        effect: "none",
        execute: async () => (hold ? await gate.pass() : "over"),
      });
      const model = scriptedModel(({ messages }) => {
        prompts.push(JSON.stringify(messages));
        return messages.at(-1)?.role === "tool" ? "Done." : { toolCalls: [{ name: "wait", arguments: {} }] };
      });
      return [defineAgent({ name: "clerk", model, tools: [wait], plugins: [own] })];
    };
    const doomed = await stage().openProcess({ agents: definitionFor(true) ?? [] });
    const before = await doomed.runtime.agent("clerk", { agentId: "clerk-1" });
    await before.start();
    before.executeTurn("original");
    await gate.reached();
    doomed.kill();
    stage().expireLeases();
    const survivor = await stage().open({ agents: definitionFor(false) ?? [] });
    const agent = await survivor.find("clerk-1");
    await survivor.recover();
    expect((await agent.turn("clerk-1#1").result).text).toBe("Done.");
    expect(asked).toEqual(["input original", "call {}", "result over", "output Done."]);
    expect(prompts.join("\n")).not.toContain("original");
    expect(prompts).toHaveLength(2);
  });
});

test("an input that steers the turn is checked once, before a model sees it", async () => {
  const gate = createGate<string>();
  const asked: string[] = [];
  const own = guard({
    input: (text) => {
      asked.push(text);
      return text.includes("canary") ? { rewrite: "bird" } : undefined;
    },
  });
  const wait = defineTool({
    ...mailDefinition,
    name: "wait",
    parameters: z.object({}),
    execute: async () => await gate.pass(),
  });
  const prompts: string[] = [];
  const model = scriptedModel(({ messages }, { index }) => {
    prompts.push(JSON.stringify(messages));
    return index < 2
      ? { toolCalls: [{ name: index === 0 ? "wait" : "mail", arguments: index === 0 ? {} : { to: "ada" } }] }
      : "Done.";
  });
  const runtime = await createRuntime({
    agents: [defineAgent({ name: "clerk", model, tools: [wait, mail], plugins: [own] })],
  });
  const agent = await runtime.agent("clerk");
  await agent.start();
  const turn = agent.executeTurn("Go.");
  await gate.reached();
  await turn.steer("a canary");
  gate.open("over");
  await turn.result;
  expect(asked).toEqual(["Go.", "a canary"]);
  expect(prompts.join("\n")).not.toContain("canary");
  expect(prompts[1]).toContain("bird");
  await runtime.shutdown();
});

test("options that check nothing, or are no functions, are refused", () => {
  expect(() => guard({})).toThrow("guard() checks nothing");
  const model = scriptedModel("Hello.");
  const wrong = [{ output: 1 }, { outputs: () => undefined }, 5, null];
  for (const guards of wrong) {
    expect(() => defineAgent({ name: "clerk", model, plugins: [{ name: "p", guards } as never] })).toThrow(
      /plugin "p": /,
    );
  }
});
