// A person asks to be forgotten: every byte of their agents leaves the store, and a line stays that still verifies.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentDeletedError, createRuntime, defineAgent } from "troupe";
import { auditRun, verifyDeletion } from "troupe/inspector";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";

const folder = mkdtempSync(join(tmpdir(), "troupe-example-"));
const bytes = (): string =>
  readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), "latin1"))
    .join("");

const desk = defineAgent({ name: "desk", model: scriptedModel(() => "Noted."), instructions: "Take notes." });
const stores = sqliteStores(join(folder, "desk.db"));
// Agents without activity for 30 days are deleted without a request.
const runtime = await createRuntime({ agents: [desk], stores, retention: { endedAfterMs: 30 * 24 * 3_600_000 } });

// 1. Two agents of Ann and one of Ben.
for (const [agentId, ownerId, text] of [
  ["desk-1", "ann", "My number is 555-0100."],
  ["desk-2", "ann", "I live in Lane 7."],
  ["desk-3", "ben", "Hello."],
] as const) {
  const agent = await runtime.agent(desk, { agentId, ownerId });
  await agent.start();
  await agent.executeTurn(text).result;
}
// The head of the audit is kept in another system.
const { head } = await auditRun({ stores, agentId: "desk-1" });
console.log(`before: ${bytes().includes("555-0100") ? "the number is stored" : "no number"}`);

// 2. Ann asks to be forgotten. `by` names the case, and not the person.
const { trees, failed } = await runtime.deleteOwner("ann", { by: "request 812" });
const messages = trees.reduce((sum, { counts }) => sum + counts.messages, 0);
console.log(`deleted: ${trees.length} agents, ${messages} messages; failed: ${failed.length}`);
console.log(`after: ${/555-0100|Lane 7|desk-1/.test(bytes()) ? "a byte is left" : "no byte is left"}`);
console.log(`left: ${(await runtime.list()).map(({ agentId }) => agentId).join(", ")}`);

// 3. The id stays deleted, also for a process that has not seen the deletion.
const again = await runtime.agent(desk, { agentId: "desk-1" }).catch((error: unknown) => error);
console.log(again instanceof AgentDeletedError ? again.code : "created again");

// 4. The line that stays proves that the deleted run is the one whose head was kept.
const deletion = await stores.deletion("default", "desk-1");
if (deletion) {
  const { verdict, covered, entries } = verifyDeletion(deletion, "desk-1", { head: head ?? "" });
  console.log(`${verdict}: ${covered === entries ? "all" : covered} entries, for ${deletion.by}`);
}
await runtime.shutdown();
rmSync(folder, { recursive: true, force: true });
