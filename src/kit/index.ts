// `troupe/kit`: tools and plugins for everyday agents, see docs/kit.md.
export { fileNotes } from "./file-notes.ts";
export type { CheckedCall, GuardContext, GuardedResult, GuardVerdict, PluginGuards } from "../hooks/index.ts";
export { folder } from "./folder.ts";
export type { FolderEntry } from "./jailed-folder.ts";
export { guard, type GuardOptions } from "./guard.ts";
export type { GuardedPlace } from "./guarded-places.ts";
export { memory } from "./memory.ts";
export { moderation, type ModerationOptions } from "./moderation.ts";
export { notes, type NotesOptions } from "./notes.ts";
export { memoryNotes, type Note, type NotesKey, type NotesStore } from "./notes-store.ts";
export { piiGuard, type PersonalData, type PiiGuardOptions } from "./pii-guard.ts";
export { shell, type ShellOptions, type ShellToolOptions } from "./shell.ts";
export type { CommandEnd, ShellCommand } from "./shell-command.ts";
export { skills } from "./skills.ts";
export { todos, type TodosOptions } from "./todos.ts";
export { tripwire, type TripwireOptions } from "./tripwire.ts";
export { workspace, type WorkspaceOptions } from "./workspace.ts";
export type { WorkspaceFiles } from "./workspace-files.ts";
