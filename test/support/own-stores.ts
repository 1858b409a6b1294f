import type {
  AgentMetadata,
  Artifact,
  ArtifactStore,
  Message,
  MessageCompaction,
  MessageStore,
  StateStore,
} from "../../src/index.ts";

/** Called before each write: it may wait, or throw like an unreachable store. */
export type BeforeWrite = (operation: string, agentId: string) => Promise<void> | void;

/** A custom message store: its contents, and the ids of every requested append. */
export class OwnMessages implements MessageStore {
  readonly name: string | undefined;
  readonly appended: string[] = [];
  readonly #before: BeforeWrite | undefined;
  readonly #conversations = new Map<string, Message[]>();

  constructor(before?: BeforeWrite, name?: string) {
    this.#before = before;
    this.name = name;
  }

  async append(agentId: string, messages: readonly Message[]): Promise<void> {
    await this.#before?.("append", agentId);
    const known = this.of(agentId);
    const fresh = messages.filter(({ id }) => !known.some((message) => message.id === id));
    this.appended.push(...messages.map(({ id }) => id));
    this.#conversations.set(agentId, [...known, ...fresh]);
  }

  async getRecent(agentId: string, { maxMessages }: { maxMessages?: number | undefined } = {}): Promise<Message[]> {
    const all = this.of(agentId);
    return maxMessages === undefined ? [...all] : all.slice(Math.max(0, all.length - maxMessages));
  }

  async compact(agentId: string, { through, summary, kept }: MessageCompaction): Promise<void> {
    await this.#before?.("compact", agentId);
    const all = this.of(agentId);
    const end = all.findIndex(({ id }) => id === through);
    if (end < 0) return;
    const left = all.filter(({ id }, index) => index > end || kept.includes(id));
    this.#conversations.set(agentId, summary ? [summary, ...left] : left);
  }

  async clear(agentId: string): Promise<void> {
    await this.#before?.("clear", agentId);
    this.#conversations.delete(agentId);
  }

  of(agentId: string): readonly Message[] {
    return this.#conversations.get(agentId) ?? [];
  }

  idsOf(agentId: string): string[] {
    return this.of(agentId).map(({ id }) => id);
  }
}

export class OwnArtifacts implements ArtifactStore {
  readonly #before: BeforeWrite | undefined;
  readonly #artifacts = new Map<string, Map<string, Artifact>>();

  constructor(before?: BeforeWrite) {
    this.#before = before;
  }

  async save(agentId: string, artifact: Artifact): Promise<void> {
    await this.#before?.("save", agentId);
    const known = this.#artifacts.get(agentId) ?? new Map<string, Artifact>();
    if (!known.has(artifact.artifactId)) known.set(artifact.artifactId, artifact);
    this.#artifacts.set(agentId, known);
  }

  async get(agentId: string, idOrName: string, version?: number): Promise<Artifact | undefined> {
    const all = this.of(agentId);
    const byId = version === undefined ? all.find(({ artifactId }) => artifactId === idOrName) : undefined;
    const versions = all.filter(({ name }) => name === idOrName).sort((one, other) => one.version - other.version);
    return byId ?? (version === undefined ? versions.at(-1) : versions.find((one) => one.version === version));
  }

  async list(agentId: string): Promise<Omit<Artifact, "content">[]> {
    return this.of(agentId).map(({ content: _content, ...meta }) => meta);
  }

  async clear(agentId: string): Promise<void> {
    await this.#before?.("clear", agentId);
    this.#artifacts.delete(agentId);
  }

  of(agentId: string): Artifact[] {
    return [...(this.#artifacts.get(agentId)?.values() ?? [])];
  }
}

export class OwnStates implements StateStore {
  readonly #before: BeforeWrite | undefined;
  readonly #states = new Map<string, AgentMetadata>();

  constructor(before?: BeforeWrite) {
    this.#before = before;
  }

  async save(agentId: string, metadata: AgentMetadata): Promise<void> {
    await this.#before?.("save", agentId);
    this.#states.set(agentId, metadata);
  }

  async load(agentId: string): Promise<AgentMetadata | undefined> {
    return this.#states.get(agentId);
  }
}

export function ownStores(before?: BeforeWrite) {
  return { messages: new OwnMessages(before), artifacts: new OwnArtifacts(before), state: new OwnStates(before) };
}
