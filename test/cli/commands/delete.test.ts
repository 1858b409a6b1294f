// `troupe delete` and `troupe prune`, on a SQLite file.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createRuntime, defineAgent } from "../../../src/index.ts";
import { sqliteStores } from "../../../src/stores/sqlite.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { troupe } from "../support/in-process.ts";

const canary = "canary-12cd90";
let folder = "";
let store = "";
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "troupe-delete-cli-"));
  store = join(folder, "jobs.db");
  const clerk = defineAgent({ name: "clerk", model: scriptedModel(() => `done ${canary}`) });
  const runtime = await createRuntime({ agents: [clerk], stores: sqliteStores(store) });
  for (const [agentId, ownerId] of [
    ["desk-1", "ann"],
    ["desk-2", "ann"],
    ["shop", "ben"],
  ] as const) {
    const agent = await runtime.agent("clerk", { agentId, ownerId });
    await agent.start();
    await agent.executeTurn(canary).result;
  }
  await runtime.shutdown();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function bytes(): string {
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), "latin1"))
    .join("");
}

async function listed(): Promise<string[]> {
  const { out } = await troupe(["list", "--json", "--store", store]);
  return out.map((line) => (JSON.parse(line) as { agentId: string }).agentId).toSorted();
}

it("deletes by id, and audit shows the line that stays with heads from before", async () => {
  const audited = await troupe(["audit", "shop", "--json", "--store", store]);
  const { head } = JSON.parse(audited.out[0] ?? "") as { head: string };
  const { code, out } = await troupe(["delete", "shop", "--yes", "--store", store]);
  expect({ code, out }).toEqual({ code: 0, out: ["Deleted shop: 1 agent, 1 turn, 2 messages."] });
  expect(await listed()).toEqual(["desk-1", "desk-2"]);
  const shown = await troupe(["audit", "shop", "--head", head, "--store", store]);
  expect(shown.code).toBe(0);
  expect(shown.out[0]).toMatch(/^shop: deleted at \S+ for command line$/);
  expect(shown.out[1]).toMatch(/verified: the given head covers (\d+) of the \1 deleted entries/);
  const other = await troupe(["audit", "shop", "--head", "0".repeat(64), "--store", store]);
  expect(other.code).toBe(2);
  expect(other.out[1]).toContain("did not have the given head");
  const again = await troupe(["delete", "shop", "--yes", "--store", store]);
  expect(again.out).toEqual(["shop had been deleted before."]);
});

it("refuses without --yes where it cannot ask, and a dry run deletes nothing", async () => {
  const refused = await troupe(["delete", "--owner", "ann", "--store", store]);
  expect(refused.code).toBe(2);
  expect(refused.notes.join("\n")).toContain("add --yes");
  const dry = await troupe(["delete", "--owner", "ann", "--dry-run", "--store", store]);
  expect(dry).toMatchObject({ code: 0, out: ["desk-1", "desk-2"] });
  expect(await listed()).toEqual(["desk-1", "desk-2", "shop"]);
});

it("deletes all agents of an owner; no byte of them is left", async () => {
  await troupe(["delete", "shop", "--yes", "--store", store]);
  expect(bytes()).toContain(canary);
  const { code, out, notes } = await troupe(["delete", "--owner", "ann", "--yes", "--json", "--store", store]);
  expect(code).toBe(0);
  expect(out.map((line) => (JSON.parse(line) as { agentId: string }).agentId)).toEqual(["desk-1", "desk-2"]);
  expect(notes.join("\n")).toContain("Deleted 2 of 2 agents.");
  expect(bytes()).not.toContain(canary);
  expect(bytes()).not.toContain("desk-1");
  const none = await troupe(["delete", "--owner", "ann", "--yes", "--store", store]);
  expect(none.out[0]).toContain("There are no agents of ann");
});

it("prune deletes by age", async () => {
  const young = await troupe(["prune", "--older-than", "1d", "--yes", "--store", store]);
  expect(young.notes.join("\n")).toContain("Deleted 0 agents");
  const wrong = await troupe(["prune", "--older-than", "soon", "--store", store]);
  expect(wrong.code).toBe(2);
  expect(await listed()).toHaveLength(3);
});

it("takes ids or an owner, and no subagent or unknown id", async () => {
  expect((await troupe(["delete", "--store", store])).code).toBe(2);
  expect((await troupe(["delete", "shop", "--owner", "ann", "--store", store])).code).toBe(2);
  expect((await troupe(["delete", "nobody", "--yes", "--store", store])).code).toBe(2);
});

it("deletes the schedules of an owner, also of one without agents, and prune those that have ended", async () => {
  const schedule = async (...words: readonly string[]) => await troupe(["schedule", ...words, "--store", store]);
  const soon = new Date(Date.now() + 1_000).toISOString();
  for (const [key, owner, ...times] of [
    ["a", "ann", "--every", "1h"],
    ["c", "carl", "--every", "1h"],
    ["once", "ben", "--at", soon],
  ] as const) {
    await schedule("add", key, canary, "--agent", "clerk", "--owner", owner, ...times);
  }
  const dry = await troupe(["delete", "--owner", "carl", "--dry-run", "--store", store]);
  expect(dry.notes).toEqual(["Would delete 0 agents with their subagents and 1 schedule."]);
  const carl = await troupe(["delete", "--owner", "carl", "--yes", "--store", store]);
  expect(carl).toMatchObject({ code: 0, notes: ["Deleted 1 schedule."] });
  const ann = await troupe(["delete", "--owner", "ann", "--yes", "--store", store]);
  expect([ann.code, ann.notes[0]]).toEqual([0, "Deleted 1 schedule."]);
  const stores = sqliteStores(store);
  const once = await stores.schedule("default", "once");
  if (!once) throw new Error("the schedule is missing");
  // As after its run, an hour ago.
  const past = Date.now() - 3_600_000;
  await stores.putSchedule({ ...once, nextAt: null, changedAt: past, revision: "ran" }, once.revision);
  await stores.close();
  const prune = ["prune", "--older-than", "30m", "--store", store];
  const { out, notes } = await troupe([...prune, "--dry-run"]);
  expect([out, notes[0]]).toEqual([["schedule once"], expect.stringMatching(/^Would delete 0 agents and 1 schedule /)]);
  expect((await troupe([...prune, "--yes"])).out).toEqual(["Deleted schedule once."]);
  expect((await schedule("list")).out[0]).toMatch(/^There are no schedules/);
});

const shelf = "shelf.json";
/** An agent file whose plugin keeps a file with everyone that it knows. */
const agentFile = `import { readFileSync, writeFileSync } from "node:fs";
import { defineAgent, offlineModel } from "troupe";
const file = new URL("./${shelf}", import.meta.url);
const forget = ({ scope, id }) => {
  const known = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify(known.filter((one) => one !== scope + " " + id)));
};
export default defineAgent({ name: "keeper", model: offlineModel(), plugins: [{ name: "shelf", forget }] });
`;

it("plugins of --agents FILE forget agents and owners; without it the command names what stays", async () => {
  const file = join(folder, "keeper.mjs");
  writeFileSync(file, agentFile);
  writeFileSync(join(folder, shelf), JSON.stringify(["agent k1", "owner kim", "agent k2", "owner lee", "owner max"]));
  const shelved = (): unknown => JSON.parse(readFileSync(join(folder, shelf), "utf8"));
  const keeper = defineAgent({ name: "keeper", model: scriptedModel("fine"), plugins: [{ name: "shelf" }] });
  const runtime = await createRuntime({ agents: [keeper], stores: sqliteStores(store) });
  await runtime.agent("keeper", { agentId: "k1", ownerId: "kim" });
  await runtime.agent("keeper", { agentId: "k2", ownerId: "lee" });
  await runtime.agent("keeper", { agentId: "k3", ownerId: "lee" });
  await runtime.shutdown();

  const without = await troupe(["delete", "k3", "--yes", "--json", "--store", store]);
  expect(without.notes.join("\n")).toContain("What plugins and tools of keeper keep outside of the store");
  expect(JSON.parse(without.out[0] ?? "")).toMatchObject({ agentId: "k3", dataLeft: ["keeper"] });

  const withFile = ["--yes", "--agents", file, "--store", store];
  const one = await troupe(["delete", "k2", ...withFile]);
  expect([one.code, one.notes]).toEqual([0, []]);
  expect(shelved()).toEqual(["agent k1", "owner kim", "owner lee", "owner max"]);
  const owner = await troupe(["delete", "--owner", "kim", ...withFile]);
  expect([owner.code, owner.notes]).toEqual([0, ["Plugins and tools have forgotten the owner."]]);
  expect(shelved()).toEqual(["owner lee", "owner max"]);
  // An owner of whom only plugins know something.
  const max = await troupe(["delete", "--owner", "max", ...withFile]);
  expect([max.code, shelved()]).toEqual([0, ["owner lee"]]);

  writeFileSync(join(folder, shelf), "no JSON");
  const broken = await troupe(["delete", "--owner", "lee", ...withFile]);
  expect(broken.code).not.toBe(0);
  expect(broken.notes.join("\n")).toContain('plugin "shelf" of agent "keeper" could not forget owner "lee"');
  const missing = await troupe(["delete", "shop", "--yes", "--agents", join(folder, "none.mjs"), "--store", store]);
  expect([missing.code, await listed()]).toEqual([2, ["desk-1", "desk-2", "shop"]]);
});
