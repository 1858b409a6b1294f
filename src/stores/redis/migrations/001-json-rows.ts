import type { Migration } from "./migration.ts";

/**
 * The first layout. Under the prefix lies, with `{tenant/root}` for a tree and `{hints-N}` for a partition of the lists over trees
 * (all ids are URI-encoded there):
 *
 * - `{tenant/root}:rows`, a hash: records, heads, accounts, requests and versions of lists, by `agent:ID`, `head:ID`, `account:ID` and
 *   so on; each `VERSION|JSON`. `:meta` has the version and the last cursor of the tree, and a receipt for each process.
 * - `{tenant/root}:journal`, a stream: one entry a commit, with the fields `agent`, `version`, `entries` (a JSON list), and, where a
 *   turn ends, `turn` and `answer`.
 * - `{tenant/root}:agents`, `:accounts`, `:waiters`, `:requests`, `:open`, `:turns`, `:changes`, `:definitions`, `:timers`, `:due`,
 *   `:projections`, and for each agent `:inbox:ID`, `:messages:ID`, `:order:ID`, `:index:ID`, `:artifacts:ID`, `:contents:ID`.
 * - `{processes}:rows` and so on: the registered processes, stored like a tree; `{processes}:layout`.
 * - `{hints-N}:LIST:TENANT…`, sorted sets, and `{hints-N}:LIST-told:…`, hashes with the time at which a member was written last.
 *
 * All values are JSON with the names of their fields, checked by schema when they are read. Nothing is to be done for an empty prefix.
 */
export const jsonRows: Migration = {
  number: 1,
  troupe: "0.1.0",
  apply: async () => undefined,
};
