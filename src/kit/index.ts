// `troupe/kit`: tools and plugins for everyday agents, see docs/kit.md.
export { fileNotes } from "./file-notes.ts";
export { folder } from "./folder.ts";
export type { FolderEntry } from "./jailed-folder.ts";
export { memory } from "./memory.ts";
export { notes, type NotesOptions } from "./notes.ts";
export { memoryNotes, type Note, type NotesKey, type NotesStore } from "./notes-store.ts";
export { shell, type ShellOptions, type ShellToolOptions } from "./shell.ts";
export type { CommandEnd, ShellCommand } from "./shell-command.ts";
export { skills } from "./skills.ts";
export { todos, type TodosOptions } from "./todos.ts";
export { workspace, type WorkspaceOptions } from "./workspace.ts";
export type { WorkspaceFiles } from "./workspace-files.ts";
