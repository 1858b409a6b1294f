import type { StatementSync } from "node:sqlite";
import { z } from "zod";
import { type Artifact, artifactSchema } from "../state/index.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import { parsed, type Row, textOf, wellFormed } from "./sqlite-row.ts";
import type { AgentSlot } from "./sqlite-slot.ts";

type Description = Omit<Artifact, "content">;

const descriptionSchema = artifactSchema.omit({ content: true });
const contentSchema = z.string();

/** The rows of artifacts; one that is saved again under its id takes the place of the first. */
export class SqliteArtifacts {
  readonly #statements: Readonly<Record<"put" | "all" | "find", StatementSync>>;

  constructor(connection: SqliteConnection) {
    this.#statements = {
      put: connection.prepare(
        `INSERT INTO artifacts (agent, artifact_id, description, content) VALUES (?, ?, ?, ?)
         ON CONFLICT (agent, artifact_id) DO UPDATE SET description = excluded.description, content = excluded.content`,
      ),
      all: connection.prepare("SELECT description FROM artifacts WHERE agent = ? ORDER BY id"),
      find: connection.prepare("SELECT description, content FROM artifacts WHERE agent = ? AND artifact_id = ?"),
    };
  }

  /** Content is kept as JSON text, so that any string comes back as it was. */
  put(slot: AgentSlot, artifacts: readonly Artifact[]): void {
    for (const { content, ...description } of artifacts) {
      const id = wellFormed(description.artifactId, "artifact id");
      this.#statements.put.run(slot.id, id, JSON.stringify(description), JSON.stringify(content));
    }
  }

  all(slot: AgentSlot): Description[] {
    return this.#statements.all.all(slot.id).map((row) => descriptionOf(row, slot));
  }

  find(slot: AgentSlot, artifactId: string): Artifact | undefined {
    const row = this.#statements.find.get(slot.id, wellFormed(artifactId, "artifact id"));
    if (!row) return undefined;
    const where = `artifact ${artifactId} of agent ${slot.record.value.agentId}`;
    return { ...descriptionOf(row, slot), content: parsed(contentSchema, textOf(row, "content", where), where) };
  }
}

function descriptionOf(row: Row, slot: AgentSlot): Description {
  const where = `an artifact of agent ${slot.record.value.agentId}`;
  return parsed(descriptionSchema, textOf(row, "description", where), where);
}
