// Two owners share a tenant. Each has a budget for the day, above all of its agents; one reaches it, and gets more until the day ends.
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
    tenant: { perMonth: { maxCost: 1 } },
    owner: (ownerId) => ({ perDay: { maxCost: ownerId === "ada" ? 0.1 : 0.017 } }),
    timeZone: "Europe/Berlin",
  },
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

// 3. What each owner has spent, and the tenant.
for (const { id, used, limits } of await runtime.accountsAbove()) {
  console.log(`${id}: ${used.costMicros / 1_000_000} of ${(limits.maxCostMicros ?? 0) / 1_000_000} dollars`);
}
await runtime.shutdown();
