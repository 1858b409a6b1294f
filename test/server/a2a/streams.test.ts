import { type StreamResponse, type Task, TaskState } from "@a2a-js/sdk";
import type { Client } from "@a2a-js/sdk/client";
import { type AgentDefinition, createRuntime, type RuntimeOptions } from "troupe";
import { a2aSurface } from "troupe/server";
import { redisStores } from "troupe/stores/redis";
import { sqliteStores } from "troupe/stores/sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { redisProgram, RedisServer } from "../../support/redis-server.ts";
import { slowSpeaker } from "../../support/slow-speaker.ts";
import { startProgram } from "../../support/waiting-process.ts";
import { temporaryFile } from "../../stores/temporary-file.ts";
import { serve, tokens } from "../served.ts";
import { answerIn, bindings, clientOf, deskAgent, fetchOf, saying, sent } from "./a2a-served.ts";

const whole = "The first half, and the second.";

const fetchAsAnn: typeof fetch = async (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set("authorization", `Bearer ${tokens.ann}`);
  return await fetch(input, { ...init, headers });
};

/** The state of a client's task after some items of its stream. */
class Reader {
  readonly #items: AsyncIterator<StreamResponse, void>;
  task: Task | undefined;
  text = "";
  state: TaskState | undefined;
  isEnded = false;

  constructor(items: AsyncIterable<StreamResponse, void>) {
    this.#items = items[Symbol.asyncIterator]();
  }

  async until(isThere: (reader: this) => boolean): Promise<this> {
    while (!isThere(this)) {
      const { done, value } = await this.#items.next();
      if (done === true) throw new Error("the stream has ended before");
      this.#take(value);
    }
    return this;
  }

  async toEnd(): Promise<this> {
    for (let item = await this.#items.next(); item.done !== true; item = await this.#items.next())
      this.#take(item.value);
    return this;
  }

  #take({ payload }: StreamResponse): void {
    if (payload?.$case === "task") {
      this.task = payload.value;
      this.state = payload.value.status?.state;
      this.text = answerIn(payload.value) ?? "";
    } else if (payload?.$case === "statusUpdate") this.state = payload.value.status?.state;
    else if (payload?.$case === "artifactUpdate") {
      const content = payload.value.artifact?.parts[0]?.content;
      const piece = content?.$case === "text" ? content.value : "";
      this.text = payload.value.append ? this.text + piece : piece;
      this.isEnded = payload.value.lastChunk;
    }
  }
}

async function node(definition: AgentDefinition, options: Partial<RuntimeOptions> = {}) {
  const runtime = await createRuntime({ agents: [definition], ...options });
  onTestFinished(() => runtime.shutdown());
  const served = serve(runtime, { surfaces: [await a2aSurface({ agents: [{ definition }] })] });
  const client = (binding: (typeof bindings)[number]): Promise<Client> =>
    clientOf(fetchOf(served.server), { binding, name: definition.name });
  return { ...served, runtime, client };
}

const done = { state: TaskState.TASK_STATE_COMPLETED, text: whole, isEnded: true };

describe.each(bindings)("a stream over %s", (binding) => {
  it("contains the text as it is written, also if it starts in the middle", async () => {
    const goOn = Promise.withResolvers<void>();
    const heard = Promise.withResolvers<void>();
    const { client } = await node(slowSpeaker({ said: () => undefined, goOn: goOn.promise, whole: heard.promise }));
    const reading = await client(binding);
    const first = new Reader(reading.sendMessageStream(saying("speak")));
    await first.until(({ text }) => text === "The first half, ");
    const second = new Reader(reading.resubscribeTask({ tenant: "", id: first.task?.id ?? "" }));
    await second.until(({ text }) => text === "The first half, ");
    expect([first.state, second.state]).toEqual([TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_WORKING]);
    goOn.resolve();
    await Promise.all([first, second].map((reader) => reader.until(({ text }) => text === whole)));
    heard.resolve();
    expect(await Promise.all([first.toEnd(), second.toEnd()])).toMatchObject([done, done]);
  });
});

it("a stream continues at another server after kill -9 in its middle, over the same SQLite file", async () => {
  const path = temporaryFile();
  const process = startProgram(new URL("../killed-speaker.ts", import.meta.url).pathname, [path, "a2a"]);
  onTestFinished(() => process.kill());
  const base = await process.firstLine;
  const before = new Reader((await clientOf(fetchAsAnn, { base, name: "speaker" })).sendMessageStream(saying("speak")));
  await before.until(({ text }) => text === "The first half, ");
  process.kill();
  await process.ended;
  const goOn = Promise.withResolvers<void>();
  const { client, runtime } = await node(
    slowSpeaker({ said: () => undefined, goOn: goOn.promise, whole: goOn.promise }),
    { stores: sqliteStores(path) },
  );
  expect(await runtime.recover()).toHaveLength(1);
  const reading = await client("JSONRPC");
  const after = new Reader(reading.resubscribeTask({ tenant: "", id: before.task?.id ?? "" }));
  await after.until(({ task }) => task !== undefined);
  expect([after.task?.id, after.task?.contextId]).toEqual([before.task?.id, before.task?.contextId]);
  goOn.resolve();
  expect(await after.toEnd()).toMatchObject(done);
  const read = await reading.getTask({ tenant: "", id: before.task?.id ?? "" });
  expect([answerIn(read), read.history.length]).toEqual([whole, 2]);
});
describe.skipIf(!redisProgram)("two servers over one Redis", () => {
  it("one follows and answers a task that the other one began", async () => {
    const place = await RedisServer.start();
    onTestFinished(() => place.stop());
    const open = () => node(deskAgent(), { stores: redisStores({ url: place.url }) });
    const [one, two] = [await (await open()).client("JSONRPC"), await (await open()).client("HTTP+JSON")];
    const asked = await sent(one, saying("ask"));
    const [here, there] = [one, two].map((client) => new Reader(client.resubscribeTask({ tenant: "", id: asked.id })));
    for (const reader of [here, there])
      await reader?.until(({ state }) => state === TaskState.TASK_STATE_INPUT_REQUIRED);
    const answered = await sent(two, saying("Ann", { taskId: asked.id, contextId: asked.contextId }));
    expect(answerIn(answered)).toContain("Ann");
    const ended = { state: TaskState.TASK_STATE_COMPLETED, text: answerIn(answered), isEnded: true };
    expect(await Promise.all([here?.toEnd(), there?.toEnd()])).toMatchObject([ended, ended]);
    expect(await one.getTask({ tenant: "", id: asked.id })).toEqual(answered);
  });
});
