// Conversations in your own table: the runtime's store stays authoritative, and your table gets a copy of every message,
// once and in order, compacted when the agent compacts. Also: an agent that is saved only on request.
import { DatabaseSync } from "node:sqlite";
import { createRuntime, defineAgent, type Message, type MessageStore, summarize, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";

/** Messages as rows that any program can read. Repeated messages have no effect: `INSERT OR IGNORE`. */
class MessageTable implements MessageStore {
  readonly #table = new DatabaseSync(":memory:");

  constructor() {
    this.#table.exec(
      "CREATE TABLE messages (place INTEGER, context TEXT, id TEXT, message TEXT, UNIQUE (context, id))",
    );
  }

  async append(agentId: string, messages: readonly Message[]): Promise<void> {
    const place = "(SELECT coalesce(max(place), 0) + 1 FROM messages)";
    const insert = this.#table.prepare(`INSERT OR IGNORE INTO messages VALUES (${place}, ?, ?, ?)`);
    for (const message of messages) insert.run(agentId, message.id, JSON.stringify(message));
  }

  async getRecent(agentId: string, { maxMessages = -1 }: { maxMessages?: number | undefined } = {}) {
    const newest = "SELECT place, message FROM messages WHERE context = ? ORDER BY place DESC LIMIT ?";
    const rows = this.#table.prepare(newest).all(agentId, maxMessages);
    return rows.toReversed().map(({ message }) => JSON.parse(String(message)) as Message);
  }

  async compact(agentId: string, { through, summary, kept }: Parameters<MessageStore["compact"]>[1]) {
    const last = this.#table.prepare("SELECT place FROM messages WHERE context = ? AND id = ?").get(agentId, through);
    if (!last) return; // done already
    const stays = kept.map(() => "?").join(", ");
    const remove = `DELETE FROM messages WHERE context = ? AND place <= ? AND id NOT IN (${stays})`;
    this.#table.prepare(remove).run(agentId, Number(last["place"]), ...kept);
    if (!summary) return;
    const first = "(SELECT coalesce(min(place), 1) - 1 FROM messages)";
    const insert = this.#table.prepare(`INSERT OR IGNORE INTO messages VALUES (${first}, ?, ?, ?)`);
    insert.run(agentId, summary.id, JSON.stringify(summary));
  }

  async clear(agentId: string): Promise<void> {
    this.#table.prepare("DELETE FROM messages WHERE context = ?").run(agentId);
  }
}

const guide = defineAgent({
  name: "guide",
  model: scriptedModel(({ messages }) => {
    const last = textOf(messages.at(-1)?.content ?? "");
    return last.includes("<conversation>") ? "They asked about bears and bridges." : `Bern has ${last}.`;
  }),
  maxMessages: 5,
  autoCompact: { strategy: summarize({ keep: 3 }) },
});

const table = new MessageTable();
const runtime = await createRuntime({ agents: [guide], projections: { messages: table } });

async function show(agentId: string, when: string): Promise<void> {
  await runtime.projected(agentId); // everything committed so far is in the table
  console.log(`${agentId} ${when}`);
  const messages = await table.getRecent(agentId);
  if (messages.length === 0) console.log("   (nothing)");
  for (const { role, content } of messages) console.log(`   ${role}: ${textOf(content).replaceAll(/\s+/g, " ")}`);
}

const tour = await runtime.agent("guide", { agentId: "tour" });
await tour.start();
for (const question of ["bears", "bridges"]) await tour.executeTurn(question).result;
await show("tour", "after two turns");
for (const question of ["arcades", "trams"]) await tour.executeTurn(question).result;
await show("tour", "after four: the agent has compacted its context, and so has the table");
console.log(`   the runtime itself still has ${(await tour.getMessages()).length} messages`);

const draft = await runtime.agent("guide", { agentId: "draft", autoSave: false });
await draft.start();
await draft.executeTurn("chocolate").result;
await show("draft", "with autoSave: false");
await draft.saveState();
await show("draft", "after saveState()");

await runtime.shutdown();
