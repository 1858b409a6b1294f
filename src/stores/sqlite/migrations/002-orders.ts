import type { Migration } from "./sqlite-migration.ts";

/**
 * Indexes in the order in which rows are read, so that reading the newest messages of a long conversation needs no sorting. Each index
 * entry ends with the integer key of its row.
 */
const orders = `
  CREATE INDEX messages_by_agent ON messages (agent);
  CREATE INDEX artifacts_by_agent ON artifacts (agent);
  CREATE INDEX agents_of_tree ON agents (root);
  CREATE INDEX waiters_by_position ON waiters (account, position);
`;

export const ordersOfRows: Migration = {
  number: 2,
  troupe: "0.1.0",
  apply: (database) => database.exec(orders),
};
