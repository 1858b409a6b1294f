import { expect, it } from "vitest";
import { clientServed } from "./client-served.ts";

it("creates, lists, pauses, resumes, runs and deletes a schedule", async () => {
  const { client, sent, runtime } = await clientServed();
  const { agentId } = await client.createAgent({ definition: "desk" });
  const report = { definition: "desk", input: "Report.", cron: "0 9 * * *", timezone: "Europe/Berlin", agentId };
  const schedule = await client.createSchedule({ ...report, key: "daily" }, { idempotencyKey: "k" });
  expect(sent.at(-1)).toEqual({ what: "POST /api/schedules", key: "k" });
  const again = await client.createSchedule({ ...report, key: "daily", input: "Report all." });
  expect(again.scheduleId).toBe(schedule.scheduleId);
  expect((await schedule.pause()).pausedAt).toBeGreaterThan(0);
  expect(await schedule.resume()).toMatchObject({ pausedAt: null, input: "Report all." });
  const runs = await Promise.all([
    schedule.runNow({ idempotencyKey: "go" }),
    client.schedule(schedule.scheduleId).runNow({ idempotencyKey: "go" }),
  ]);
  expect(runs[1]?.turnId).toBe(runs[0]?.turnId);
  expect(await runtime.turns({ agentId })).toHaveLength(1);
  const { items, next } = await client.schedules({ agent: agentId, limit: 5 });
  expect([items.map(({ counts }) => counts.opened), next]).toEqual([[1], null]);
  expect(await schedule.info()).toMatchObject({ scheduleId: schedule.scheduleId, definition: "desk" });
  expect(await schedule.delete()).toMatchObject({ scheduleId: schedule.scheduleId });
  await expect(schedule.info()).rejects.toMatchObject({ code: "not_found" });
});

it("wrong schedules are refused before anything is sent", async () => {
  const { client, sent } = await clientServed();
  const good = { definition: "desk", input: "x", every: "1h" };
  for (const change of [
    { definition: "" },
    { input: null },
    { every: undefined },
    { at: "2027-01-01" },
    { cron: "" },
    { ifMissed: "twice" },
    { ifBusy: "refuse" },
    { agent: "desk" },
    { key: "x".repeat(256) },
  ]) {
    await expect(client.createSchedule({ ...good, ...change } as never)).rejects.toMatchObject({
      code: "invalid_input",
    });
  }
  expect(() => client.schedule("")).toThrow("scheduleId");
  await expect(client.schedules({ limit: 0 })).rejects.toMatchObject({ code: "invalid_input" });
  expect(sent).toEqual([]);
});
