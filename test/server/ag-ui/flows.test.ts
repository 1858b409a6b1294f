// The main flows with the official client, which checks the order of all events and throws at a wrong one.
import { expect, test, vi } from "vitest";
import { deskServed, showTool, timedDesk } from "./ag-ui-served.ts";
import { resumeWith, Thread } from "./official-client.ts";

/** The client also logs each refusal to the console. */
function expectRefusals(): void {
  vi.spyOn(console, "error").mockReturnValue();
}

test("a client that adds its decision as the result of the call, as CopilotKit does, ends with the stored result", async () => {
  const { server } = await deskServed();
  const thread = new Thread(server);
  await thread.say("remove");
  const [interrupt] = thread.client.pendingInterrupts;
  const content = '{"approved":true}';
  thread.client.addMessage({ id: "own", role: "tool", toolCallId: interrupt?.toolCallId ?? "", content });
  await thread.run(resumeWith(thread, { approved: true }));
  expect(thread.shown()).toEqual([
    "user: remove",
    "assistant: [remove]",
    "tool: removed a.txt",
    "assistant: so: removed a.txt",
  ]);
});

test("a streamed text, and a follow-up in the same thread", async () => {
  const { server } = await deskServed();
  const thread = new Thread(server);
  await thread.say("hello");
  expect(thread.types()).toEqual([
    "RUN_STARTED",
    "STEP_STARTED",
    "TEXT_MESSAGE_START",
    "TEXT_MESSAGE_CONTENT",
    "TEXT_MESSAGE_CONTENT",
    "TEXT_MESSAGE_END",
    "STEP_FINISHED",
    "RUN_FINISHED",
  ]);
  expect(thread.events[0]).toMatchObject({ threadId: "thread-1", protocolVersion: "1.0" });
  expect(thread.events.at(-1)).toMatchObject({
    outcome: { type: "success" },
    usage: [{ model: "scripted", inputTokens: expect.any(Number), totalTokens: expect.any(Number) }],
  });
  await thread.say("again");
  expect(thread.shown()).toEqual(["user: hello", "assistant: 1: hello", "user: again", "assistant: 2: again"]);
});

test("reasoning comes before its text", async () => {
  const { server } = await deskServed();
  const thread = await new Thread(server).say("think");
  expect(thread.shown()).toEqual(["user: think", "reasoning: Let me see.", "assistant: It is so."]);
});

test("an approval interrupts the run; after it, the call runs and its result comes with the resumed run", async () => {
  const { server, removed } = await deskServed();
  const thread = await new Thread(server).say("remove");
  expect(thread.outcome).toEqual({ interrupt: true });
  const [interrupt] = thread.client.pendingInterrupts;
  expect(interrupt).toMatchObject({
    reason: "tool_call",
    message: expect.stringContaining("remove"),
    toolCallId: expect.stringContaining("#1:1:0"),
    responseSchema: { required: ["approved"] },
    metadata: { toolCallName: "remove", arguments: { path: "a.txt" }, argumentsHash: expect.any(String) },
  });
  expect(thread.shown()).toEqual(["user: remove", "assistant: [remove]"]);
  await thread.run(resumeWith(thread, { approved: true }));
  expect(removed).toEqual(["a.txt"]);
  expect(thread.types().filter((type) => type.startsWith("TOOL_CALL"))).toEqual(["TOOL_CALL_RESULT"]);
  expect(thread.events).toContainEqual(
    expect.objectContaining({
      type: "CUSTOM",
      name: "troupe.tool.progress",
      value: expect.objectContaining({ update: { removing: "a.txt" } }),
    }),
  );
  expect(thread.shown()).toEqual([
    "user: remove",
    "assistant: [remove]",
    "tool: removed a.txt",
    "assistant: so: removed a.txt",
  ]);
});

test.each([
  [
    "rejected with a reason",
    { status: "resolved", payload: { approved: false, reason: "not today" } },
    [],
    "not today",
  ],
  ["cancelled", { status: "cancelled" }, [], "cancelled"],
  [
    "edited",
    { status: "resolved", payload: { approved: true, editedArgs: { path: "c.txt" } } },
    ["c.txt"],
    "removed c.txt",
  ],
] as const)("an approval that is %s", async (_, answer, runs, told) => {
  const { server, removed } = await deskServed();
  const thread = await new Thread(server).say("remove");
  const [interrupt] = thread.client.pendingInterrupts;
  await thread.run({ resume: [{ interruptId: interrupt?.id ?? "", ...answer }] });
  expect(removed).toEqual(runs);
  expect(thread.shown().at(-1)).toContain(told);
});

test("a question is answered by the payload", async () => {
  const { server } = await deskServed();
  const thread = await new Thread(server).say("ask");
  expect(thread.client.pendingInterrupts).toMatchObject([{ reason: "input_required", message: "your name?" }]);
  await thread.run(resumeWith(thread, "Ann"));
  expect(thread.shown().at(-1)).toBe("assistant: so: Ann");
});

test("a tool of the front end: its call is pending, its result comes as a message, and is shown once", async () => {
  const { server } = await deskServed();
  const thread = await new Thread(server).say("show", { tools: [showTool] });
  const calls = (thread.outcome as { success: string[] }).success;
  expect(calls).toEqual([expect.stringContaining("#1:1:0")]);
  const [toolCallId = ""] = calls;
  thread.client.addMessage({ id: "shown", role: "tool", toolCallId, content: "the map is shown" });
  await thread.run({ tools: [showTool] });
  expect(thread.types()).not.toContain("TOOL_CALL_RESULT");
  expect(thread.shown()).toEqual([
    "user: show",
    "assistant: [show]",
    "tool: the map is shown",
    "assistant: so: the map is shown",
  ]);
});

test("the events of a subagent have its id, and end before its parent's", async () => {
  const { server } = await deskServed();
  const thread = await new Thread(server).say("delegate");
  const tagged = thread.events.filter((event) => "subagentRunId" in event).map(({ type }) => type);
  expect(tagged).toEqual([
    "SUBAGENT_STARTED",
    "STEP_STARTED",
    "TEXT_MESSAGE_START",
    "TEXT_MESSAGE_CONTENT",
    "TEXT_MESSAGE_CONTENT",
    "TEXT_MESSAGE_END",
    "STEP_FINISHED",
    "SUBAGENT_FINISHED",
  ]);
  expect(thread.shown()).toEqual([
    "user: delegate",
    "assistant: [reader]",
    expect.stringMatching(/^tool: .*Read it\./),
    "subagent assistant: Read it.",
    expect.stringMatching(/^assistant: so: /),
  ]);
});

test("a subagent that waits is suspended, and continues in the resumed run", async () => {
  const { server, removed } = await deskServed();
  const thread = await new Thread(server).say("delegate remove");
  const [interrupt] = thread.client.pendingInterrupts;
  const { subagentRunId } = interrupt ?? {};
  expect(thread.events).toContainEqual(
    expect.objectContaining({
      type: "SUBAGENT_FINISHED",
      subagentRunId,
      outcome: { type: "suspended", interruptIds: [interrupt?.id] },
    }),
  );
  expect(thread.shown()).toEqual([
    "user: delegate remove",
    "assistant: [reader]",
    "subagent assistant: I remove it.[remove]",
  ]);
  await thread.run(resumeWith(thread, { approved: true }));
  expect(removed).toEqual(["a.txt"]);
  const lifecycle = thread.events.filter(({ type }) => type.startsWith("SUBAGENT"));
  expect(lifecycle).toMatchObject([
    { type: "SUBAGENT_STARTED", subagentRunId, name: "reader" },
    { type: "SUBAGENT_FINISHED", subagentRunId, outcome: { type: "success" } },
  ]);
  expect(thread.shown().at(-1)).toMatch(/^assistant: so: .*Read it\./);
});

test("resume must answer all open interrupts: otherwise nothing is decided, and the error names the missing ones", async () => {
  const { server, removed, runtime } = await deskServed();
  const thread = await new Thread(server).say("remove two");
  const [one, two] = thread.client.pendingInterrupts;
  // The official client would refuse to send this.
  thread.client.pendingInterrupts = [];
  await thread.run({ resume: [{ interruptId: one?.id ?? "", status: "resolved", payload: { approved: true } }] });
  expect(thread.events).toMatchObject([
    { type: "RUN_STARTED" },
    { type: "RUN_ERROR", code: "interrupts_open", message: expect.stringContaining(two?.id ?? "") },
  ]);
  expect(await runtime.requests({ status: "decided" })).toEqual([]);
  expect(removed).toEqual([]);
});

test("an answer that is repeated by any run is accepted; a different one is refused", async () => {
  expectRefusals();
  const { server, removed } = await deskServed();
  const thread = await new Thread(server).say("remove");
  const approval = { ...resumeWith(thread, { approved: true }), runId: "run-2" };
  await thread.run(approval);
  const after = thread.shown();
  for (const runId of ["run-2", "run-3"]) {
    await thread.run({ ...approval, runId });
    expect([thread.isReplayed, thread.outcome, thread.shown()]).toEqual([true, { success: [] }, after]);
  }
  const rejection = { resume: approval.resume?.map((entry) => ({ ...entry, payload: { approved: false } })) ?? [] };
  await expect(thread.run(rejection)).rejects.toThrow("409");
  expect(removed).toEqual(["a.txt"]);
});

test("an invalid payload decides nothing", async () => {
  expectRefusals();
  const { server, removed, runtime } = await deskServed();
  const thread = await new Thread(server).say("remove");
  for (const payload of [undefined, true, "yes", { approved: "yes" }, { approve: true }]) {
    await expect(thread.run(resumeWith(thread, payload))).rejects.toThrow("400");
  }
  expect(await runtime.requests({ status: "decided" })).toEqual([]);
  expect(removed).toEqual([]);
});

test("a run of a failed turn ends with an error and the history, and the thread can continue", async () => {
  const { server } = await deskServed();
  const thread = await new Thread(server).say("fail");
  expect(thread.events.at(-1)).toMatchObject({ type: "RUN_ERROR", code: expect.any(String) });
  await thread.say("hello");
  // Both messages are in the history, the first of them once.
  expect(thread.shown().at(-1)).toBe("assistant: 2: hello");
});

test("context, images and files reach the model before and in the message; other parts are refused", async () => {
  expectRefusals();
  const { server, runtime } = await deskServed();
  const thread = new Thread(server);
  const picture = { type: "data", value: "AAAA", mimeType: "image/png" } as const;
  thread.client.addMessage({
    id: "1",
    role: "user",
    content: [
      { type: "text", text: "What is this?" },
      { type: "image", source: picture },
    ],
  });
  await thread.run({ context: [{ description: "page", value: "the map" }] });
  const [agent] = await runtime.list();
  const [asked] = await (await runtime.find(agent?.agentId ?? "")).getMessages();
  expect(asked?.content).toEqual([
    { type: "text", text: "The application gave this context:\n  page: the map\n\n" },
    { type: "text", text: "What is this?" },
    { type: "image", url: "data:image/png;base64,AAAA" },
  ]);
  const sound = { type: "data", value: "AAAA", mimeType: "audio/wav" } as const;
  thread.client.addMessage({ id: "2", role: "user", content: [{ type: "audio", source: sound }] });
  await thread.run();
  const messages = await (await runtime.find(agent?.agentId ?? "")).getMessages();
  expect(messages.findLast(({ role }) => role === "user")?.content).toEqual([
    { type: "file", mediaType: "audio/wav", url: "data:audio/wav;base64,AAAA" },
  ]);
  thread.client.addMessage({ id: "3", role: "user", content: [{ type: "audio", source: { ...sound, value: "<>" } }] });
  await expect(thread.run()).rejects.toThrow("400");
});

test("after a failed run the client answers its old interrupts again, together with the next message", async () => {
  const { server } = await deskServed();
  const thread = await new Thread(server).say("remove, then fail");
  await thread.run(resumeWith(thread, { approved: true }));
  expect(thread.events.at(-1)).toMatchObject({ type: "RUN_ERROR" });
  expect(thread.client.pendingInterrupts).toHaveLength(1);
  const resume = thread.client.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "cancelled" as const }));
  await thread.say("hello", { resume, runId: "next" });
  expect(thread.shown().at(-1)).toBe("assistant: 2: hello");
  await thread.run({ resume, runId: "next" });
  expect([thread.isReplayed, thread.outcome]).toEqual([true, { success: [] }]);
  expect(thread.shown().at(-1)).toBe("assistant: 2: hello");
});

test("an expired interrupt is cancelled, and the run continues", async () => {
  const { server, clock } = await timedDesk();
  const thread = await new Thread(server).say("ask in time");
  expect(thread.client.pendingInterrupts).toMatchObject([{ expiresAt: new Date(clock.now() + 1_000).toISOString() }]);
  clock.advance(1_000);
  const cancelled = thread.client.pendingInterrupts.map(({ id }) => ({
    interruptId: id,
    status: "cancelled" as const,
  }));
  await thread.run({ resume: cancelled });
  expect([thread.outcome, thread.client.pendingInterrupts]).toEqual([{ success: [] }, []]);
  expect(thread.shown().at(-1)).toContain("so: ");
});

test("a text before a call is not repeated at the end", async () => {
  const { server } = await deskServed();
  const thread = await new Thread(server).say("talk, then end");
  expect(thread.outcome).toEqual({ success: [] });
  expect(thread.shown()).toEqual([
    "user: talk, then end",
    "assistant: First.[nothing]",
    expect.stringMatching(/^tool: /),
  ]);
  await thread.say("hello");
  expect(thread.shown().at(-1)).toBe("assistant: 2: hello");
});

test("messages of another surface are shown in order, before the new ones", async () => {
  const { server, runtime } = await deskServed();
  const thread = await new Thread(server).say("one");
  const [record] = await runtime.list();
  const agent = await runtime.find(record?.agentId ?? "");
  await agent.executeTurn("two").result;
  await thread.say("three");
  expect(thread.types().slice(0, 2)).toEqual(["RUN_STARTED", "MESSAGES_SNAPSHOT"]);
  const said = ["one", "two", "three"].flatMap((text, index) => [`user: ${text}`, `assistant: ${index + 1}: ${text}`]);
  expect(thread.shown()).toEqual(said);
  await thread.say("four");
  expect(thread.types()).not.toContain("MESSAGES_SNAPSHOT");
});

test("a client that left in the middle of a text gets the whole text in its next run", async () => {
  const { server } = await deskServed();
  const thread = await new Thread(server).say("one");
  const [said, answer] = thread.client.messages;
  thread.client.setMessages([said, { ...answer, content: "1: o" }] as typeof thread.client.messages);
  await thread.say("two");
  expect(thread.shown()).toEqual(["user: one", "assistant: 1: one", "user: two", "assistant: 2: two"]);
});

test("instructions of the application keep their position", async () => {
  const { server } = await deskServed();
  const thread = new Thread(server);
  thread.client.addMessage({ id: "system", role: "system", content: "Be kind." });
  await thread.say("remove");
  await thread.run(resumeWith(thread, { approved: false, reason: "no" }));
  expect(thread.shown().slice(0, 2)).toEqual(["system: Be kind.", "user: remove"]);
});
