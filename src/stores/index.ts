// The public module of the stores: the ports, the shared rules and values, and the in-memory stores, which are the default. `sqlite.ts`,
// `redis.ts` and `postgres.ts` are separate entries of the package, so that `import "troupe"` loads no driver.
export { memoryStores } from "./memory.ts";
export { addToOuter } from "./rules/add-to-outer.ts";
export * from "./rules/batch.ts";
export { commitCharged } from "./rules/charged-commit.ts";
export { allApplied } from "./rules/database-stores.ts";
export * from "./rules/foreign-writes.ts";
export * from "./rules/live-channel.ts";
export type { HoldEnd, OuterAnswers } from "./rules/outer-answers.ts";
export * from "./rules/outcomes.ts";
export * from "./rules/ports.ts";
export { currentProcess, isRunning, type ProcessSigns, signsOf } from "./rules/processes.ts";
export * from "./rules/queries.ts";
export { JOB_LOOK_MS, jobTimerId } from "./rules/queued-calls.ts";
export {
  isIntactDefinition,
  type ReadRun,
  readRunFile,
  RUN_FORMAT,
  type RunFile,
  runFileSchema,
} from "./rules/run-file.ts";
export { requestTimerId } from "./rules/requests.ts";
export { limitTimerId } from "./rules/ledger.ts";
export { deletedError, deletedIdHash } from "./rules/deletions.ts";
export { nodeSha256, TreeChain } from "./rules/tree-chain.ts";
export { assertBudgetSet } from "./rules/set-budget.ts";
// These do not load SQLite.
export { translated as translatedSqliteError } from "./sqlite/sqlite-errors.ts";
export { databasePath, prepareFile as prepareSqliteFile } from "./sqlite/sqlite-path.ts";
