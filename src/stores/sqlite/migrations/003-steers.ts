import type { Migration } from "./sqlite-migration.ts";

/** Inputs for open turns, by the text that identifies the command. */
const steers = `
  CREATE TABLE steers (
    agent INTEGER NOT NULL,
    steer_id TEXT NOT NULL,
    state TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    step INTEGER,
    hash TEXT NOT NULL,
    PRIMARY KEY (agent, steer_id)
  ) STRICT, WITHOUT ROWID;
`;

export const steersOfAgents: Migration = {
  number: 3,
  troupe: "0.1.0",
  apply: (database) => database.exec(steers),
};
