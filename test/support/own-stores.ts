import type {
  AgentMetadata,
  Artifact,
  ArtifactStore,
  Message,
  MessageCompaction,
  MessageStore,
  StateStore,
} from "../../src/index.ts";

/** Called before each write: it may wait, or throw as a store that cannot be reached. */
export type BeforeWrite = (operation: string, contextId: string) => Promise<void> | void;

/** A message store of the user's own: what it holds, and the ids of every append it was asked for. */
export class OwnMessages implements MessageStore {
  readonly name: string | undefined;
  readonly appended: string[] = [];
  readonly #before: BeforeWrite | undefined;
  readonly #conversations = new Map<string, Message[]>();

  constructor(before?: BeforeWrite, name?: string) {
    this.#before = before;
    this.name = name;
  }

  async append(contextId: string, messages: readonly Message[]): Promise<void> {
    await this.#before?.("append", contextId);
    const known = this.of(contextId);
    const fresh = messages.filter(({ id }) => !known.some((message) => message.id === id));
    this.appended.push(...messages.map(({ id }) => id));
    this.#conversations.set(contextId, [...known, ...fresh]);
  }

  async getRecent(contextId: string, { maxMessages }: { maxMessages?: number | undefined } = {}): Promise<Message[]> {
    const all = this.of(contextId);
    return maxMessages === undefined ? [...all] : all.slice(Math.max(0, all.length - maxMessages));
  }

  async compact(contextId: string, { through, summary, kept }: MessageCompaction): Promise<void> {
    await this.#before?.("compact", contextId);
    const all = this.of(contextId);
    const end = all.findIndex(({ id }) => id === through);
    if (end < 0) return;
    const left = all.filter(({ id }, index) => index > end || kept.includes(id));
    this.#conversations.set(contextId, summary ? [summary, ...left] : left);
  }

  async clear(contextId: string): Promise<void> {
    await this.#before?.("clear", contextId);
    this.#conversations.delete(contextId);
  }

  of(contextId: string): readonly Message[] {
    return this.#conversations.get(contextId) ?? [];
  }

  idsOf(contextId: string): string[] {
    return this.of(contextId).map(({ id }) => id);
  }
}

export class OwnArtifacts implements ArtifactStore {
  readonly #before: BeforeWrite | undefined;
  readonly #artifacts = new Map<string, Map<string, Artifact>>();

  constructor(before?: BeforeWrite) {
    this.#before = before;
  }

  async save(contextId: string, artifact: Artifact): Promise<void> {
    await this.#before?.("save", contextId);
    const known = this.#artifacts.get(contextId) ?? new Map<string, Artifact>();
    if (!known.has(artifact.artifactId)) known.set(artifact.artifactId, artifact);
    this.#artifacts.set(contextId, known);
  }

  async get(contextId: string, idOrName: string, version?: number): Promise<Artifact | undefined> {
    const all = this.of(contextId);
    const byId = version === undefined ? all.find(({ artifactId }) => artifactId === idOrName) : undefined;
    const versions = all.filter(({ name }) => name === idOrName).sort((one, other) => one.version - other.version);
    return byId ?? (version === undefined ? versions.at(-1) : versions.find((one) => one.version === version));
  }

  async list(contextId: string): Promise<Omit<Artifact, "content">[]> {
    return this.of(contextId).map(({ content: _content, ...meta }) => meta);
  }

  async clear(contextId: string): Promise<void> {
    await this.#before?.("clear", contextId);
    this.#artifacts.delete(contextId);
  }

  of(contextId: string): Artifact[] {
    return [...(this.#artifacts.get(contextId)?.values() ?? [])];
  }
}

export class OwnStates implements StateStore {
  readonly #before: BeforeWrite | undefined;
  readonly #states = new Map<string, AgentMetadata>();

  constructor(before?: BeforeWrite) {
    this.#before = before;
  }

  async save(contextId: string, metadata: AgentMetadata): Promise<void> {
    await this.#before?.("save", contextId);
    this.#states.set(contextId, metadata);
  }

  async load(contextId: string): Promise<AgentMetadata | undefined> {
    return this.#states.get(contextId);
  }
}

export function ownStores(before?: BeforeWrite) {
  return { messages: new OwnMessages(before), artifacts: new OwnArtifacts(before), state: new OwnStates(before) };
}
