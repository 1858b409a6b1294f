// A run is audited: its head is kept elsewhere, and a payment that is changed in the store afterwards is found.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, defineAgent, defineTool } from "troupe";
import { auditRun, pageOfAudit, readAudit, verifyAudit, withoutContent } from "troupe/inspector";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const pay = defineTool({
  name: "pay",
  description: "Pays money.",
  parameters: z.object({ to: z.string(), cents: z.int() }),
  effect: "keyed",
  needsApproval: true,
  execute: ({ to, cents }) => `paid ${cents} cents to ${to}`,
});
const desk = defineAgent({
  name: "desk",
  model: scriptedModel([{ toolCalls: [{ name: "pay", arguments: { to: "Ann", cents: 500 } }] }, "Ann got 5 dollars."]),
  instructions: "Be fair.",
  tools: [pay],
});

// 1. A run with an approval. Its head goes to another system, such as a log that only grows.
const runtime = await createRuntime({ agents: [desk] });
const agent = await runtime.agent("desk", { agentId: "complaint-7" });
await agent.start();
const turn = agent.executeTurn("It arrived broken.");
await turn.settled;
for (const { requestId } of await agent.requests()) {
  await agent.decide(requestId, { verdict: "approved", by: "mo@example.com" });
}
console.log((await turn.result).text);
const audit = await auditRun({ stores: runtime.stores, agentId: "complaint-7" });
const head = audit.head ?? "";
await runtime.shutdown();

// 2. What the run has done, and that its record is still the same.
const report = verifyAudit(audit, { head });
console.log(`${report.verdict}: ${report.covered} of ${report.entries} entries`);
for (const { name, argumentsHash, verdict, by } of report.approvals) {
  console.log(`${name} with arguments ${argumentsHash}: ${verdict} by ${by}`);
}
for (const { name, effect, outcome } of report.effects) console.log(`${name} (${effect}): ${outcome}`);

// 3. Someone changes the payment in the record. The audit names the entry.
const changed = readAudit(JSON.parse(JSON.stringify(audit).replaceAll('"cents":500', '"cents":5')));
const broken = verifyAudit(changed, { head });
console.log(broken.verdict);
for (const { seq, problem } of broken.problems) console.log(`  ${seq === null ? "run" : `entry ${seq}`}: ${problem}`);

// 4. For others: the same proof without texts, as a page that verifies itself in a browser.
const bare = withoutContent(audit);
console.log(`without texts: ${verifyAudit(bare, { head }).verdict}`);
const folder = mkdtempSync(join(tmpdir(), "troupe-audit-"));
const page = await pageOfAudit(bare).catch((error: unknown) => error);
if (typeof page === "string") writeFileSync(join(folder, "audit.html"), page);
rmSync(folder, { recursive: true });
