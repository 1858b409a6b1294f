import type { StatementSync } from "node:sqlite";
import { z } from "zod";
import { type Artifact, artifactSchema } from "../../state/index.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import { integerOf, parsed, type Row, textOf, wellFormed } from "./sqlite-row.ts";
import type { AgentSlot } from "./sqlite-slot.ts";
import type { ArtifactMeta } from "../rules/tables.ts";

const descriptionSchema = artifactSchema.omit({ content: true });
const contentSchema = z.string();

/** The rows of artifacts; one that is saved again under its id takes the place of the first. */
export class SqliteArtifacts {
  readonly #statements: Readonly<
    Record<"put" | "all" | "find" | "describe" | "newest" | "findByName" | "clear", StatementSync>
  >;

  constructor(connection: SqliteConnection) {
    this.#statements = {
      put: connection.prepare(
        `INSERT INTO artifacts (agent, artifact_id, name, version, description, content) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (agent, artifact_id) DO UPDATE SET name = excluded.name, version = excluded.version,
           description = excluded.description, content = excluded.content`,
      ),
      all: connection.prepare("SELECT description FROM artifacts WHERE agent = ? ORDER BY id"),
      find: connection.prepare("SELECT description, content FROM artifacts WHERE agent = ? AND artifact_id = ?"),
      describe: connection.prepare("SELECT description FROM artifacts WHERE agent = ? AND artifact_id = ?"),
      newest: connection.prepare(
        "SELECT coalesce(max(version), 0) AS version FROM artifacts WHERE agent = ? AND name = ?",
      ),
      findByName: connection.prepare(
        "SELECT description, content FROM artifacts WHERE agent = ? AND name = ? AND version = ?",
      ),
      clear: connection.prepare("DELETE FROM artifacts WHERE agent = ?"),
    };
  }

  /** Name and content are kept as JSON text, so that any string comes back as it was and no two names become one. */
  put(slot: AgentSlot, { content, ...description }: Artifact): void {
    const { artifactId, name, version } = description;
    const id = wellFormed(artifactId, "artifact id");
    const texts = [JSON.stringify(description), JSON.stringify(content)];
    this.#statements.put.run(slot.id, id, JSON.stringify(name), version, ...texts);
  }

  describe(slot: AgentSlot, artifactId: string): ArtifactMeta | undefined {
    const row = this.#statements.describe.get(slot.id, wellFormed(artifactId, "artifact id"));
    return row && descriptionOf(row, slot);
  }

  /** 0 where there is none. */
  newestVersion(slot: AgentSlot, name: string): number {
    const row = this.#statements.newest.get(slot.id, JSON.stringify(name)) ?? {};
    return integerOf(row, "version", "an artifact");
  }

  clear(slot: AgentSlot): void {
    this.#statements.clear.run(slot.id);
  }

  all(slot: AgentSlot): ArtifactMeta[] {
    return this.#statements.all.all(slot.id).map((row) => descriptionOf(row, slot));
  }

  find(slot: AgentSlot, artifactId: string): Artifact | undefined {
    return artifactOf(this.#statements.find.get(slot.id, wellFormed(artifactId, "artifact id")), slot);
  }

  findByName(slot: AgentSlot, name: string, version: number): Artifact | undefined {
    return artifactOf(this.#statements.findByName.get(slot.id, JSON.stringify(name), version), slot);
  }
}

function artifactOf(row: Row | undefined, slot: AgentSlot): Artifact | undefined {
  if (!row) return undefined;
  const where = `the content of an artifact of agent ${slot.record.value.agentId}`;
  return { ...descriptionOf(row, slot), content: parsed(contentSchema, textOf(row, "content", where), where) };
}

function descriptionOf(row: Row, slot: AgentSlot): ArtifactMeta {
  const where = `an artifact of agent ${slot.record.value.agentId}`;
  return parsed(descriptionSchema, textOf(row, "description", where), where);
}
