import { z } from "zod";
import { oneOfRule, optionsOf } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Plugin } from "../hooks/index.ts";
import { defineTool, type RunContext } from "../tools/index.ts";
import { type Note, type NotesKey, type NotesStore, notesStoreRule } from "./notes-store.ts";
import { oneAtATime } from "./one-at-a-time.ts";
import { prefixRule } from "./prefix-rule.ts";

/** Options of `notes()`. */
export interface NotesOptions {
  /**
   * Whose notes they are. `agent`: of the one agent, kept as its artifacts. `owner`: of all agents of its owner that have `notes()` with
   * the same store; an agent without an owner has none.
   */
  readonly scope: "agent" | "owner";
  /** Where notes of owners are kept. Needed with scope `owner`, refused with scope `agent`. Default: none. */
  readonly store?: NotesStore | undefined;
  /** Text before the names of the tools, for an agent with both scopes: letters, digits, `_` and `-`. Default: none. */
  readonly prefix?: string | undefined;
}

const LONGEST_NOTE = 4_000;
const MOST_NOTES = 500;
const MOST_SHOWN = 30_000;

/** The notes of one scope, for one call. */
interface Book {
  list(): Promise<readonly Note[]>;
  add(note: Note): Promise<void>;
  remove(noteId: string): Promise<void>;
}

/**
 * Notes that outlast turns and runs: tools `add_note`, `read_notes` and `remove_note`. The model reads notes as results of a tool; they
 * are never instructions. Throws `InvalidInputError` for invalid options.
 */
export function notes(given: NotesOptions): Plugin {
  const options = optionsOf<NotesOptions>(given, "notes()", {
    rules: { scope: oneOfRule("agent", "owner"), store: notesStoreRule, prefix: prefixRule },
    needed: ["scope"],
  });
  const { scope, store, prefix = "" } = options;
  if (scope === "owner" && store === undefined) {
    throw new InvalidInputError(
      'notes(): scope "owner" needs a store, since its notes belong to several agents: store: fileNotes("./notes"), or one of your own',
    );
  }
  if (scope === "agent" && store !== undefined) {
    throw new InvalidInputError(
      'notes(): scope "agent" takes no store: its notes are artifacts of the agent; leave store out',
    );
  }
  const artifactName = `${prefix}notes.json`;
  const open = (run: RunContext): Book =>
    store === undefined ? bookOfAgent(artifactName, run) : bookOfOwner(store, run);
  // Artifacts are within the agent; a store is outside, and drops a second note of the same id.
  const effect = store === undefined ? "none" : "keyed";
  const whose = scope === "agent" ? "of yours" : "about this user";
  const add = defineTool({
    name: `${prefix}add_note`,
    description: `Adds a note ${whose}, which later conversations can read: a fact, a preference, a decision. One fact in each note; no passwords or keys.`,
    parameters: z.object({ text: z.string().trim().min(1).max(LONGEST_NOTE) }),
    effect,
    execute: async ({ text }, run) => {
      const note: Note = { id: run.idempotencyKey, text: text.toWellFormed(), createdAt: Date.now() };
      await locked(lockName(artifactName, run), async () => {
        const book = open(run);
        const known = await book.list();
        if (known.some(({ id }) => id === note.id)) return;
        if (known.length >= MOST_NOTES) {
          throw new InvalidInputError(
            `There are ${known.length} notes already; remove some that are no longer needed first.`,
          );
        }
        await book.add(note);
      });
      return `Noted (${note.id}).`;
    },
  });
  const read = defineTool({
    name: `${prefix}read_notes`,
    description: `Shows the notes ${whose}, the newest first. Use it at the beginning of a task.`,
    parameters: z.object({
      query: z.string().max(200).optional().describe("Only notes that contain one of these words. Default: all."),
    }),
    effect: "none",
    execute: async ({ query = "" }, run) => shown(matching(await open(run).list(), query)),
  });
  const remove = defineTool({
    name: `${prefix}remove_note`,
    description: "Removes a note that is wrong or no longer needed.",
    parameters: z.object({ id: z.string().min(1).max(1_000).describe("Its id, as read_notes shows it.") }),
    effect,
    execute: async ({ id }, run) => {
      await locked(lockName(artifactName, run), async () => await open(run).remove(id));
      return `The note ${id} is removed.`;
    },
  });
  const plugin = { name: `${prefix}notes`, tools: [add, read, remove] };
  // Artifacts are deleted with their agent.
  if (store === undefined) return plugin;
  return {
    ...plugin,
    forget: async ({ tenant, scope: of, id }) => {
      if (of === "owner") await store.clear({ tenant, scope: of, id });
    },
  };
}

function matching(all: readonly Note[], query: string): readonly Note[] {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const newest = all.toSorted((one, other) => other.createdAt - one.createdAt);
  if (words.length === 0) return newest;
  return newest.filter(({ text }) => words.some((word) => text.toLowerCase().includes(word)));
}

function shown(list: readonly Note[]): string {
  if (list.length === 0) return "There are no notes.";
  const lines: string[] = [];
  let room = MOST_SHOWN;
  for (const { id, text, createdAt } of list) {
    const line = `- ${text} (${id}, ${new Date(createdAt).toISOString().slice(0, 10)})`;
    room -= line.length;
    if (room < 0) return [...lines, `… and ${list.length - lines.length} more; use query`].join("\n");
    lines.push(line);
  }
  return lines.join("\n");
}

function bookOfOwner(store: NotesStore, run: RunContext): Book {
  const { tenant, ownerId } = run.agent;
  if (ownerId === null || ownerId.trim() === "") {
    throw new InvalidInputError("This agent has no owner, so there are no notes that it could read or add.");
  }
  const key: NotesKey = { tenant, scope: "owner", id: ownerId };
  return {
    list: async () => await store.list(key),
    add: async (note) => await store.add(key, note),
    remove: async (noteId) => await store.remove(key, noteId),
  };
}

const notesSchema = z.array(z.object({ id: z.string(), text: z.string(), createdAt: z.number() }));

/** The newest version of the artifact has all notes of the agent. */
function bookOfAgent(artifactName: string, run: RunContext): Book {
  const list = async (): Promise<readonly Note[]> => {
    const artifact = await run.artifact(artifactName);
    return artifact ? notesSchema.parse(JSON.parse(artifact.content)) : [];
  };
  const save = async (all: readonly Note[]): Promise<void> => {
    const content = JSON.stringify(all);
    await run.saveArtifact({ name: artifactName, contentType: "application/json", content });
  };
  return {
    list,
    add: async (note) => await save([...(await list()), note]),
    remove: async (noteId) => await save((await list()).filter(({ id }) => id !== noteId)),
  };
}

function lockName(artifactName: string, { agent: { tenant, agentId } }: RunContext): string {
  return JSON.stringify([artifactName, tenant, agentId]);
}

/** Calls of one answer run in parallel; an agent lives in one process at a time. */
const locked = oneAtATime();
