// Push notifications with failing receivers, and with killed or several servers.
import type { Stores } from "troupe";
import type { ServeOptions } from "troupe/server";
import { memoryStores } from "troupe/stores/memory";
import { redisStores } from "troupe/stores/redis";
import { sqliteStores } from "troupe/stores/sqlite";
import { createFakeClock } from "troupe/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { systemClock } from "../../../src/base/index.ts";
import { type HookCall, startReceiver, webhookKey } from "../../support/hook-receiver.ts";
import { redisProgram, RedisServer } from "../../support/redis-server.ts";
import { startProgram } from "../../support/waiting-process.ts";
import { temporaryFile } from "../../stores/temporary-file.ts";
import { tokens } from "../served.ts";
import { clientOf, fetchOf } from "./a2a-served.ts";
import { answer, asking, configOf, hooked, isEnded, told } from "./push-served.ts";

const long = { timeout: 30_000 };
const whole = ["task INPUT_REQUIRED", "WORKING", "artifact answer", "COMPLETED"];

const idsOf = (calls: readonly HookCall[]) => calls.map(({ headers }) => String(headers["idempotency-key"]));

/** Calls without duplicates, which a receiver drops by their id. */
function once(calls: readonly HookCall[]): readonly HookCall[] {
  const ids = idsOf(calls);
  return calls.filter((_, index) => ids.indexOf(ids[index] ?? "") === index);
}

const rootOfTask = ({ id }: { readonly id: string }): string => id.split(".")[0] ?? "";

describe("a receiver that fails", () => {
  it("is retried with growing delays, and given up with a warning on all outputs", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
    const clock = createFakeClock();
    const receiver = await startReceiver(() => 503);
    const { server, lines, runtime } = await hooked({ receiver, serving: { clock } });
    const client = await clientOf(fetchOf(server));
    const task = await asking(client);
    await client.createTaskPushNotificationConfig(configOf(task.id, `${receiver.origin}/?secret=in-its-address`));
    const stored = async () => (await runtime.stores.webhooks("default", rootOfTask(task)))?.webhooks[0];
    for (let count = 1; count < 12; count += 1) {
      await expect.poll(async () => (await stored())?.failures, long).toBe(count);
      const delay = ((await stored())?.retryAt ?? 0) - clock.now();
      const most = Math.min(900_000, 2_000 * 2 ** (count - 1));
      expect([delay >= Math.floor(most / 2), delay <= most]).toEqual([true, true]);
      clock.advance(delay);
    }
    await expect
      .poll(() => lines.filter(({ code }) => code === "webhook_given_up"), long)
      .toMatchObject([
        { route: "a2a webhook", status: 503, userId: "ann", error: expect.stringMatching(/status 503/) },
      ]);
    expect(new Set(idsOf(receiver.calls)).size).toBe(1);
    expect([receiver.calls.length, await stored()]).toEqual([12, undefined]);
    expect(warned.mock.calls).toEqual([[expect.stringContaining("was given up"), { code: "TROUPE_WEBHOOK_GIVEN_UP" }]]);
    expect(JSON.stringify([lines, warned.mock.calls])).not.toContain("in-its-address");
    const page = await server.fetch(new Request("http://127.0.0.1/metrics"), {
      incoming: { socket: { remoteAddress: "127.0.0.1" } },
    });
    expect(await page.text()).toContain('troupe_webhook_deliveries_total{surface="a2a",outcome="failed"} 11');
  });

  it("delays no other receiver, and gets its missed notifications in order", async () => {
    const clock = createFakeClock();
    let isDown = true;
    const [failing, silent] = [await startReceiver(() => (isDown ? 500 : 200)), await startReceiver(() => null)];
    const fine = await startReceiver();
    const origins = [failing, silent, fine].map(({ origin }) => origin);
    const { server, runtime } = await hooked({ serving: { clock, webhooks: { keys: [webhookKey()], origins } } });
    const client = await clientOf(fetchOf(server));
    const task = await asking(client);
    for (const origin of origins) await client.createTaskPushNotificationConfig(configOf(task.id, origin));
    await Promise.all([failing, silent, fine].map((one) => one.until((calls) => calls.length > 0)));
    const stored = async () => (await runtime.stores.webhooks("default", rootOfTask(task)))?.webhooks ?? [];
    const ofFailing = async () => (await stored()).find(({ url }) => url === failing.origin);
    await expect.poll(async () => (await ofFailing())?.failures, long).toBe(1);
    await answer(client, task);
    expect(told(await fine.until(isEnded))).toEqual(whole);
    isDown = false;
    clock.advance(((await ofFailing())?.retryAt ?? 0) - clock.now());
    // It has missed the task and gets its current state.
    expect(told(await failing.until(isEnded))).toEqual(["task INPUT_REQUIRED", "task COMPLETED"]);
    await expect.poll(async () => (await stored()).map(({ url }) => url), long).toEqual([silent.origin]);
  });

  it("in the middle gets its missed notifications in order", async () => {
    const clock = createFakeClock();
    let isDown = false;
    const receiver = await startReceiver(() => (isDown ? 500 : 200));
    const { server, runtime } = await hooked({ receiver, serving: { clock } });
    const client = await clientOf(fetchOf(server));
    const task = await asking(client);
    await client.createTaskPushNotificationConfig(configOf(task.id, receiver.origin));
    const stored = async () => (await runtime.stores.webhooks("default", rootOfTask(task)))?.webhooks[0];
    await expect.poll(async () => (await stored())?.told, long).not.toBeNull();
    isDown = true;
    await answer(client, task);
    await expect.poll(async () => (await stored())?.failures, long).toBe(1);
    isDown = false;
    clock.advance(((await stored())?.retryAt ?? 0) - clock.now());
    const calls = await receiver.until(isEnded);
    expect(told(calls)).toEqual(["task INPUT_REQUIRED", "WORKING", ...whole.slice(1)]);
    expect(told(once(calls))).toEqual(whole);
  });
});

it("credentials that were sealed with a removed key are not sent", async () => {
  const stores = memoryStores();
  const receiver = await startReceiver(() => null);
  const first = await hooked({ stores, receiver });
  const client = await clientOf(fetchOf(first.server));
  const task = await asking(client);
  await client.createTaskPushNotificationConfig(configOf(task.id, receiver.origin, { token: "t" }));
  await receiver.until((calls) => calls.length === 1);
  await first.server.close();
  const webhooks = { keys: [webhookKey(9)], origins: [receiver.origin] };
  const other = await hooked({ stores, receiver, serving: { webhooks } });
  await expect
    .poll(() => other.lines.map(({ error }) => error), long)
    .toEqual([expect.stringContaining("which is missing in webhooks.keys")]);
  expect(receiver.calls).toHaveLength(1);
});

/** A server that starts so much later that the claims of others have expired. */
const later: Partial<ServeOptions> = { clock: { ...systemClock, now: () => systemClock.now() + 120_000 } };

const fetchAsAnn: typeof fetch = async (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set("authorization", `Bearer ${tokens.ann}`);
  return await fetch(input, { ...init, headers });
};

describe("a server that is killed", () => {
  it.each([
    ["during a delivery", "none", (count: number) => (count === 1 ? null : 200)],
    ["after a delivery, before recording it", "webhook.sent:1", () => 200],
  ])("%s: another one continues, and a repeated notification has the same id", async (_, fault, statusOf) => {
    const path = temporaryFile();
    const receiver = await startReceiver((_call, count) => statusOf(count));
    const environment = fault === "none" ? {} : { TROUPE_FAULT: fault };
    const program = startProgram(
      new URL("killed-server.ts", import.meta.url).pathname,
      [path, receiver.origin],
      environment,
    );
    onTestFinished(() => program.kill());
    const base = await program.firstLine;
    const before = await clientOf(fetchAsAnn, { base });
    const task = await asking(before);
    // The process may die before it has answered.
    await before.createTaskPushNotificationConfig(configOf(task.id, receiver.origin)).catch(() => undefined);
    await receiver.until((calls) => calls.length === 1);
    if (fault === "none") program.kill();
    await program.ended;
    const { server, runtime } = await hooked({ stores: sqliteStores(path), receiver, serving: later });
    await runtime.recover();
    await receiver.until((calls) => calls.length === 2);
    await answer(await clientOf(fetchOf(server)), task);
    const calls = await receiver.until(isEnded);
    expect(told(calls)).toEqual(["task INPUT_REQUIRED", ...whole]);
    expect(calls[1]?.body).toEqual(calls[0]?.body);
    expect(told(once(calls))).toEqual(whole);
  });
});

/** Two servers over one store: a configuration is created at one, and its task continues at the other. */
async function betweenTwo(open: () => Stores) {
  const receiver = await startReceiver();
  const one = await hooked({ stores: open(), receiver });
  const two = await hooked({ stores: open(), receiver });
  const [here, there] = [await clientOf(fetchOf(one.server)), await clientOf(fetchOf(two.server))];
  const tasks = await Promise.all(Array.from({ length: 5 }, async () => await asking(here)));
  await Promise.all(
    tasks.map(({ id }) => here.createTaskPushNotificationConfig(configOf(id, `${receiver.origin}/${id}`))),
  );
  const isAllTold = (calls: readonly HookCall[]): boolean =>
    tasks.every(({ id }) => isEnded(calls.filter(({ path }) => path === `/${id}`)));
  await receiver.until((calls) => calls.length >= tasks.length);
  await Promise.all(tasks.map((task) => answer(there, task)));
  const calls = await receiver.until(isAllTold);
  const ofEach = tasks.map(({ id }) => told(calls.filter(({ path }) => path === `/${id}`)));
  const repeated = calls.length - once(calls).length;
  // A deletion at one is known to the other.
  const task = await asking(there);
  await there.createTaskPushNotificationConfig(configOf(task.id, `${receiver.origin}/last`, { id: "last" }));
  await receiver.until((known) => known.some(({ path }) => path === "/last"));
  await here.deleteTaskPushNotificationConfig({ tenant: "", taskId: task.id, id: "last" });
  await answer(here, task);
  return { ofEach, repeated, ofDeleted: receiver.calls.filter(({ path }) => path === "/last").length };
}

const toldOnce = { ofEach: Array.from({ length: 5 }, () => whole), repeated: 0, ofDeleted: 1 };

describe("two servers deliver once", () => {
  it("over one file of SQLite", async () => {
    const path = temporaryFile();
    expect(await betweenTwo(() => sqliteStores(path))).toEqual(toldOnce);
  });

  it.skipIf(!redisProgram)("over one Redis", async () => {
    const place = await RedisServer.start();
    onTestFinished(() => place.stop());
    expect(await betweenTwo(() => redisStores({ url: place.url }))).toEqual(toldOnce);
  });
});
