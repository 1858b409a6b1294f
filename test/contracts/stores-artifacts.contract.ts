import { expect, test } from "vitest";
import type { NewArtifact, Stores } from "../../src/stores/index.ts";
import { type MakeEntry, messageOf, note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { type BatchParts, agentKey, type Owner, openAgent } from "./stores-fixtures.ts";

function artifactOf(artifactId: string, name: string): NewArtifact {
  const content = `content of ${artifactId}`;
  return {
    artifactId,
    name,
    contentType: "text/plain",
    size: content.length,
    createdAt: NOW,
    turnId: TURN,
    callId: `${TURN}:1:0`,
    content,
  };
}

/** Artifacts with their journal entries. */
function saving(...artifacts: NewArtifact[]): BatchParts {
  const entries = artifacts.map(({ artifactId, name, contentType, size }): MakeEntry => {
    const told = { turnId: TURN, step: 1, artifactId, name, contentType, size };
    return (envelope) => ({ type: "artifact.saved", ...envelope, ...told });
  });
  return { entries, artifacts };
}

export function artifactsContract(subject: () => Stores): void {
  const versions = async () =>
    (await subject().artifacts(agentKey())).map(({ artifactId, name, version }) => [artifactId, name, version]);

  test("versions count from 1 for each name; the entries contain them, returned and stored", async () => {
    const owner = await openAgent(subject());
    const first = await owner.commit(saving(artifactOf("a", "plan"), artifactOf("b", "plan"), artifactOf("c", "map")));
    const second = await owner.commit(saving(artifactOf("d", "plan")));
    expect(await versions()).toEqual([
      ["a", "plan", 1],
      ["b", "plan", 2],
      ["c", "map", 1],
      ["d", "plan", 3],
    ]);
    expect(first.entries).toMatchObject([{ version: 1 }, { version: 2 }, { version: 1 }]);
    expect(second.entries).toMatchObject([{ artifactId: "d", version: 3 }]);
    const rows = await subject().readJournal(agentKey(), 2);
    expect(rows.map((row) => row.entries)).toEqual([first.entries, second.entries]);
  });

  test("an artifact is found by its name: the newest version, or a given one", async () => {
    const owner = await openAgent(subject());
    await owner.commit(saving(artifactOf("a", "plan"), artifactOf("b", "plan")));
    const [old, newest] = [
      { ...artifactOf("a", "plan"), version: 1 },
      { ...artifactOf("b", "plan"), version: 2 },
    ];
    expect(await subject().artifactByName(agentKey(), "plan")).toEqual(newest);
    expect(await subject().artifactByName(agentKey(), "plan", 1)).toEqual(old);
    expect(await subject().artifact(agentKey(), "a")).toEqual(old);
    for (const version of [0, 3, 1.5, -1]) {
      expect(await subject().artifactByName(agentKey(), "plan", version)).toBeUndefined();
    }
    expect(await subject().artifactByName(agentKey(), "Plan")).toBeUndefined();
    expect(await subject().artifactByName(agentKey("nobody"), "plan")).toBeUndefined();
  });

  test("a binary keeps its encoding, and a text has none", async () => {
    const owner = await openAgent(subject());
    const binary = {
      ...artifactOf("a", "scan.pdf"),
      contentType: "application/pdf",
      encoding: "base64",
      content: "JVBERg==",
    } as const;
    await owner.commit(saving(binary, artifactOf("b", "plan")));
    expect(await subject().artifact(agentKey(), "a")).toEqual({ ...binary, version: 1 });
    expect(await subject().artifactByName(agentKey(), "scan.pdf")).toEqual({ ...binary, version: 1 });
    const { content: _content, ...described } = binary;
    expect(await subject().artifacts(agentKey())).toEqual([
      { ...described, version: 1 },
      expect.not.objectContaining({ encoding: expect.anything() as unknown }),
    ]);
    const tree = await subject().exportTree(TENANT, ROOT);
    expect(tree?.agents[0]?.artifacts[0]).toEqual({ ...binary, version: 1 });
  });

  test("an artifact records the turn and the call that saved it, or `null`", async () => {
    const owner = await openAgent(subject());
    await owner.commit(
      saving(
        artifactOf("a", "plan"),
        { ...artifactOf("b", "map"), turnId: null, callId: null },
        artifactOf("c", "key"),
      ),
    );
    const makers = (await subject().artifacts(agentKey())).map(({ turnId, callId }) => [turnId, callId]);
    const called = [TURN, `${TURN}:1:0`];
    expect(makers).toEqual([called, [null, null], called]);
    expect(await subject().artifact(agentKey(), "b")).toMatchObject({ turnId: null, callId: null });
    expect(await subject().artifactByName(agentKey(), "key")).toMatchObject({ turnId: TURN, callId: `${TURN}:1:0` });
  });

  test("similar names have separate versions, and so do agents", async () => {
    const names = ["a", "A", "a\0", "ä", "a\u0308", "", "\ud800", "\ud801", "\ufffd", "__proto__", '"a"'];
    const owners: Owner[] = [];
    for (const agentId of [ROOT, "other"]) owners.push(await openAgent(subject(), { agentId }));
    for (const owner of owners) {
      const outcome = await owner.commit(saving(...names.map((name, index) => artifactOf(`${index}`, name))));
      expect(outcome.entries).toMatchObject(names.map((name) => ({ name, version: 1 })));
    }
    for (const [index, name] of names.entries()) {
      expect(await subject().artifactByName(agentKey(), name)).toMatchObject({ artifactId: `${index}`, name });
    }
  });

  test("an artifact saved again keeps its version; under another name it is a new version of that name", async () => {
    const owner = await openAgent(subject());
    await owner.commit(saving(artifactOf("a", "plan"), artifactOf("b", "plan"), artifactOf("c", "map")));
    const again = { ...artifactOf("a", "plan"), content: "changed" };
    expect((await owner.commit(saving(again))).entries).toMatchObject([{ version: 1 }]);
    expect(await subject().artifactByName(agentKey(), "plan", 1)).toEqual({ ...again, version: 1 });
    expect((await owner.commit(saving(artifactOf("b", "map")))).entries).toMatchObject([{ name: "map", version: 2 }]);
    expect(await versions()).toEqual([
      ["a", "plan", 1],
      ["b", "map", 2],
      ["c", "map", 1],
    ]);
  });

  test("an entry of an artifact that is not in its batch is unchanged", async () => {
    const owner = await openAgent(subject());
    const { entries = [] } = saving(artifactOf("a", "plan"));
    const outcome = await owner.commit({ ...saving(artifactOf("b", "map")), entries });
    expect(outcome.entries[0]).not.toHaveProperty("version");
  });

  test("a batch that is sent again is answered with the versions of the first time", async () => {
    const owner = await openAgent(subject());
    const batch = owner.batch(saving(artifactOf("a", "plan")));
    const [first] = await subject().commit([batch], NOW);
    expect(await subject().commit([batch], NOW)).toEqual([{ ...first, accounts: undefined, follows: undefined }]);
    expect(await versions()).toEqual([["a", "plan", 1]]);
  });
}

export function clearingContract(subject: () => Stores): void {
  const messageIds = async (agentId: string = ROOT) =>
    (await subject().messages(agentKey(agentId))).map((message) => message.id);

  /** An agent with two rows of messages and two versions of an artifact. */
  async function openFull(agentId: string = ROOT): Promise<Owner> {
    const owner = await openAgent(subject(), { agentId });
    await owner.commit({ entries: [note("one")], messages: [messageOf("m1"), messageOf("m2")] });
    await owner.commit({ ...saving(artifactOf("a", "plan"), artifactOf("b", "plan")), messages: [messageOf("m3")] });
    return owner;
  }

  test("a cleared conversation has no messages left; the journal, the artifacts and other agents are kept", async () => {
    const owner = await openFull();
    await openFull("other");
    const before = await subject().readTree(TENANT, ROOT, 0, 100);
    const { cursor } = await owner.commit({ entries: [note("cleared")], cleared: "conversation" });
    expect(await messageIds()).toEqual([]);
    expect(await subject().messagesById(agentKey(), ["m1", "m2", "m3"])).toEqual([]);
    expect(await subject().messages(agentKey(), { maxMessages: 2 })).toEqual([]);
    const after = await subject().readTree(TENANT, ROOT, 0, 100);
    expect(after.slice(0, -1)).toEqual(before);
    expect(after.at(-1)).toMatchObject({ cursor });
    expect(await subject().artifacts(agentKey())).toHaveLength(2);
    expect(await messageIds("other")).toEqual(["m1", "m2", "m3"]);
  });

  test("messages in or after the clearing batch are kept, also under an id that was used before", async () => {
    const owner = await openFull();
    await owner.commit({ entries: [note("cleared")], cleared: "conversation", messages: [messageOf("m2", "anew")] });
    await owner.commit({ entries: [note("more")], messages: [messageOf("m1", "anew too")] });
    expect(await subject().messages(agentKey())).toEqual([messageOf("m2", "anew"), messageOf("m1", "anew too")]);
    expect(await subject().messagesById(agentKey(), ["m1", "m3"])).toEqual([messageOf("m1", "anew too")]);
    await owner.commit({ entries: [note("cleared again")], cleared: "conversation" });
    expect(await messageIds()).toEqual([]);
  });

  test("clearing all removes the artifacts too, and their versions start again at 1", async () => {
    const owner = await openFull();
    const outcome = await owner.commit({ ...saving(artifactOf("c", "plan")), cleared: "all" });
    expect(outcome.entries).toMatchObject([{ artifactId: "c", version: 1 }]);
    expect(await messageIds()).toEqual([]);
    expect(await subject().artifacts(agentKey())).toMatchObject([{ artifactId: "c", version: 1 }]);
    expect(await subject().artifact(agentKey(), "a")).toBeUndefined();
  });

  test("a batch that is rolled back clears nothing", async () => {
    const owner = await openFull();
    const lost = { agentId: "nobody", item: { kind: "budget.freed", key: "k", at: NOW } } as const;
    const parts = { entries: [note("lost")], messages: [messageOf("m4")], posts: [lost] };
    await expect(owner.commit({ ...parts, cleared: "all" })).rejects.toThrow(/nobody/);
    expect(await messageIds()).toEqual(["m1", "m2", "m3"]);
    expect(await subject().messagesById(agentKey(), ["m2"])).toEqual([messageOf("m2")]);
    expect(await subject().artifactByName(agentKey(), "plan")).toMatchObject({ artifactId: "b", version: 2 });
  });

  test("an agent without messages can be cleared, also by a batch without entries", async () => {
    const owner = await openAgent(subject());
    await owner.commit({ cleared: "all" });
    expect(await messageIds()).toEqual([]);
  });
}
