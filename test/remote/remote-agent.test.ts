import { createAgentLoop, textOf } from "troupe";
import { expect, test } from "vitest";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { requestOf } from "../support/deciding.ts";
import { scanned } from "../server/a2a/a2a-served.ts";
import { callerAgent, deskCaller, openRemoteServer } from "./remote-server.ts";

test("a task's text arrives as progress while the task runs, and its answer is the result", async () => {
  const desk = await openRemoteServer();
  const { agent, runtime } = await deskCaller(desk, { says: ["hello"] });
  const updates: unknown[] = [];
  runtime.subscribe((event) => {
    if (event.type === "tool.progress") updates.push(event.update);
  });
  const turn = agent.executeTurn("go");
  expect(await turn.result).toMatchObject({ status: "completed", toolCalls: 1 });
  expect(await toolTextsOf(agent)).toEqual(["1: hello"]);
  const [taskId] = await desk.tasks();
  const update = { remote: "desk", taskId: taskId?.replace("#", ".") };
  expect(updates).toContainEqual({ ...update, text: "1: hello", append: false });
  expect(updates.at(-1)).toEqual({ ...update, state: "TASK_STATE_COMPLETED" });
});

test("calls of one agent share a context, and calls of different agents do not", async () => {
  const desk = await openRemoteServer();
  const { agent } = await deskCaller(desk, { says: ["one", "two"] });
  await agent.executeTurn("go").result;
  expect(await toolTextsOf(agent)).toEqual(["1: one", "2: two"]);
  const { agent: other } = await deskCaller(desk, { says: ["one"], agentId: "other" });
  await other.executeTurn("go").result;
  expect(await toolTextsOf(other)).toEqual(["1: one"]);
});

test("a question of the task is a question of the turn, and the answer goes to the same task", async () => {
  const desk = await openRemoteServer();
  const { agent, runtime, stores } = await deskCaller(desk, { says: ["ask"] });
  const turn = agent.executeTurn("go");
  const request = await requestOf(turn);
  expect(request).toMatchObject({ kind: "question", name: "desk" });
  expect(request.prompt).toContain("your name?");
  await runtime.decide(request.requestId, { verdict: "answered", result: "ann" });
  expect((await turn.result).status).toBe("completed");
  expect(await toolTextsOf(agent)).toEqual(["so: ann"]);
  expect(await entriesOfType(stores, "caller", "request.opened")).toHaveLength(1);
  expect(await desk.tasks()).toHaveLength(1);
});

test.each(["approved", "rejected"] as const)(
  "an approval of the task that is %s here is also decided there",
  async (verdict) => {
    const desk = await openRemoteServer();
    const { agent, runtime } = await deskCaller(desk, { says: ["remove"] });
    const turn = agent.executeTurn("go");
    const request = await requestOf(turn);
    expect(request).toMatchObject({ kind: "approval", arguments: { name: "remove", arguments: { path: "a.txt" } } });
    const decide =
      verdict === "approved" ? { verdict, argumentsHash: request.argumentsHash } : { verdict, reason: "not that" };
    await runtime.decide(request.requestId, decide);
    expect((await turn.result).status).toBe("completed");
    expect(desk.removed).toEqual(verdict === "approved" ? ["a.txt"] : []);
    const [text] = await toolTextsOf(agent);
    expect(text).toContain(verdict === "approved" ? "removed a.txt" : "not that");
  },
);

test("files of the task become artifacts of the call, and its usage counts on the turn", async () => {
  const desk = await openRemoteServer();
  const { agent } = await deskCaller(desk, { says: ["save"] });
  const { spent } = await agent.executeTurn("go").result;
  const saved = await agent.getArtifacts();
  expect(saved.map(({ name, contentType }) => [name, contentType])).toEqual([["note.md", "text/markdown"]]);
  expect((await agent.getArtifact(saved[0]?.artifactId ?? ""))?.content).toBe("# Note");
  const [text] = await toolTextsOf(agent);
  expect(text).toContain('{"rows":2}');
  expect(text).toContain(saved[0]?.artifactId);
  expect(text).toContain("so: saved");
  expect(spent.byModel["a2a:desk"]).toMatchObject({ calls: 1 });
  expect(spent.byModel["a2a:desk"]?.inputTokens).toBeGreaterThan(0);
});

test("a file of bytes of the task arrives as its bytes, and the model is sent it", async () => {
  const desk = await openRemoteServer();
  const { agent } = await deskCaller(desk, { says: ["scan"] });
  expect((await agent.executeTurn("go").result).status).toBe("completed");
  const [saved] = await agent.getArtifacts();
  expect(saved).toMatchObject({
    name: "scan.pdf",
    contentType: "application/pdf",
    encoding: "base64",
    size: scanned.length,
  });
  const artifact = await agent.getArtifact(saved?.artifactId ?? "");
  expect(Buffer.from(artifact?.content ?? "", "base64")).toEqual(scanned);
  const result = (await agent.getMessages()).find(({ role }) => role === "tool");
  expect(result?.content).toEqual([
    {
      type: "text",
      text: expect.stringContaining(`[file scan.pdf, application/pdf: artifact ${saved?.artifactId}]`) as unknown,
    },
    { type: "file", mediaType: "application/pdf", artifactId: saved?.artifactId, name: "scan.pdf" },
  ]);
});

test("concurrent calls of one answer have separate contexts: none answers another's question", async () => {
  const desk = await openRemoteServer();
  const { agent, runtime } = await deskCaller(desk, { says: [["ask", "hello"], "again"] });
  const turn = agent.executeTurn("go");
  const { requestId } = await requestOf(turn);
  await runtime.decide(requestId, { verdict: "answered", result: "ann" });
  expect((await turn.result).status).toBe("completed");
  const texts = await toolTextsOf(agent);
  expect([texts.slice(0, 2).toSorted(), texts.slice(2)]).toEqual([["1: hello", "so: ann"], ["2: again"]]);
});

test.each([
  ["JSONRPC", "1.0"],
  ["HTTP+JSON", "1.0"],
  ["JSONRPC", "0.3"],
])("an agent that supports only %s %s can be called", async (protocolBinding, protocolVersion) => {
  const desk = await openRemoteServer();
  const told = (await (await fetch(`${desk.url}/.well-known/agent-card.json`)).json()) as {
    readonly supportedInterfaces: readonly { readonly protocolBinding: string; readonly protocolVersion: string }[];
  };
  const supportedInterfaces = told.supportedInterfaces.filter(
    (one) => one.protocolBinding === protocolBinding && one.protocolVersion === protocolVersion,
  );
  expect(supportedInterfaces).toHaveLength(1);
  const { agent, runtime } = await deskCaller(desk, { says: ["hello", "ask"], card: { ...told, supportedInterfaces } });
  const turn = agent.executeTurn("go");
  const { requestId } = await requestOf(turn);
  await runtime.decide(requestId, { verdict: "answered", result: "ann" });
  expect((await turn.result).status).toBe("completed");
  expect(await toolTextsOf(agent)).toEqual(["1: hello", "so: ann"]);
});

test("turns that are not stored have separate tasks, in one context while the agent's id is the same", async () => {
  const desk = await openRemoteServer();
  const loop = createAgentLoop(callerAgent({ url: desk.url, says: ["hello"] }));
  const texts: string[] = [];
  for (const prompt of ["one", "two"]) {
    const { messages } = await loop.executeTurn([{ role: "user", content: prompt }], { agentId: "caller" }).result;
    for (const { role, content } of messages) if (role === "tool") texts.push(textOf(content));
  }
  expect(texts).toEqual(["1: hello", "2: hello"]);
});
