// A check must be seen to find a planted fault before an empty result means anything.
import { beforeAll, describe, expect, it } from "vitest";
import { byKey, effectViolations, repeatedAttempts } from "../../chaos/checks/effect-checks.ts";
import { journalViolations } from "../../src/testing/simulation/journal-checks.ts";
import { modelViolations, repeatedRequests } from "../../chaos/checks/model-checks.ts";
import { prefixViolations, spawnViolations } from "../../chaos/checks/prefix-checks.ts";
import { restViolations } from "../../src/testing/simulation/rest-checks.ts";
import type { Entry } from "../../src/state/index.ts";
import { type CalmTree, calmTree, renumbered, rootOf, withEntries, withRoot } from "./calm-tree.ts";

let calm: CalmTree;
beforeAll(async () => {
  calm = await calmTree();
});

const after = (entries: readonly Entry[], type: Entry["type"], more: (entry: Entry) => readonly Entry[]): Entry[] =>
  renumbered(entries.flatMap((entry) => (entry.type === type ? [entry, ...more(entry)] : [entry])));
const without = (entries: readonly Entry[], gone: (entry: Entry) => boolean): Entry[] =>
  renumbered(entries.filter((entry) => !gone(entry)));

it("finds nothing in an undisturbed tree", () => {
  const { tree, attempts, requests } = calm;
  const ledger = byKey(attempts);
  const found = tree.agents.flatMap((agent) => [
    ...journalViolations(agent),
    ...effectViolations(agent, ledger),
    ...modelViolations(agent, requests),
  ]);
  expect([...found, ...restViolations(tree), ...spawnViolations(tree), ...prefixViolations([tree], [tree])]).toEqual(
    [],
  );
  expect(repeatedAttempts(tree.agents, ledger, ledger, "hook:")).toEqual([]);
  expect(repeatedRequests(tree.agents, requests.length, requests)).toEqual([]);
});

describe("in a journal", () => {
  it.each<[string, (entries: readonly Entry[]) => readonly Entry[], RegExp]>([
    ["a gap", (entries) => entries.filter(({ seq }) => seq !== 5), /has seq 6/],
    ["an older epoch", (entries) => entries.map((entry) => ({ ...entry, epoch: 10 - entry.seq })), /has epoch/],
    ["a second answer", (entries) => after(entries, "model.responded", (entry) => [entry]), /second answer/],
    ["a second result", (entries) => after(entries, "tool.settled", (entry) => [entry]), /second result/],
    ["no result", (entries) => without(entries, ({ type }) => type === "tool.settled"), /without results/],
    ["a turn within a turn", (entries) => after(entries, "turn.started", (entry) => [entry]), /inside turn/],
    [
      "a turn that continues after its end",
      (entries) => [...entries, ...renumbered(entries).slice(-2, -1)],
      /which is not open/,
    ],
    [
      "a once call started twice",
      (entries) =>
        after(entries, "tool.started", (entry) => (entry.type === "tool.started" ? [{ ...entry, attempt: 2 }] : [])),
      /once call .* was started again/,
    ],
  ])("finds %s", (_fault, change, told) => {
    expect(journalViolations(withEntries(calm, change)).join("\n")).toMatch(told);
  });
});

describe("in the world", () => {
  it("finds a keyed call with two effects, and a success without any", () => {
    const { tree, attempts } = calm;
    const doubled = [...attempts, ...attempts];
    expect(effectViolations(rootOf(tree), byKey(doubled))).toEqual([
      expect.stringMatching(/keyed call had 2 effects/),
      expect.stringMatching(/once call had 2 effects/),
    ]);
    expect(effectViolations(rootOf(tree), byKey([])).join("\n")).toMatch(
      /its outcome is success, but it had no effect/,
    );
  });

  it("finds an interrupted once call that is recorded as failed", () => {
    const failed = withEntries(calm, (entries) =>
      entries.map((entry) =>
        entry.type === "tool.settled" && entry.name === "once" ? { ...entry, outcome: "error" } : entry,
      ),
    );
    expect(effectViolations(failed, byKey(calm.attempts)).join("\n")).toMatch(/its outcome is unknown/);
  });

  it("finds an effect that is repeated after its result was committed", () => {
    const { tree, attempts, requests } = calm;
    const more = byKey([...attempts, ...attempts.slice(0, 1)]);
    expect(repeatedAttempts(tree.agents, byKey(attempts), more, "hook:").join("\n")).toMatch(/attempted 1 times more/);
    expect(repeatedRequests(tree.agents, requests.length, [...requests, ...requests]).length).toBeGreaterThan(0);
  });
});

describe("at the model", () => {
  it("finds requests that no entry grants, and requests without results", () => {
    const { tree, requests } = calm;
    expect(modelViolations(rootOf(tree), [...requests, ...requests]).join("\n")).toMatch(
      /asked 2 times, the journal grants 1/,
    );
    const illegal = requests.map((request) => ({ ...request, isLegal: false }));
    expect(modelViolations(rootOf(tree), illegal).join("\n")).toMatch(/missing results/);
  });

  it("finds an unknown outcome that the model was not told", () => {
    const unknown = withEntries(calm, (entries) =>
      entries.map((entry) =>
        entry.type === "tool.settled" && entry.name === "once" ? { ...entry, outcome: "outcome_unknown" } : entry,
      ),
    );
    expect(modelViolations(unknown, calm.requests)).toEqual([expect.stringMatching(/the model was not informed/)]);
  });
});

describe("after a death", () => {
  it("finds a committed entry that has changed, and one that is missing", () => {
    const root = rootOf(calm.tree);
    const changed = { ...root, entries: root.entries.map((entry) => ({ ...entry, at: entry.at + 1 })) };
    expect(prefixViolations([calm.tree], [withRoot(calm, changed)])).toEqual([expect.stringMatching(/has changed/)]);
    const shorter = { ...root, entries: root.entries.slice(0, -1) };
    expect(prefixViolations([calm.tree], [withRoot(calm, shorter)])).toHaveLength(1);
    expect(prefixViolations([calm.tree], [])).toEqual(expect.arrayContaining([expect.stringMatching(/it is gone/)]));
  });

  it("finds a child that ran twice, and one that was spawned twice", () => {
    const { tree } = calm;
    const [root, ...children] = tree.agents;
    const rerun = children.map((child) => ({ ...child, entries: [...child.entries, ...child.entries] }));
    const found = prefixViolations([tree], [{ ...tree, agents: root ? [root, ...rerun] : rerun }]);
    expect(found.join("\n")).toMatch(/it had ended, and has \d+ more entries/);
    const twice = withEntries(calm, (entries) => after(entries, "child.spawned", (entry) => [entry]));
    expect(spawnViolations(withRoot(calm, twice)).join("\n")).toMatch(/spawned twice/);
  });

  it("finds leftover records", () => {
    const { tree } = calm;
    const root = rootOf(tree);
    const open = { ...root, record: { ...root.record, openTurnId: "a#1" } };
    expect(restViolations(withRoot(calm, open))).toEqual([expect.stringMatching(/its turn has not ended/)]);
    const accounts = tree.accounts.map((account) => ({
      ...account,
      reserved: { tokens: 7, costMicros: 0 },
      activeCount: 1,
    }));
    expect(restViolations({ ...tree, accounts })).toEqual(
      expect.arrayContaining([expect.stringMatching(/7 still reserved/), expect.stringMatching(/counts 1 at work/)]),
    );
  });
});
