// Data of another caller is answered byte for byte like missing data, over every route and every method.
import { a2aSurface } from "troupe/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EXTENSION } from "../../../src/server/a2a/read-message.ts";
import { webhookKey } from "../../support/hook-receiver.ts";
import { tokens } from "../served.ts";
import { type Ask, serveTwoTenants, strangers, type Told, type TwoTenants } from "../strangers.ts";
import { deskAgent } from "./a2a-served.ts";

interface Ids {
  readonly taskId: string;
  readonly requestId: string;
  readonly argumentsHash: string;
}

const unknown: Ids = {
  taskId: "0123456789abcdef0123456789abcdef.1",
  requestId: "0123456789abcdef0123456789abcdef.1:1:0:1",
  argumentsHash: "none",
};

const message = { messageId: "m", role: "ROLE_USER" };
const said = ({ taskId }: Ids) => ({ message: { ...message, taskId, parts: [{ text: "yes" }] } });
const decided = ({ taskId, ...ids }: Ids) => ({
  message: { ...message, taskId, extensions: [EXTENSION], parts: [{ data: { ...ids, verdict: "approved" } }] },
});

const rpc =
  (method: string, params: (ids: Ids) => unknown) =>
  (ids: Ids): Ask => {
    return { method: "POST", path: "/a2a/desk", body: { jsonrpc: "2.0", id: 1, method, params: params(ids) } };
  };
const rest =
  (method: string, path: string, body?: (ids: Ids) => unknown) =>
  (ids: Ids): Ask => {
    return { method, path: `/a2a/desk${path.replace("ID", ids.taskId)}`, body: body?.(ids) };
  };
const byId = ({ taskId: id }: Ids) => ({ id });
const byTask = ({ taskId }: Ids) => ({ taskId, id: "c" });
const config = { url: "https://hook.example/", token: "t" };
const withConfig = (ids: Ids) => ({ ...said(ids), configuration: { taskPushNotificationConfig: config } });

/** Every request that names a task. */
const asks: Readonly<Record<string, (ids: Ids) => Ask>> = {
  SendMessage: rpc("SendMessage", said),
  "SendMessage with a decision": rpc("SendMessage", decided),
  SendStreamingMessage: rpc("SendStreamingMessage", said),
  GetTask: rpc("GetTask", byId),
  CancelTask: rpc("CancelTask", byId),
  SubscribeToTask: rpc("SubscribeToTask", byId),
  "SendMessage with a receiver": rpc("SendMessage", withConfig),
  CreateTaskPushNotificationConfig: rpc("CreateTaskPushNotificationConfig", (ids) => ({ ...byTask(ids), ...config })),
  GetTaskPushNotificationConfig: rpc("GetTaskPushNotificationConfig", byTask),
  ListTaskPushNotificationConfigs: rpc("ListTaskPushNotificationConfigs", byTask),
  DeleteTaskPushNotificationConfig: rpc("DeleteTaskPushNotificationConfig", byTask),
  "POST message:send": rest("POST", "/message:send", said),
  "POST message:send with a decision": rest("POST", "/message:send", decided),
  "POST message:stream": rest("POST", "/message:stream", said),
  "GET task": rest("GET", "/tasks/ID"),
  "POST task:cancel": rest("POST", "/tasks/ID:cancel", () => ({})),
  "GET task:subscribe": rest("GET", "/tasks/ID:subscribe"),
  "POST task:subscribe": rest("POST", "/tasks/ID:subscribe", () => ({})),
  "POST message:send with a receiver": rest("POST", "/message:send", withConfig),
  "POST configs": rest("POST", "/tasks/ID/pushNotificationConfigs", () => config),
  "POST a config of that id": rest("POST", "/tasks/ID/pushNotificationConfigs", () => ({ ...config, id: "c" })),
  "GET configs": rest("GET", "/tasks/ID/pushNotificationConfigs"),
  "GET config": rest("GET", "/tasks/ID/pushNotificationConfigs/c"),
  "DELETE config": rest("DELETE", "/tasks/ID/pushNotificationConfigs/c"),
};

const removed: string[] = [];
let known: Ids;
let tenants: TwoTenants;

const ask = async (asked: Ask, token: string | null): Promise<Told> =>
  await tenants.ask({ ...asked, headers: { "a2a-version": "1.0" } }, token);

beforeAll(async () => {
  tenants = await serveTwoTenants([deskAgent(removed)], {
    surfaces: [await a2aSurface()],
    // No host name resolves, so no webhook is called.
    webhooks: { keys: [webhookKey()], lookup: () => Promise.resolve([]) },
  });
  const begin = rest("POST", "/message:send", () => ({ message: { ...message, parts: [{ text: "remove" }] } }));
  const { text } = await ask(begin(unknown), tokens.ann);
  interface Begun {
    readonly task: {
      readonly id: string;
      readonly status: { readonly message: { readonly parts: readonly { readonly metadata: Ids }[] } };
    };
  }
  const { task } = JSON.parse(text) as Begun;
  const { requestId = "", argumentsHash = "" } = task.status.message.parts[0]?.metadata ?? {};
  known = { taskId: task.id, requestId, argumentsHash };
  await ask(asks["POST a config of that id"]?.(known) ?? begin(known), tokens.ann);
});
afterAll(async () => {
  await tenants.close();
});

describe.each(Object.entries(strangers))("%s", (_, token) => {
  it.each(Object.entries(asks))("learns nothing by %s", async (_name, of) => {
    const [own, other] = [await ask(of(known), token), await ask(of(unknown), token)];
    expect(own).toEqual(other);
    expect(own.status).not.toBe(500);
    expect(own.text).toMatch(/no such task|Authentication required/);
  });
});

it("a task named by hostile text does not exist", async () => {
  const texts = [
    "../../etc/passwd",
    "\0",
    "desk#1",
    ".1",
    "x.1:2:0:1",
    "a".repeat(5_000),
    "{}",
    "*",
    "\n",
    "𝒳.1",
    "\ud800.1",
    "__proto__",
  ];
  for (const taskId of texts) {
    for (const of of [asks["GetTask"], asks["CancelTask"], asks["SubscribeToTask"]]) {
      const { status, text } = await ask(of?.({ ...unknown, taskId }) ?? { method: "GET", path: "/" }, tokens.ann);
      expect([taskId, status, (JSON.parse(text) as { error: { code: number } }).error.code]).toEqual([
        taskId,
        200,
        -32001,
      ]);
    }
  }
});

it.each(["../../etc/passwd", "\0", "a b\nc", "𝒳", "\ud800", "__proto__", "{}*:"])(
  "a context named %j is an ordinary context",
  async (contextId) => {
    const begin = rpc("SendMessage", () => ({ message: { ...message, contextId, parts: [{ text: contextId }] } }));
    const { text } = await ask(begin(unknown), tokens.ann);
    const again = await ask(begin(unknown), tokens.ann);
    const { result } = JSON.parse(text) as { result: { task: { id: string; status: { state: string } } } };
    expect(result.task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(again.text).toBe(text);
  },
);

it("the data that a caller named exists for this caller, unchanged by strangers", async () => {
  const { status, text } = await ask(rest("GET", "/tasks/ID/pushNotificationConfigs")(known), tokens.ann);
  const own = { id: "c", taskId: known.taskId, url: config.url };
  expect([status, JSON.parse(text)]).toEqual([200, { configs: [own], nextPageToken: "" }]);
});

it("a config of another id, and of another agent's task, does not exist", async () => {
  const ofOther = rest("GET", "/tasks/ID/pushNotificationConfigs/other")(known);
  const ofNone = rest("GET", "/tasks/ID/pushNotificationConfigs/c")(unknown);
  expect([(await ask(ofOther, tokens.ann)).status, (await ask(ofNone, tokens.ann)).status]).toEqual([404, 404]);
});

it("no user lists another user's tasks, and nothing was decided", async () => {
  const list = rpc("ListTasks", () => ({}))(unknown);
  for (const token of [tokens.bob, tokens.eve]) {
    expect(JSON.parse((await ask(list, token)).text)).toMatchObject({ result: { tasks: [], totalSize: 0 } });
  }
  expect(removed).toEqual([]);
  const [waiting] = await tenants.runtimes.default.requests();
  expect(waiting?.status).toBe("open");
  const { status } = await ask(
    asks["POST message:send with a decision"]?.(known) ?? { method: "GET", path: "/" },
    tokens.ann,
  );
  expect([status, removed]).toEqual([200, ["a.txt"]]);
});
