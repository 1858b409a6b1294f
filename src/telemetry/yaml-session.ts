import { join } from "node:path";
import { stringify } from "yaml";
import { createRedactor, type OptionsSchema, flagRule, optionsOf, type Redactor, ruleOf } from "../base/index.ts";
import type { TroupeEvent } from "../state/index.ts";
import {
  assertRuntime,
  type EventFeed,
  redactorRule,
  type Telemetry,
  warnOnce,
  type JournalSource,
  TreeFeed,
} from "./listen.ts";
import { fileNameOf, writeWholeFile } from "./log-files.ts";
import { SessionFold, type SessionRecord, messagesOfTurn, type SessionMessage } from "./session-record.ts";

/** Options of `yamlSession()`. */
export interface YamlSessionOptions {
  /** The folder of the files; created if it does not exist. */
  readonly directory: string;
  /** Includes the messages that each turn added, which are read from the store when the turn ends. Default false. */
  readonly messages?: boolean | undefined;
  /** Removes secrets. Default: `createRedactor()`, which removes the environment's secrets. */
  readonly redactor?: Redactor | undefined;
}

/** Maximum number of sessions in memory; others are read from the journal again when they continue. */
const mostSessions = 200;

/**
 * Writes a YAML file for each root agent, `<agent id>_<start>.yaml`, and rewrites it whenever one of its turns has ended. The
 * file includes earlier turns and turns of other processes, which are read from the journal.
 * @throws InvalidInputError without a directory.
 */
export function yamlSession(runtime: JournalSource & EventFeed, given: YamlSessionOptions): Telemetry {
  assertRuntime(runtime, "yamlSession()");
  const options = optionsOf<YamlSessionOptions>(given, "yamlSession()", yamlOptionsSchema);
  const sessions = new SessionFiles(runtime, options);
  return {
    flush: () => sessions.flush(),
    close: () => {
      sessions.stop();
      return sessions.flush();
    },
  };
}

const yamlOptionsSchema: OptionsSchema<YamlSessionOptions> = {
  rules: {
    directory: ruleOf('a folder for its files: "sessions"', (value) => typeof value === "string" && value !== ""),
    messages: flagRule,
    redactor: redactorRule,
  },
  needed: ["directory"],
  instead: { path: "directory", folder: "directory", dir: "directory", content: "messages" },
};

/** Formats a session's record as YAML. */
export function sessionYaml(record: SessionRecord): string {
  return stringify(record, { lineWidth: 0, aliasDuplicateObjects: false });
}

interface Session {
  readonly fold: SessionFold;
  /** Messages of the ended turns. */
  readonly messages: Map<string, readonly SessionMessage[]>;
}

/**
 * Owns: the records of sessions, and the writing of their files, one write per file at a time. All records can be read
 * from the journal again.
 */
class SessionFiles {
  readonly #source: JournalSource;
  readonly #options: YamlSessionOptions;
  readonly #redactor: Redactor;
  readonly #feed: TreeFeed;
  /** Ordered by last use. */
  readonly #sessions = new Map<string, Session>();
  readonly #writes = new Map<string, Promise<void>>();
  readonly #changed = new Set<string>();
  readonly #warn = warnOnce("a session file could not be written");

  constructor(source: JournalSource & EventFeed, options: YamlSessionOptions) {
    this.#source = source;
    this.#options = options;
    this.#redactor = options.redactor ?? createRedactor();
    this.#feed = new TreeFeed(source, {
      what: "a session file",
      isConcerned: ({ turnId, type }) => turnId !== null && type !== "lifecycle.changed",
      needsPast: (event) => event.type !== "turn.started" || event.agentId !== event.rootAgentId || event.number > 1,
      onPast: (rootAgentId, events) => {
        const { fold } = this.#session(rootAgentId);
        for (const event of events) fold.note(event);
      },
      onEvent: (event) => this.#take(event),
    });
  }

  stop(): void {
    this.#feed.stop();
  }

  async flush(): Promise<void> {
    await this.#feed.flush();
    while (this.#writes.size > 0) await Promise.all(this.#writes.values());
  }

  #session(rootAgentId: string): Session {
    const session = this.#sessions.get(rootAgentId) ?? { fold: new SessionFold(rootAgentId), messages: new Map() };
    this.#sessions.delete(rootAgentId);
    this.#sessions.set(rootAgentId, session);
    for (const oldest of this.#sessions.keys()) {
      if (this.#sessions.size <= mostSessions || !this.#feed.forget(oldest)) break;
      this.#sessions.delete(oldest);
    }
    return session;
  }

  #take(event: TroupeEvent): Promise<void> | undefined {
    const { rootAgentId } = event;
    const session = this.#session(rootAgentId);
    if (session.fold.note(event) === undefined) return undefined;
    if (this.#options.messages === true) return this.#takeMessages(rootAgentId, session);
    this.#scheduleWrite(rootAgentId, session);
    return undefined;
  }

  async #takeMessages(rootAgentId: string, session: Session): Promise<void> {
    try {
      const { stores, tenant } = this.#source;
      const all = await stores.messages({ tenant, agentId: rootAgentId });
      for (const { turn_id } of session.fold.record?.turns ?? []) {
        if (!session.messages.has(turn_id)) session.messages.set(turn_id, messagesOfTurn(all, turn_id));
      }
    } finally {
      this.#scheduleWrite(rootAgentId, session);
    }
  }

  #scheduleWrite(rootAgentId: string, session: Session): void {
    this.#changed.add(rootAgentId);
    if (this.#writes.has(rootAgentId)) return;
    this.#writes.set(rootAgentId, this.#write(rootAgentId, session));
  }

  async #write(rootAgentId: string, session: Session): Promise<void> {
    // Lets the code that ended the turn run first.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#changed.delete(rootAgentId)) {
      try {
        await this.#writeOnce(rootAgentId, session);
      } catch (error) {
        this.#warn(error);
      }
    }
    this.#writes.delete(rootAgentId);
  }

  async #writeOnce(rootAgentId: string, { fold, messages }: Session): Promise<void> {
    const { record } = fold;
    if (!record) return;
    const turns = record.turns.map((turn) => ({ ...turn, ...messagesIn(messages, turn.turn_id) }));
    const name = `${fileNameOf(rootAgentId)}_${record.started.replaceAll(":", "-")}.yaml`;
    const shown = this.#redactor.value({ ...record, turns }) as SessionRecord;
    await writeWholeFile(join(this.#options.directory, name), sessionYaml(shown));
  }
}

function messagesIn(
  known: ReadonlyMap<string, readonly SessionMessage[]>,
  turnId: string,
): { messages?: readonly SessionMessage[] } {
  const messages = known.get(turnId);
  return messages ? { messages } : {};
}
