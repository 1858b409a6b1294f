import { expect, it } from "vitest";
import { z } from "zod";
import { askUser, clientTool, defineAgent, defineTool, type Message, type Tool, toolResult } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, eventsOfTurn } from "../support/turn-probes.ts";

const data = Buffer.from(`%PDF-1.4\n${"\0".repeat(3_000)}`).toString("base64");
const report = { type: "file", data, mediaType: "application/pdf", name: "report.pdf" } as const;
const structured = { pages: 2 };

const shape = { name: "report", description: "Makes a report.", parameters: z.object({}) } as const;
const options = { effect: "none", maxOutputCharacters: 1_000 } as const;

/** The file parts of a message. */
const filesOf = ({ content }: Pick<Message, "content">) =>
  typeof content === "string" ? [] : content.filter((part) => part.type === "file");

describeRuntimes("files in tool results", (stage) => {
  async function told(tool: Tool<never>) {
    const model = scriptedModel([calling("report"), "the end", "again"]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "clerk", model, tools: [tool] })] });
    const agent = await runtime.agent("clerk", { agentId: "c" });
    await agent.start();
    const turn = agent.executeTurn("go");
    const events = eventsOfTurn(turn);
    const result = await turn.result;
    const sent = model.calls[1]?.messages.at(-1);
    const stored = (await agent.getMessages()).find(({ role }) => role === "tool");
    return { agent, model, result, sent, stored, events: await events };
  }

  it.each([undefined, "press"])("become artifacts, and are sent to the model (queue %s)", async (queue) => {
    const content = [{ type: "text", text: "Here:" }, report] as const;
    const execute = () => toolResult({ content, structured });
    const tool = defineTool({ ...shape, ...options, ...(queue === undefined ? {} : { queue }), execute });
    const { agent, result, sent, stored, events } = await told(tool);
    expect(result).toMatchObject({ status: "completed", errors: [] });
    const [artifact] = await agent.getArtifacts();
    const { artifactId = "" } = artifact ?? {};
    expect(artifact).toMatchObject({
      name: "report.pdf",
      contentType: "application/pdf",
      encoding: "base64",
      size: Buffer.from(data, "base64").length,
    });
    expect((await agent.getArtifact(artifactId))?.content).toBe(data);
    const part = { type: "file", mediaType: "application/pdf", artifactId, name: "report.pdf" };
    const text = `Here:\n[file report.pdf, application/pdf, 3 kB: artifact ${artifactId}]`;
    expect(stored?.content).toEqual([{ type: "text", text }, part]);
    // Only the prompt holds the content.
    const url = `data:application/pdf;base64,${data}`;
    expect(sent?.content).toEqual([
      { type: "text", text },
      { ...part, url },
    ]);
    expect(events.find(({ type }) => type === "tool.completed")).toMatchObject({ structured });
    expect(events.find(({ type }) => type === "tool.completed")).not.toHaveProperty("content");
  });

  it("stay the same object in later prompts, so that they are counted once", async () => {
    const { agent, model } = await told(
      defineTool({ ...shape, ...options, execute: () => toolResult({ content: [report] }) }),
    );
    await agent.executeTurn("and?").result;
    const [first, second] = [model.calls[1], model.calls[2]].map((call) =>
      call?.messages.find(({ role }) => role === "tool"),
    );
    expect(filesOf(first ?? { content: "" })).toHaveLength(1);
    expect(first?.content).toEqual(second?.content);
  });

  it("of a failed `once` tool are a known failure that is not repeated", async () => {
    let runs = 0;
    const tool = defineTool({
      ...shape,
      effect: "once",
      execute: () => {
        runs += 1;
        return toolResult({ content: [{ type: "text", text: "No paper." }, report], structured, isError: true });
      },
    });
    const { agent, sent, events } = await told(tool);
    expect(sent).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/^No paper\./) }, {}] });
    expect(events.find(({ type }) => type === "tool.failed")).toMatchObject({
      outcome: "error",
      error: { code: "tool_error" },
      structured,
    });
    expect([runs, (await agent.getArtifacts()).length]).toEqual([1, 1]);
  });

  it("a told error is not repeated, also with `maxAttempts` above 1", async () => {
    let runs = 0;
    const execute = () => {
      runs += 1;
      return toolResult({ content: [{ type: "text", text: "No paper." }], isError: true });
    };
    const { events } = await told(defineTool({ ...shape, ...options, maxAttempts: 3, execute }));
    expect(runs).toBe(1);
    expect(events.filter(({ type }) => type === "tool.failed")).toHaveLength(1);
  });

  it("of a text are shown to the model, and can be read with read_artifact", async () => {
    const csv = { type: "file", data: Buffer.from("a,b\n1,2\n"), mediaType: "text/csv", name: "t.csv" } as const;
    const tool = defineTool({ ...shape, ...options, execute: () => toolResult({ content: [csv] }) });
    const { agent, model } = await told(tool);
    expect((await agent.getArtifacts())[0]).not.toHaveProperty("encoding");
    expect(model.calls[1]?.tools?.map(({ name }) => name)).toEqual(["report", "read_artifact"]);
    const [part] = filesOf(model.calls[1]?.messages.at(-1) ?? { content: "" });
    expect(part?.url).toBe(`data:text/csv;base64,${Buffer.from("a,b\n1,2\n").toString("base64")}`);
  });

  it("that are too large for a prompt are only named", async () => {
    const large = { ...report, data: Buffer.alloc(10_000_001, 1) } as const;
    const { sent } = await told(defineTool({ ...shape, ...options, execute: () => toolResult({ content: [large] }) }));
    expect(filesOf(sent ?? { content: "" })).toEqual([
      { type: "file", mediaType: "application/pdf", name: "report.pdf", artifactId: expect.any(String) },
    ]);
  });

  it("may be artifacts that the tool has saved, as bytes", async () => {
    const bytes = Buffer.from(data, "base64");
    const tool = defineTool({
      ...shape,
      ...options,
      execute: async (_args, run) => {
        const saving = run.saveArtifact({ name: "r.pdf", contentType: "application/pdf", content: bytes });
        bytes.fill(0);
        const { artifactId } = await saving;
        return toolResult({ content: [{ type: "file", mediaType: "application/pdf", artifactId }] });
      },
    });
    const { sent } = await told(tool);
    expect(filesOf(sent ?? { content: "" })[0]?.url).toBe(`data:application/pdf;base64,${data}`);
  });

  it("are given by clients in answers to their tools", async () => {
    const model = scriptedModel([calling("scan"), "the end"]);
    const scan = clientTool({ name: "scan", description: "Scans a page.", parameters: z.object({}) });
    const runtime = await stage().open({ agents: [defineAgent({ name: "clerk", model, tools: [scan, askUser()] })] });
    const agent = await runtime.agent("clerk", { agentId: "c" });
    await agent.start();
    const turn = agent.executeTurn("go");
    const events = eventsOfTurn(turn);
    await turn.settled;
    const [request] = await agent.requests();
    const result = { content: [{ type: "text", text: "One page." }, report], structuredContent: structured };
    await agent.decide(request?.requestId ?? "", { verdict: "answered", result });
    expect((await turn.result).status).toBe("completed");
    const sent = model.calls[1]?.messages.at(-1);
    expect(filesOf(sent ?? { content: "" })[0]?.url).toBe(`data:application/pdf;base64,${data}`);
    expect((await agent.getArtifacts()).map(({ name }) => name)).toEqual(["report.pdf"]);
    expect((await events).find(({ type }) => type === "tool.completed")).toMatchObject({ structured });
  });

  it("too many of a client are refused before anything is stored", async () => {
    const model = scriptedModel([calling("scan"), "the end"]);
    const scan = clientTool({ name: "scan", description: "Scans a page.", parameters: z.object({}) });
    const runtime = await stage().open({ agents: [defineAgent({ name: "clerk", model, tools: [scan] })] });
    const agent = await runtime.agent("clerk", { agentId: "c" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await turn.settled;
    const [request] = await agent.requests();
    const result = { content: [{ ...report, data: "A".repeat(20_000_004) }] };
    const deciding = agent.decide(request?.requestId ?? "", { verdict: "answered", result });
    await expect(deciding).rejects.toThrow(/have 20000004 characters; at most 20000000 are allowed/);
    await agent.decide(request?.requestId ?? "", { verdict: "answered", result: "none" });
    expect((await turn.result).status).toBe("completed");
  });
});

describeRuntimes("files of users", (stage) => {
  async function open(replies: readonly string[] = ["Two pages."]) {
    const model = scriptedModel([...replies]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "reader", model })] });
    const agent = await runtime.agent("reader", { agentId: "r" });
    await agent.start();
    return { agent, model };
  }

  it("reach the model, in their stored form", async () => {
    const { agent, model } = await open();
    const url = `data:Application/PDF;base64,${data.slice(0, 40)}\n${data.slice(40)}`;
    const file = { type: "file", mediaType: "Application/PDF; a=b", url, name: "a.pdf" } as const;
    const pixel = "data:image/gif;base64,R0lGODlhAQABAAAAACw=";
    const input = [
      { type: "text", text: "How long?" },
      file,
      { type: "file", mediaType: "image/gif", url: pixel },
    ] as const;
    expect((await agent.executeTurn(input).result).status).toBe("completed");
    expect(model.calls[0]?.messages.at(-1)?.content).toEqual([
      { type: "text", text: "How long?" },
      { type: "file", mediaType: "application/pdf", url: `data:application/pdf;base64,${data}`, name: "a.pdf" },
      { type: "image", url: pixel },
    ]);
  });

  it.each<[string, object, RegExp]>([
    [
      "an invalid type",
      { mediaType: "pdf", url: `data:application/pdf;base64,${data}` },
      /part 0: invalid mediaType "pdf"/,
    ],
    ["no content", { mediaType: "application/pdf" }, /part 0: a file needs either a url .* or the artifactId/],
    [
      "two contents",
      { mediaType: "application/pdf", url: "https://a/b", artifactId: "c" },
      /part 0: a file needs either/,
    ],
    ["an address without TLS", { mediaType: "application/pdf", url: "http://a/b" }, /invalid file URL "http:\/\/a\/b"/],
    ["a local path", { mediaType: "application/pdf", url: "file:///etc/passwd" }, /invalid file URL/],
    ["text that is not base64", { mediaType: "text/plain", url: "data:text/plain,a" }, /the data: URL must be base64/],
    ["broken base64", { mediaType: "text/plain", url: "data:text/plain;base64,<>" }, /the data: URL must be base64/],
    ["an empty name", { mediaType: "text/plain", url: "https://a/b", name: "" }, /the name of a file must have 1 to/],
    ["a number as its type", { mediaType: 7, url: "https://a/b" }, /mediaType/],
  ])("are refused with %s", async (_what, part, message) => {
    const { agent, model } = await open();
    const turn = async () => await agent.executeTurn([{ type: "file", ...part }] as never).result;
    await expect(turn).rejects.toThrow(message);
    expect(model.calls).toEqual([]);
  });

  it.each(["", "a b", "line\nbreak", "\u202Egone", "x".repeat(256)])(
    "are refused with the artifactId %j",
    async (artifactId) => {
      const { agent, model } = await open();
      const part = { type: "file", mediaType: "application/pdf", artifactId } as const;
      await expect(async () => await agent.executeTurn([part]).result).rejects.toThrow(
        /part 0: the artifactId of a file must have 1 to 255 visible ASCII characters/,
      );
      expect(model.calls).toEqual([]);
    },
  );

  it("may be artifacts of the agent, and never of another agent", async () => {
    const save = defineTool({ ...shape, ...options, execute: () => toolResult({ content: [report] }) });
    const model = scriptedModel([calling("report"), "saved", "Two pages."]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "clerk", model, tools: [save] })] });
    const opened = async (agentId: string, ownerId: string) => {
      const agent = await runtime.agent("clerk", { agentId, ownerId });
      await agent.start();
      return agent;
    };
    const agent = await opened("c", "ann");
    await agent.executeTurn("go").result;
    const [artifact] = await agent.getArtifacts();
    const part = { type: "file", mediaType: "application/pdf", artifactId: artifact?.artifactId ?? "" } as const;
    for (const ownerId of ["ann", "bob"]) {
      const other = await opened(`of-${ownerId}`, ownerId);
      await expect(async () => await other.executeTurn([part]).result).rejects.toThrow(
        /agent "of-(ann|bob)" has no artifact "[^"]+"; use an artifactId of agent\.getArtifacts\(\)/,
      );
      expect(await other.getMessages()).toEqual([]);
    }
    expect((await agent.executeTurn([part], { key: "k" }).result).status).toBe("completed");
    expect(model.calls[2]?.messages.at(-1)?.content).toEqual([{ ...part, url: `data:application/pdf;base64,${data}` }]);
    // A turn that the agent has is returned also after its artifacts are gone.
    await agent.clear();
    const again = agent.executeTurn([part], { key: "k" });
    expect([(await again.result).status, await again.isReplayed]).toEqual(["completed", true]);
    await expect(async () => await agent.executeTurn([part], { key: "new" }).result).rejects.toThrow("has no artifact");
  });

  it("of old messages are only named once the files of a prompt have 50 MB", async () => {
    const large = { ...report, data: Buffer.alloc(9_000_000, 1) } as const;
    const save = defineTool({ ...shape, ...options, execute: () => toolResult({ content: [large, large] }) });
    const model = scriptedModel([calling("report"), calling("report"), calling("report"), "the end"]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "clerk", model, tools: [save] })] });
    const agent = await runtime.agent("clerk", { agentId: "c" });
    await agent.start();
    expect((await agent.executeTurn("go").result).status).toBe("completed");
    const shown = model.calls.map(({ messages }) =>
      messages.filter(({ role }) => role === "tool").map((message) => filesOf(message).filter(({ url }) => url).length),
    );
    expect(shown).toEqual([[], [2], [2, 2], [0, 2, 2]]);
  });
});
