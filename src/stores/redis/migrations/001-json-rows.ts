import type { Migration } from "./migration.ts";

/**
 * The first layout. Keys under the prefix; `{tenant/root}` stands for a tree and `{hints-N}` for a partition of the indexes over trees
 * (all ids are URI-encoded):
 *
 * - `{tenant/root}:rows`, a hash: records, heads, accounts, requests and versions of lists, under `agent:ID`, `head:ID`, `account:ID` and
 *   so on; each value is `VERSION|JSON`. `:meta` has the version and the last cursor of the tree, and a receipt for each process.
 * - `{tenant/root}:journal`, a stream: one entry per commit, with the fields `agent`, `version`, `entries` (a JSON list), and, if a turn
 *   ends, `turn` and `answer`.
 * - `{tenant/root}:agents`, `:accounts`, `:waiters`, `:requests`, `:open`, `:turns`, `:changes`, `:definitions`, `:timers`, `:due`,
 *   `:projections`, and for each agent `:inbox:ID`, `:messages:ID`, `:order:ID`, `:index:ID`, `:artifacts:ID`, `:contents:ID`.
 * - `{processes}:rows` and so on: the registered processes, stored like a tree; `{processes}:layout`.
 * - `{tenant/:schedules}:rows`, `:schedules` and `:due`: the schedules of a tenant, their keys, and when they are due.
 * - `{hints-N}:LIST:TENANT…`, sorted sets, and `{hints-N}:LIST-told:…`, hashes with the time of each member's last write.
 *
 * All values are JSON objects with named fields, checked by schema when they are read. An empty prefix needs no change.
 */
export const jsonRows: Migration = {
  number: 1,
  troupe: "0.1.0",
  apply: async () => undefined,
};
