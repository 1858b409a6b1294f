// Two owners share a tenant. Each has a budget for the day, above all of its agents; one reaches it, and gets more until the day ends. Then
// the tenant's budget has no room, and a person is asked.
import { createRuntime, defineAgent } from "troupe";
import { scriptedModel } from "troupe/testing";

const usage = { inputTokens: 200, outputTokens: 800 };
const clerk = defineAgent({
  name: "clerk",
  model: scriptedModel(() => ({ text: "Done.", usage })),
  price: { inputPerMillion: 1, outputPerMillion: 10 },
  maxOutputTokens: 800,
});
const runtime = await createRuntime({
  agents: [clerk],
  accounts: {
    tenant: { total: { maxCost: 0.034, askAtLimit: true } },
    owner: (ownerId) => ({ perDay: { maxCost: ownerId === "ada" ? 0.1 : 0.017 } }),
    timeZone: "Europe/Berlin",
  },
});

// When a limit will be met before its account renews, as `npx troupe forecast` computes it.
runtime.subscribe((event) => {
  if (event.type === "budget.forecast") console.log(`  ${event.message}`);
});

async function ask(ownerId: string): Promise<void> {
  const agent = await runtime.agent("clerk", { ownerId });
  await agent.start();
  const { status, stop } = await agent.executeTurn("Sort the post.").result;
  console.log(`${ownerId}: ${status}${stop ? `, ${stop.message.replace(/; it renews.*/, "")}` : ""}`);
}

// 1. Every turn has an agent of its own, so only the accounts above them hold the owner back.
for (const ownerId of ["bob", "bob", "bob", "ada"]) await ask(ownerId);

// 2. An operator adds to the account; the addition ends with the day.
await runtime.addToAccount("owner:perDay:bob", { maxCost: 0.05 });
await ask("bob");

// 3. The tenant's limit asks a person, who sees no figures of it. Callers of a server could not grant this.
const agent = await runtime.agent("clerk", { ownerId: "ada" });
await agent.start();
const turn = agent.executeTurn("Sort the rest.");
await turn.settled;
const [request] = await agent.requests();
console.log(request?.prompt);
if (request) await agent.decide(request.requestId, { verdict: "edited", arguments: { add: 0.1 }, by: "the operator" });
console.log(`ada: ${(await turn.result).status}`);

// 4. What each owner has spent, and the tenant.
for (const { id, used, limits } of await runtime.accountsAbove()) {
  console.log(`${id}: ${used.costMicros / 1_000_000} of ${(limits.maxCostMicros ?? 0) / 1_000_000} dollars`);
}
await runtime.shutdown();
