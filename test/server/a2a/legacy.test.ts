// Clients of version 0.3: the official client with its compatibility layer, given a card that has only the fields of 0.3.
import { TaskState } from "@a2a-js/sdk";
import { type Client, ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from "@a2a-js/sdk/client";
import { describe, expect, it } from "vitest";
import { answerIn, fetchOf, saying, sent, servedDesk } from "./a2a-served.ts";

async function opened() {
  const served = await servedDesk();
  const fetchImpl = fetchOf(served.server);
  const legacyCompat = { enabled: true };
  const cardResolver = new DefaultAgentCardResolver({ fetchImpl, legacyCompat });
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl, legacyCompat })],
    cardResolver,
  });
  const card = (await (await served.ask("/.well-known/agent-card.json")).json()) as Record<string, unknown>;
  const { supportedInterfaces: _, securitySchemes: _schemes, securityRequirements: _requirements, ...old } = card;
  const client: Client = await factory.createFromAgentCard(cardResolver.normalizeAgentCard(old));
  return { ...served, client };
}

describe("a client of 0.3", () => {
  it("speaks version 0.3", async () => {
    const { client } = await opened();
    expect(client.protocolVersion).toBe("0.3");
  });

  it("sends, continues, answers and reads", async () => {
    const { client } = await opened();
    const one = await sent(client, saying("hello"));
    expect([one.status?.state, answerIn(one)]).toEqual([TaskState.TASK_STATE_COMPLETED, "1: hello"]);
    const asked = await sent(client, saying("ask", { contextId: one.contextId }));
    expect(asked.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    const answered = await sent(client, saying("Ann", { taskId: asked.id, contextId: one.contextId }));
    expect(answerIn(answered)).toContain("Ann");
    expect(answerIn(await client.getTask({ tenant: "", id: asked.id }))).toBe(answerIn(answered));
  });

  it("streams, follows and cancels", async () => {
    const { client } = await opened();
    const words: (string | undefined)[] = [];
    for await (const { payload } of client.sendMessageStream(saying("remove"))) words.push(payload?.$case);
    expect(words[0]).toBe("task");
    const { contextId, id } = await sent(client, saying("remove", { contextId: "other" }));
    const following = client.resubscribeTask({ tenant: "", id });
    expect((await following.next()).value).toMatchObject({ payload: { $case: "task", value: { id, contextId } } });
    const rest = (async () => {
      const states: (TaskState | undefined)[] = [];
      for await (const { payload } of following) {
        if (payload?.$case === "statusUpdate") states.push(payload.value.status?.state);
      }
      return states;
    })();
    const canceled = await client.cancelTask({ tenant: "", id, metadata: undefined });
    expect(canceled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    expect((await rest).at(-1)).toBe(TaskState.TASK_STATE_CANCELED);
    await expect(client.cancelTask({ tenant: "", id, metadata: undefined })).rejects.toThrow("ended");
    await expect(client.getTask({ tenant: "", id: "none" })).rejects.toThrow("no such task");
  });

  it.each([
    [{ message: 5 }],
    [{ message: { kind: "message", messageId: 5, role: "user", parts: [] } }],
    [{ message: { kind: "message", messageId: "m", role: "king", parts: [] } }],
    [{ message: { kind: "message", messageId: "m", role: "user", parts: [null] } }],
    [{ message: { kind: "message", messageId: "m", role: "user", parts: [{ kind: "file", file: 5 }] } }],
    [{ message: { kind: "message", messageId: "m", role: "user", parts: [] } }],
    [{}],
  ])("receives an error for invalid %j", async (params) => {
    const { ask } = await opened();
    const body = { jsonrpc: "2.0", id: 1, method: "message/send", params };
    const answer = await (await ask("/a2a/desk", { method: "POST", body })).json();
    expect(answer).toMatchObject({ id: 1, error: { code: -32602 } });
  });
});
