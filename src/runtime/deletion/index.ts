export { assertRoot, type DeletionDependencies, finishDeletions, type TreeCopies } from "./delete-tree.ts";
export { storedDeletions } from "./stored-deletions.ts";
export { deleteAgent, deleteOwner, pruneTrees, type PruneOptions, rootsOf } from "./delete-trees.ts";
export { pruneSchedules } from "./prune-schedules.ts";
export { forgetData, unknownKeepers } from "./personal-data.ts";
