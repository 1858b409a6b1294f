// Push notifications, through the official client.
import { TaskState } from "@a2a-js/sdk";
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from "@a2a-js/sdk/client";
import { askUser, defineAgent, defineTool } from "troupe";
import type { LogLine } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { requestOf } from "../served.ts";
import { bindings, clientOf, fetchOf, saying, sent } from "./a2a-served.ts";
import { answer, asking, bearer, configOf, hooked, isEnded, type Item, told } from "./push-served.ts";

describe.each(bindings)("over %s", (binding) => {
  it("configurations are created, read, listed and deleted, and show no secret", async () => {
    const { server, ask, receiver } = await hooked();
    const client = await clientOf(fetchOf(server), { binding });
    expect((await client.getAgentCard()).capabilities?.pushNotifications).toBe(true);
    const { id: taskId } = await asking(client);
    const url = `${receiver.origin}/hook?x=1`;
    const made = await client.createTaskPushNotificationConfig(
      configOf(taskId, url, { id: "b", token: "a token", authentication: bearer }),
    );
    const shown = configOf(taskId, url, { id: "b", authentication: { scheme: "Bearer", credentials: "" } });
    expect(made).toEqual(shown);
    const minted = await client.createTaskPushNotificationConfig(configOf(taskId, url));
    expect(minted.id).toMatch(/^[\da-f-]{36}$/);
    await client.deleteTaskPushNotificationConfig({ tenant: "", taskId, id: minted.id });
    await client.createTaskPushNotificationConfig(configOf(taskId, url, { id: "a" }));
    const get = (id: string) => client.getTaskPushNotificationConfig({ tenant: "", taskId, id });
    expect(await get("b")).toEqual(shown);
    await expect(get(minted.id)).rejects.toThrow("no such push notification config");
    const list = () => client.listTaskPushNotificationConfig({ tenant: "", taskId, pageSize: 0, pageToken: "" });
    expect(await list()).toEqual({ configs: [configOf(taskId, url, { id: "a" }), shown], nextPageToken: "" });
    // The client does not send the page size over HTTP.
    const page = async (query: string) => {
      const path = `/a2a/desk/tasks/${taskId}/pushNotificationConfigs?pageSize=1${query}`;
      const answered = await (await ask(path, { headers: { "a2a-version": "1.0" } })).json();
      return answered as { readonly configs: readonly { readonly id: string }[]; readonly nextPageToken: string };
    };
    const first = await page("");
    const second = await page(`&pageToken=${first.nextPageToken}`);
    expect([first, second].map(({ configs }) => configs.map(({ id }) => id))).toEqual([["a"], ["b"]]);
    expect(second.nextPageToken).toBe("");
    await client.deleteTaskPushNotificationConfig({ tenant: "", taskId, id: "a" });
    const again = client.deleteTaskPushNotificationConfig({ tenant: "", taskId, id: "a" });
    await expect(again).rejects.toThrow("no such push notification config");
    expect((await list()).configs).toEqual([shown]);
  });

  it("a receiver gets the task and its changes, up to the end", async () => {
    const { server, receiver } = await hooked();
    const client = await clientOf(fetchOf(server), { binding });
    const task = await asking(client);
    const config = configOf(task.id, receiver.origin, { token: "a token", authentication: bearer });
    await client.createTaskPushNotificationConfig(config);
    await receiver.until((calls) => calls.length === 1);
    await answer(client, task);
    const calls = await receiver.until(isEnded);
    expect(told(calls)).toEqual(["task INPUT_REQUIRED", "WORKING", "artifact answer", "COMPLETED"]);
    expect(calls[0]?.body).toMatchObject({ task: { id: task.id, contextId: task.contextId } });
    for (const { headers } of calls) {
      expect(headers).toMatchObject({
        "content-type": "application/a2a+json",
        authorization: "Bearer secret-of-the-receiver",
        "x-a2a-notification-token": "a token",
      });
    }
    expect(new Set(calls.map(({ headers }) => headers["idempotency-key"])).size).toBe(4);
    const list = { tenant: "", taskId: task.id, pageSize: 0, pageToken: "" };
    await expect
      .poll(async () => (await client.listTaskPushNotificationConfig(list)).configs, { timeout: 30_000 })
      .toEqual([]);
    const late = client.createTaskPushNotificationConfig(config);
    await expect(late).rejects.toThrow("the task has ended");
  });

  it("a message contains its configuration, and its saved files are notified", async () => {
    const { server, receiver } = await hooked();
    const client = await clientOf(fetchOf(server), { binding });
    const taskPushNotificationConfig = configOf("", receiver.origin, { token: "t" });
    const message = saying("save");
    const configuration = { acceptedOutputModes: [], returnImmediately: true, ...message.configuration };
    const task = await sent(client, { ...message, configuration: { ...configuration, taskPushNotificationConfig } });
    const calls = await receiver.until(isEnded);
    const last = calls.at(-1)?.body as Item;
    expect(last.task?.id ?? last.statusUpdate?.taskId).toBe(task.id);
    expect(told(calls).at(-1)).toMatch(/COMPLETED$/);
    expect(calls[0]?.headers["x-a2a-notification-token"]).toBe("t");
  });
});

it("saved files, questions and decisions are notified in order", async () => {
  const save = defineTool({
    name: "save",
    description: "Saves a note",
    parameters: z.object({}),
    execute: async (_, context) => {
      await context.saveArtifact({ name: "note.md", contentType: "text/markdown", content: "# Note" });
      return "saved";
    },
  });
  const calls = [
    { name: "ask_user", arguments: { question: "your name?" } },
    { name: "save", arguments: {} },
  ];
  const model = scriptedModel(({ messages }) => {
    const call = calls[messages.filter(({ role }) => role === "tool").length % 3];
    return call ? { toolCalls: [call] } : { text: "done" };
  });
  const { server, receiver } = await hooked({
    definition: defineAgent({ name: "desk", model, tools: [save, askUser()] }),
  });
  const client = await clientOf(fetchOf(server));
  const task = await asking(client);
  await client.createTaskPushNotificationConfig(configOf(task.id, receiver.origin));
  await receiver.until((known) => known.length === 1);
  await answer(client, task);
  const order = ["task INPUT_REQUIRED", "WORKING", "artifact note.md", "artifact answer", "COMPLETED"];
  expect(told(await receiver.until(isEnded))).toEqual(order);
});

it("a client of 0.3 has the four methods too, and a message with a configuration", async () => {
  const { server, ask, receiver } = await hooked();
  const fetchImpl = fetchOf(server);
  const legacyCompat = { enabled: true };
  const cardResolver = new DefaultAgentCardResolver({ fetchImpl, legacyCompat });
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl, legacyCompat })],
    cardResolver,
  });
  const card = (await (await ask("/.well-known/agent-card.json")).json()) as Record<string, unknown>;
  const { supportedInterfaces: _, securitySchemes: _schemes, securityRequirements: _requirements, ...old } = card;
  const client = await factory.createFromAgentCard(cardResolver.normalizeAgentCard(old));
  expect(client.protocolVersion).toBe("0.3");
  const task = await asking(client);
  const made = await client.createTaskPushNotificationConfig(
    configOf(task.id, receiver.origin, { id: "one", token: "t", authentication: bearer }),
  );
  expect(made).toMatchObject({ id: "one", token: "", authentication: { scheme: "Bearer", credentials: "" } });
  expect(await client.getTaskPushNotificationConfig({ tenant: "", taskId: task.id, id: "" })).toEqual(made);
  const list = { tenant: "", taskId: task.id, pageSize: 0, pageToken: "" };
  expect((await client.listTaskPushNotificationConfig(list)).configs).toEqual([made]);
  await answer(client, task);
  await receiver.until(isEnded);
  await client.deleteTaskPushNotificationConfig({ tenant: "", taskId: task.id, id: "two" }).catch(() => undefined);
  const message = saying("hello");
  const taskPushNotificationConfig = configOf("", `${receiver.origin}/second`);
  await sent(client, {
    ...message,
    configuration: {
      acceptedOutputModes: [],
      returnImmediately: false,
      ...message.configuration,
      taskPushNotificationConfig,
    },
  });
  await receiver.until((calls) => calls.some(({ path }) => path === "/second"));
});

it("shapes that the translation of 0.3 does not expect are refused", async () => {
  const { ask } = await hooked();
  const params = [
    {},
    { taskId: 1 },
    { taskId: "a" },
    { taskId: "a", pushNotificationConfig: {} },
    { taskId: "a", pushNotificationConfig: { url: "https://a", authentication: {} } },
  ];
  for (const one of params) {
    const body = { jsonrpc: "2.0", id: 1, method: "tasks/pushNotificationConfig/set", params: one };
    const answered = await (await ask("/a2a/desk", { method: "POST", body })).json();
    expect(answered).toMatchObject({ error: { code: -32602 } });
  }
});

describe("without a key", () => {
  it("the card reports no support, and the methods refuse", async () => {
    const { server, ask, runtime } = await hooked({ serving: { webhooks: undefined } });
    const client = await clientOf(fetchOf(server));
    expect((await client.getAgentCard()).capabilities?.pushNotifications).toBe(false);
    const { id } = await asking(client);
    const body = { url: "https://example.com/" };
    for (const [method, more] of [
      ["POST", ""],
      ["GET", ""],
      ["GET", "/x"],
      ["DELETE", "/x"],
    ] as const) {
      const response = await ask(`/a2a/desk/tasks/${id}/pushNotificationConfigs${more}`, {
        method,
        headers: { "a2a-version": "1.0" },
        ...(method === "POST" ? { body } : {}),
      });
      expect([response.status, await response.text()]).toEqual([
        400,
        expect.stringContaining("PUSH_NOTIFICATION_NOT_SUPPORTED"),
      ]);
    }
    const configuration = { taskPushNotificationConfig: { url: "https://example.com/" } };
    const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "hi" }] };
    const sentNow = await ask("/a2a/desk/message:send", {
      method: "POST",
      headers: { "a2a-version": "1.0" },
      body: { message, configuration },
    });
    expect(await sentNow.text()).toContain("PUSH_NOTIFICATION_NOT_SUPPORTED");
    expect(await runtime.turns()).toHaveLength(1);
  });
});

const config = (more: object) => ({ url: "https://example.com/hook", ...more });

describe("a configuration is refused before anything is written", () => {
  it.each([
    ["a line end in its token", config({ token: "a\r\nx: y" })],
    ["a line end in its credentials", config({ authentication: { scheme: "Bearer", credentials: "a\nb" } })],
    ["a line end in its scheme", config({ authentication: { scheme: "Bearer\r\n", credentials: "a" } })],
    ["a space in its scheme", config({ authentication: { scheme: "Bearer x", credentials: "a" } })],
    ["credentials without a scheme", config({ authentication: { credentials: "a" } })],
    ["a token beyond ASCII", config({ token: "é" })],
    ["a very long token", config({ token: "a".repeat(5_000) })],
    ["a very long id", config({ id: "a".repeat(256) })],
    ["an invalid URL", { id: "a" }],
    ["a line end in its URL", { url: "https://example.com/\r\na" }],
    ["a URL without TLS", { url: "http://example.com/" }],
    ["a private address", { url: "https://169.254.169.254/" }],
    ["a decimal address", { url: "https://2130706433/" }],
  ])("with %s", async (_, body) => {
    const { server, ask, runtime } = await hooked();
    const client = await clientOf(fetchOf(server));
    const task = await asking(client);
    const headers = { "a2a-version": "1.0" };
    const path = `/a2a/desk/tasks/${task.id}/pushNotificationConfigs`;
    const refused = await ask(path, { method: "POST", headers, body });
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("INVALID_ARGUMENT")]);
    const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "hello" }] };
    const configuration = { taskPushNotificationConfig: body };
    const alike = await ask("/a2a/desk/message:send", { method: "POST", headers, body: { message, configuration } });
    expect(alike.status).toBe(400);
    expect(await runtime.turns()).toHaveLength(1);
    expect(await runtime.stores.webhooks("default", task.id.split(".")[0] ?? "")).toBeUndefined();
  });

  it("if the task has 20 already", async () => {
    const { server, ask } = await hooked();
    const client = await clientOf(fetchOf(server));
    const { id } = await asking(client);
    const headers = { "a2a-version": "1.0" };
    const make = async (name: string) =>
      (
        await ask(`/a2a/desk/tasks/${id}/pushNotificationConfigs`, {
          method: "POST",
          headers,
          body: { id: name, url: "https://192.88.98.1:9/" },
        })
      ).status;
    const made = await Promise.all(Array.from({ length: 20 }, (_, index) => make(`c${index}`)));
    expect(made).toEqual(made.map(() => 201));
    expect([await make("one more"), await make("c7")]).toEqual([400, 201]);
    const message = { messageId: "m", taskId: id, role: "ROLE_USER", parts: [{ text: "Ann" }] };
    const configuration = { taskPushNotificationConfig: { url: "https://example.com/" } };
    const refused = await ask("/a2a/desk/message:send", { method: "POST", headers, body: { message, configuration } });
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("at most 20")]);
    expect((await client.getTask({ tenant: "", id })).status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
  });
});

it("secrets are sent to the receiver only", async () => {
  const { server, ask, runtime, receiver, lines } = await hooked();
  const client = await clientOf(fetchOf(server));
  const task = await asking(client);
  await client.createTaskPushNotificationConfig(
    configOf(task.id, `${receiver.origin}/?in=url`, { token: "secret-token", authentication: bearer }),
  );
  await receiver.until((calls) => calls.length === 1);
  const rootAgentId = task.id.split(".")[0] ?? "";
  const { stores } = runtime;
  await expect.poll(() => lines.some(({ route }) => route === "a2a webhook"), { timeout: 30_000 }).toBe(true);
  const seen = JSON.stringify([
    await stores.webhooks("default", rootAgentId),
    await stores.exportTree("default", rootAgentId),
    await stores.readTree("default", rootAgentId, 0, 1_000),
    lines,
    await (await server.fetch(requestOf("/metrics"), { incoming: { socket: { remoteAddress: "127.0.0.1" } } })).text(),
    await (await ask(`/a2a/desk/tasks/${task.id}`, { headers: { "a2a-version": "1.0" } })).text(),
  ]);
  expect(seen).toContain("sealed");
  expect(seen).not.toMatch(/secret-token|secret-of-the-receiver/);
  expect(JSON.stringify(lines)).not.toContain("in=url");
  expect(lines.find(({ route }) => route === "a2a webhook")).toMatchObject({
    method: "POST",
    status: 200,
    userId: "ann",
    code: null,
    error: null,
  } satisfies Partial<LogLine>);
  await answer(client, task);
});

it("a deleted configuration gets no more notifications", async () => {
  const { server, receiver } = await hooked();
  const client = await clientOf(fetchOf(server));
  const task = await asking(client);
  await client.createTaskPushNotificationConfig(configOf(task.id, `${receiver.origin}/kept`, { id: "kept" }));
  await client.createTaskPushNotificationConfig(configOf(task.id, `${receiver.origin}/gone`, { id: "gone" }));
  await receiver.until((calls) => calls.length === 2);
  await client.deleteTaskPushNotificationConfig({ tenant: "", taskId: task.id, id: "gone" });
  await answer(client, task);
  const calls = await receiver.until(isEnded);
  expect(calls.filter(({ path }) => path === "/gone")).toHaveLength(1);
});

it("a canceled task ends its notifications", async () => {
  const { server, receiver } = await hooked();
  const client = await clientOf(fetchOf(server));
  const { id } = await asking(client);
  await client.createTaskPushNotificationConfig(configOf(id, receiver.origin));
  await receiver.until((calls) => calls.length === 1);
  await client.cancelTask({ tenant: "", id, metadata: undefined });
  const calls = await receiver.until((known) => known.length === 2);
  expect(told(calls)).toEqual(["task INPUT_REQUIRED", "CANCELED"]);
});
