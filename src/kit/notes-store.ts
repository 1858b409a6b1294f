import { hasMethods, type OptionRule, ruleOf } from "../base/index.ts";

/** One note. */
export interface Note {
  /** Id of the note: the same for every repeat of the call that added it. */
  readonly id: string;
  /** Its text, up to 4,000 characters. It was written by a model. */
  readonly text: string;
  /** When it was added, in milliseconds since the epoch. */
  readonly createdAt: number;
}

/** Whose notes they are. Notes of different keys must never mix. */
export interface NotesKey {
  /** The tenant of the runtime. */
  readonly tenant: string;
  /** `owner`: notes of all agents of an owner. */
  readonly scope: "owner";
  /** Id of the owner; never empty. */
  readonly id: string;
}

/** Where notes of owners are kept. The methods may be called by several processes at once. */
export interface NotesStore {
  /** All notes of a key, in any order. */
  list(key: NotesKey): Promise<readonly Note[]>;
  /** Adds a note. The same id again changes nothing. */
  add(key: NotesKey, note: Note): Promise<void>;
  /** Removes a note, with its text. An id that does not exist changes nothing. */
  remove(key: NotesKey, noteId: string): Promise<void>;
  /** Removes all notes of a key, with their texts; `runtime.deleteOwner()` calls it. */
  clear(key: NotesKey): Promise<void>;
}

export const notesStoreRule: OptionRule = ruleOf(
  'a store of notes: fileNotes("./notes"), memoryNotes(), or an object with list(), add(), remove() and clear()',
  (value) => hasMethods(value, ["list", "add", "remove", "clear"]),
);

/** Keeps notes in the memory of the process, for tests. They end with the process. */
export function memoryNotes(): NotesStore {
  const all = new Map<string, Map<string, Note>>();
  const of = (key: NotesKey): Map<string, Note> => {
    const name = JSON.stringify([key.tenant, key.scope, key.id]);
    const notes = all.get(name) ?? new Map<string, Note>();
    all.set(name, notes);
    return notes;
  };
  return {
    list: async (key) => [...of(key).values()],
    async add(key, note) {
      if (!of(key).has(note.id)) of(key).set(note.id, note);
    },
    async remove(key, noteId) {
      of(key).delete(noteId);
    },
    async clear(key) {
      of(key).clear();
    },
  };
}
