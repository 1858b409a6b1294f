import { expect, it } from "vitest";
import { z } from "zod";
import { type AgentOptions, defineAgent, defineTool, InvalidInputError, subagent } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { textOf } from "../../src/state/index.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const nothing = z.object({});
const text = Array.from({ length: 200 }, (_, line) => `line ${line}: ${line === 150 ? "needle" : "straw"} 😀`).join(
  "\n",
);
const long = defineTool({
  name: "long",
  description: "Gives a long text.",
  parameters: nothing,
  effect: "none",
  maxOutputCharacters: 300,
  execute: () => text,
});
const short = defineTool({
  name: "short",
  description: "Gives a short text.",
  parameters: nothing,
  execute: () => "short",
});
const picture = defineTool({
  name: "picture",
  description: "Draws.",
  parameters: nothing,
  execute: async (_args, run) => {
    const image = await run.saveArtifact({ name: "p.png", contentType: "image/png", content: "iVBORw0KGgo=" });
    return image.artifactId;
  },
});

/** The id that the last cut result names. */
function idIn(texts: readonly string[]): string {
  return /artifact (artifact[\w-]+)\./.exec(texts.join("\n"))?.[1] ?? "";
}

describeRuntimes("read_artifact", (stage) => {
  async function started(script: ModelScript, options: Partial<AgentOptions> = {}) {
    const model = scriptedModel(script);
    const definition = defineAgent({ name: "worker", tools: [long, short, picture], ...options, model });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    return { model, agent, runtime };
  }

  it("an artifact knows the turn and the call that saved it, or whose result it is", async () => {
    const { agent } = await started([calling("picture"), "one", calling("short", "long"), "two"]);
    await agent.executeTurn("draw").result;
    await agent.executeTurn("tell").result;
    const makers = (await agent.getArtifacts()).map(({ name, turnId, callId }) => [name, turnId, callId]);
    expect(makers).toEqual([
      ["p.png", "worker-1#1", "worker-1#1:1:0"],
      ["long output", "worker-1#2", "worker-1#2:1:1"],
    ]);
    expect(await agent.getArtifact("p.png")).toMatchObject({ turnId: "worker-1#1", callId: "worker-1#1:1:0" });
  });

  /** A turn in which the long text is cut, and then read with each of the arguments. */
  async function readings(...asked: readonly object[]): Promise<readonly string[]> {
    const { agent } = await started(({ messages }, { index }) => {
      if (index === 0) return calling("long");
      const found = messages.flatMap((message) => (message.role === "tool" ? [textOf(message.content)] : []));
      const args = asked[index - 1];
      return args ? calling({ name: "read_artifact", arguments: { id: idIn(found), ...args } }) : "done";
    });
    const result = await agent.executeTurn("go", { budget: { maxSteps: 50, maxToolCalls: 1 } }).result;
    expect(result).toMatchObject({ status: "completed", toolCalls: 1 });
    return (await toolTextsOf(agent)).slice(1);
  }

  it("is offered from the first result on that was cut, and stays in every later turn and after a restart", async () => {
    const script: ModelScript = [calling("short"), calling("long"), "one", "two", "three"];
    const { model, agent, runtime } = await started(script);
    await agent.executeTurn("go").result;
    await agent.executeTurn("again").result;
    await runtime.shutdown();
    const next = await stage().open({
      agents: [defineAgent({ name: "worker", tools: [long, short, picture], model })],
    });
    const back = await next.agent("worker", { agentId: "worker-1" });
    await back.start();
    await back.executeTurn("and again").result;
    const usual = ["long", "short", "picture"];
    const all = [...usual, "read_artifact"];
    expect(model.calls.map(({ tools }) => tools?.map(({ name }) => name))).toEqual([usual, usual, all, all, all]);
  });

  it("shows the whole of a text, part by part, without splitting a pair", async () => {
    const parts = await readings({ length: 1_500 }, { from: 1_500, length: 1_499 }, { from: 2_999, length: 32_000 });
    const shown = parts.map((part) => part.slice(part.indexOf("\n\n") + 2));
    expect(shown.every((part) => part.isWellFormed())).toBe(true);
    expect(shown[0]).toBe(text.slice(0, shown[0]?.length));
    expect(parts[0]).toMatch(
      /^Artifact artifact\S+ \(long output, text\/plain\), characters 0 to 1\d{3} of \d+; go on with from: 1\d{3}:/,
    );
    expect(text.endsWith(shown[2] ?? "-")).toBe(true);
    expect(parts[2]).not.toContain("go on");
  });

  it("finds the places where a pattern matches, and says where they are", async () => {
    const [found, none, many] = await readings(
      { pattern: "ne{2}dle" },
      { pattern: "NEEDLE" },
      { pattern: "straw", length: 100 },
    );
    const at = text.indexOf("line 150");
    expect(found).toContain(`1 places match.\n\n[${at}] line 150: needle 😀`);
    expect(none).toContain("nothing matches");
    expect(many?.length).toBeLessThan(400);
    const goOn = Number(/go on with from: (\d+)/.exec(many ?? "")?.[1]);
    expect(text.slice(0, goOn).split("straw").length - 1).toBe(many?.match(/straw/g)?.length);
  });

  it("refuses a pattern that is broken, or that takes too long", async () => {
    const [broken, endless] = await readings({ pattern: "(a" }, { pattern: "^(.|.|.|.)+z$" });
    expect(broken).toMatch(/pattern is invalid: .*Unterminated group/);
    expect(endless).toMatch(/takes too long to search with/);
  });

  it("says what is wrong: an unknown id, a place past the end", async () => {
    const wrong = await readings({ id: "artifact-of-nobody" }, { from: 1_000_000 });
    expect(wrong[0]).toMatch(/^You have no artifact "artifact-of-nobody"\. Results that were cut: artifact\S+\.$/);
    expect(wrong[1]).toMatch(/has \d+ characters: there is nothing from 1000000 on/);
  });

  it("does not read artifacts that are not text, and tells their type", async () => {
    const { agent } = await started(({ messages }) => {
      const last = messages.at(-1);
      if (last?.role === "user") return calling("picture", "long");
      const [id] = messages.flatMap((message) => (message.role === "tool" ? [textOf(message.content)] : []));
      return last?.role === "tool" && textOf(last.content).includes("not text")
        ? "done"
        : calling({ name: "read_artifact", arguments: { id: id ?? "" } });
    });
    await agent.executeTurn("go").result;
    expect((await toolTextsOf(agent)).at(-1)).toMatch(
      /\(p\.png, image\/png\) is binary \(12 bytes\) and cannot be read as text/,
    );
  });

  it("gives a parent nothing of a subagent's, and a subagent its own", async () => {
    const childModel = scriptedModel(({ messages }) => {
      const texts = messages.flatMap((message) => (message.role === "tool" ? [textOf(message.content)] : []));
      if (texts.length === 0) return calling("long");
      if (texts.length > 1) return `read ${texts[1]?.length}; ${idIn(texts)}`;
      return calling({ name: "read_artifact", arguments: { id: idIn(texts), length: 10 } });
    });
    const child = defineAgent({ name: "child", model: childModel, tools: [long] });
    const { agent } = await started(
      ({ messages }) => {
        const texts = messages.flatMap((message) => (message.role === "tool" ? [textOf(message.content)] : []));
        if (texts.length === 0) return calling({ name: "child", arguments: { input: "go" } });
        const id = /artifact\S+/.exec(texts[0] ?? "")?.[0];
        return texts.length === 1 ? calling({ name: "read_artifact", arguments: { id } }) : "done";
      },
      { tools: [subagent(child, { policy: { allowedTools: ["long"] } })] },
    );
    await agent.executeTurn("go").result;
    const [answer, refused] = await toolTextsOf(agent);
    expect(answer).toMatch(/^read 1\d\d; artifact/);
    expect(refused).toMatch(/^You have no artifact/);
  });
});

it("its name is taken where an agent has tools", () => {
  const own = defineTool({ name: "read_artifact", description: "Mine.", parameters: nothing, execute: () => "" });
  const define = () => defineAgent({ name: "worker", model: scriptedModel("x"), tools: [own] });
  expect(define).toThrow(InvalidInputError);
  expect(define).toThrow(
    /"read_artifact", which is the name of a tool that the runtime gives this agent for its own context/,
  );
});
