// The main flows with the official client, over both bindings.
import { Role, type StreamResponse, TaskState } from "@a2a-js/sdk";
import { TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError } from "@a2a-js/sdk/errors";
import { agentIdOfName } from "troupe/server";
import { describe, expect, it } from "vitest";
import { EXTENSION } from "../../../src/server/a2a/read-message.ts";
import { answerIn, bindings, clientOf, fetchOf, saying, scanned, sent, servedDesk } from "./a2a-served.ts";

/** A stream in short: the states of tasks and status updates, the text of pieces. */
function wordOf({ payload }: StreamResponse): string {
  switch (payload?.$case) {
    case "task":
      return `task ${TaskState[payload.value.status?.state ?? 0]}`;
    case "statusUpdate":
      return `status ${TaskState[payload.value.status?.state ?? 0]}`;
    case "artifactUpdate": {
      const { artifact, append, lastChunk } = payload.value;
      const content = artifact?.parts[0]?.content;
      const text = content?.$case === "text" ? content.value : (content?.$case ?? "nothing");
      return `${artifact?.name} ${append ? "+" : ""}${text}${lastChunk ? " end" : ""}`;
    }
    default:
      return "message";
  }
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** A part of the bytes of a file. */
function raw(mediaType: string, filename = "") {
  return { content: { $case: "raw" as const, value: scanned }, metadata: undefined, filename, mediaType };
}

const ann = { tenant: "default", ownerId: "ann" };

describe.each(bindings)("the official client over %s", (binding) => {
  const opened = async () => {
    const served = await servedDesk();
    return { ...served, client: await clientOf(fetchOf(served.server), { binding }) };
  };

  it("continues a context whose agent was never started, as if its creator had crashed", async () => {
    const { runtime, client } = await opened();
    const agentId = agentIdOfName({ ...ann, definition: "desk" }, "trip");
    await runtime.agent("desk", { agentId, ownerId: "ann", sessionId: "trip" });
    expect(answerIn(await sent(client, saying("hello", { contextId: "trip" })))).toBe("1: hello");
  });

  it("sends a text and continues its context", async () => {
    const { client } = await opened();
    const one = await sent(client, saying("hello", { messageId: "m-1" }));
    expect([one.status?.state, answerIn(one)]).toEqual([TaskState.TASK_STATE_COMPLETED, "1: hello"]);
    const { id: taskId, contextId } = one;
    const two = await sent(client, saying("again", { contextId, messageId: "m-2" }));
    expect([answerIn(two), two.contextId, two.id === taskId]).toEqual(["2: again", contextId, false]);
    const read = await client.getTask({ tenant: "", id: two.id });
    expect(read).toEqual(two);
    expect(read.history.map(({ role, messageId, parts }) => [role, messageId, parts[0]?.content?.value])).toEqual([
      [Role.ROLE_USER, "m-2", "again"],
      [Role.ROLE_AGENT, `${two.id}.answer`, "2: again"],
    ]);
    const short = await client.getTask({ tenant: "", id: two.id, historyLength: 1 });
    expect(short.history).toEqual(read.history.slice(1));
    expect((await client.getTask({ tenant: "", id: two.id, historyLength: 0 })).history).toEqual([]);
    const named = await sent(client, saying("hello", { contextId: "holiday" }));
    expect([named.contextId, answerIn(named)]).toEqual(["holiday", "1: hello"]);
  });

  it("answers a question by its task", async () => {
    const { client } = await opened();
    const asked = await sent(client, saying("ask"));
    expect(asked.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    const [part] = asked.status?.message?.parts ?? [];
    expect([part?.content?.value, part?.metadata?.["kind"]]).toEqual(["your name?", "question"]);
    const answered = await sent(client, saying("Ann", { taskId: asked.id, messageId: "answer-1" }));
    expect([answered.id, answered.status?.state]).toEqual([asked.id, TaskState.TASK_STATE_COMPLETED]);
    expect(answerIn(answered)).toContain("Ann");
    expect(answered.history.map(({ parts }) => parts[0]?.content?.value)).toEqual([
      "ask",
      "your name?",
      "Ann",
      answerIn(answered),
    ]);
    // Sent again after a lost answer, it finds the task; other content under its id is refused.
    expect(await sent(client, saying("Ann", { taskId: asked.id, messageId: "answer-1" }))).toEqual(answered);
    await expect(sent(client, saying("Bob", { taskId: asked.id, messageId: "answer-1" }))).rejects.toThrow(
      "another body",
    );
    await expect(sent(client, saying("more", { taskId: asked.id }))).rejects.toThrow(UnsupportedOperationError);
    await expect(sent(client, saying("more", { taskId: asked.id, contextId: "other" }))).rejects.toThrow("contextId");
  });

  it("approves a call by the extension, for the arguments that were shown", async () => {
    const { client, removed } = await opened();
    const asked = await sent(client, saying("remove"));
    expect(asked.status?.state).toBe(TaskState.TASK_STATE_AUTH_REQUIRED);
    const { requestId, argumentsHash, arguments: args } = asked.status?.message?.parts[0]?.metadata ?? {};
    expect([args, removed]).toEqual([{ path: "a.txt" }, []]);
    const deciding = (decision: object) => {
      const request = saying("", { taskId: asked.id });
      const part = {
        content: { $case: "data", value: decision },
        metadata: undefined,
        filename: "",
        mediaType: "",
      } as const;
      const message = request.message && { ...request.message, extensions: [EXTENSION], parts: [part] };
      return sent(client, { ...request, message });
    };
    await expect(deciding({ requestId, verdict: "approved" })).rejects.toThrow("argumentsHash");
    await expect(deciding({ requestId, verdict: "approved", argumentsHash: "other" })).rejects.toThrow(
      UnsupportedOperationError,
    );
    expect(removed).toEqual([]);
    const done = await deciding({ requestId, verdict: "approved", argumentsHash });
    expect([done.status?.state, removed]).toEqual([TaskState.TASK_STATE_COMPLETED, ["a.txt"]]);
  });

  it("cancels a waiting task and no ended one", async () => {
    const { client } = await opened();
    const asked = await sent(client, saying("remove"));
    const canceled = await client.cancelTask({ tenant: "", id: asked.id, metadata: undefined });
    expect(canceled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    await expect(client.cancelTask({ tenant: "", id: asked.id, metadata: undefined })).rejects.toThrow(
      TaskNotCancelableError,
    );
    await expect(client.cancelTask({ tenant: "", id: "none", metadata: undefined })).rejects.toThrow(TaskNotFoundError);
  });

  it("streams the task, the pieces of the answer, and the end", async () => {
    const { client } = await opened();
    const words = (await all(client.sendMessageStream(saying("hello")))).map(wordOf);
    expect(words[0]).toMatch(/^task TASK_STATE_(WORKING|SUBMITTED|COMPLETED)$/);
    expect(words.at(-1)).toMatch(/TASK_STATE_COMPLETED$/);
    const asked = (await all(client.sendMessageStream(saying("ask")))).map(wordOf);
    expect(asked.at(-1)).toMatch(/TASK_STATE_INPUT_REQUIRED$/);
  });

  it("follows a waiting task to its end and no ended one", async () => {
    const { client } = await opened();
    const { id, contextId } = await sent(client, saying("ask"));
    const following = client.resubscribeTask({ tenant: "", id });
    const first = await following.next();
    expect(first.done === true || wordOf(first.value)).toBe("task TASK_STATE_INPUT_REQUIRED");
    const rest = all(following);
    await sent(client, saying("Ann", { contextId }));
    const words = (await rest).map(wordOf);
    expect(words.filter((word) => word.startsWith("status")).at(-1)).toBe("status TASK_STATE_COMPLETED");
    const texts = words.filter((word) => word.startsWith("answer")).join("|");
    expect(texts).toContain("Ann");
    expect(words.findIndex((word) => word.endsWith(" end"))).toBe(words.length - 2);
    await expect(all(client.resubscribeTask({ tenant: "", id }))).rejects.toThrow(UnsupportedOperationError);
  });

  it("receives saved files as artifacts", async () => {
    const { client } = await opened();
    const task = await sent(client, saying("save"));
    expect(task.artifacts.map(({ name, parts }) => [name, parts[0]?.content?.$case, parts[0]?.mediaType])).toEqual([
      ["table.json", "data", "application/json"],
      ["note.md", "raw", "text/markdown"],
      ["answer", "text", ""],
    ]);
    const [table, note] = task.artifacts.map(({ parts }) => parts[0]?.content?.value as unknown);
    expect([table, Buffer.from(note as Buffer).toString()]).toEqual([{ rows: 2 }, "# Note"]);
  });

  it("receives a file of bytes as its bytes", async () => {
    const { client } = await opened();
    const task = await sent(client, saying("scan"));
    const [part] = task.artifacts[0]?.parts ?? [];
    expect([part?.filename, part?.mediaType, part?.content?.$case]).toEqual(["scan.pdf", "application/pdf", "raw"]);
    expect(Buffer.from(part?.content?.value as Buffer)).toEqual(scanned);
    const streamed = await all(client.sendMessageStream(saying("scan")));
    const updates = streamed.flatMap(({ payload }) => (payload?.$case === "artifactUpdate" ? [payload.value] : []));
    const saved = updates.find(({ artifact }) => artifact?.name === "scan.pdf")?.artifact?.parts[0]?.content?.value;
    expect(Buffer.from(saved as Buffer)).toEqual(scanned);
  });

  it("sends files and images, which are parts of the user's message", async () => {
    const { client, runtime } = await opened();
    const asked = saying("look");
    const files = [
      raw("application/pdf", "scan.pdf"),
      raw("image/gif"),
      raw("image/svg+xml"),
      { ...raw("video/mp4"), content: { $case: "url" as const, value: "https://a.example/b.mp4" } },
    ];
    const message = asked.message && { ...asked.message, parts: [...asked.message.parts, ...files] };
    await sent(client, { ...asked, message });
    const [agent] = await runtime.list();
    const [user] = await (await runtime.find(agent?.agentId ?? "")).getMessages();
    const data = scanned.toString("base64");
    expect(user?.content).toEqual([
      { type: "text", text: "look" },
      { type: "file", mediaType: "application/pdf", url: `data:application/pdf;base64,${data}`, name: "scan.pdf" },
      { type: "image", url: `data:image/gif;base64,${data}` },
      { type: "file", mediaType: "image/svg+xml", url: `data:image/svg+xml;base64,${data}` },
      { type: "file", mediaType: "video/mp4", url: "https://a.example/b.mp4" },
    ]);
  });

  it("lists tasks in pages, newest status first", async () => {
    const { client } = await opened();
    const list = (more: object) =>
      client.listTasks({
        tenant: "",
        contextId: "",
        status: TaskState.TASK_STATE_UNSPECIFIED,
        pageToken: "",
        statusTimestampAfter: undefined,
        ...more,
      });
    const ids: string[] = [];
    for (const text of ["one", "ask", "three"]) ids.unshift((await sent(client, saying(text))).id);
    const whole = await list({});
    expect([whole.tasks.map(({ id }) => id), whole.totalSize, whole.nextPageToken]).toEqual([ids, 3, ""]);
    expect(whole.tasks.every(({ artifacts, history }) => artifacts.length === 0 && history.length === 0)).toBe(true);
    const first = await list({ pageSize: 2 });
    const second = await list({ pageSize: 2, pageToken: first.nextPageToken });
    expect([...first.tasks, ...second.tasks].map(({ id }) => id)).toEqual(ids);
    const waiting = await list({ status: TaskState.TASK_STATE_INPUT_REQUIRED, historyLength: 1 });
    expect(waiting.tasks.map(({ id, history }) => [id, history.length])).toEqual([[ids[1], 1]]);
    const done = await list({ status: TaskState.TASK_STATE_COMPLETED, includeArtifacts: true });
    expect(done.tasks.map(answerIn)).toEqual(["1: three", "1: one"]);
    const { contextId, status } = first.tasks[0] ?? {};
    expect((await list({ contextId })).tasks.map(({ id }) => id)).toEqual(ids.slice(0, 1));
    expect((await list({ contextId: "none" })).totalSize).toBe(0);
    expect((await list({ statusTimestampAfter: status?.timestamp })).tasks.map(({ id }) => id)).toContain(ids[0]);
    expect((await list({ statusTimestampAfter: "2999-01-01T00:00:00.000Z" })).tasks).toEqual([]);
  });

  it("receives the task immediately if it does not wait", async () => {
    const { client, runtime } = await opened();
    const begun = await sent(client, saying("hello", { returnImmediately: true }));
    const agent = await runtime.find(agentIdOfName({ ...ann, definition: "desk" }, begun.contextId));
    await agent.turn(`${agent.agentId}#1`).result;
    expect(answerIn(await client.getTask({ tenant: "", id: begun.id }))).toBe("1: hello");
  });

  it("reads the extended card, which contains the tools", async () => {
    const { client } = await opened();
    const card = await client.getAgentCard();
    expect(card.skills.map(({ id }) => id)).toEqual(["desk", "tool:remove", "tool:save", "tool:scan", "tool:ask_user"]);
  });
});
