import type { AgentRecord, AgentRequest, Timer } from "../state/index.ts";
import { isDue, type Moment } from "./moment.ts";
import type { AgentFilter, RequestFilter } from "./ports.ts";
import type { RedisConnection } from "./redis-connection.ts";
import type { RedisHints } from "./redis-hints.ts";
import { type HintList, PARTITIONS, type RedisKeys, type TreeKeys } from "./redis-keys.ts";
import { collected, compareMembers, type Member, merged, type Source } from "./redis-merge.ts";
import type { RedisReader } from "./redis-reader.ts";
import { rowKinds } from "./redis-rows.ts";
import { requestMember } from "./redis-tables.ts";

const PAGE = 200;

const partitions = Array.from({ length: PARTITIONS }, (_, index) => index);

/** Questions over all trees, answered by the lists, and each answer looked up in its tree: the lists may be behind. */
export class RedisLists {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #reader: RedisReader;
  readonly #hints: RedisHints;
  readonly #correctTimers: (tree: TreeKeys) => Promise<void>;

  /** `correctTimers`: a transaction that tells the list when the tree's first timer is due. */
  constructor(
    connection: RedisConnection,
    keys: RedisKeys,
    reader: RedisReader,
    hints: RedisHints,
    correctTimers: (tree: TreeKeys) => Promise<void>,
  ) {
    this.#connection = connection;
    this.#keys = keys;
    this.#reader = reader;
    this.#hints = hints;
    this.#correctTimers = correctTimers;
  }

  async agents(filter: AgentFilter, limit: number): Promise<AgentRecord[]> {
    const { tenant, rootAgentId, after } = filter;
    if (rootAgentId !== undefined) return this.#agentsOfTree(filter, rootAgentId, limit);
    const sources = partitions.map((partition) => this.#byName(this.#keys.hints("agents", partition, tenant).list));
    const start = after === undefined ? undefined : { member: after, score: 0 };
    return collected(merged(sources, start), limit, async (members) => {
      const records = await Promise.all(
        members.map(({ member: id }) => this.#reader.row(this.#keys.treeOf(tenant, id), rowKinds.record(tenant, id))),
      );
      for (const [index, { member }] of members.entries()) {
        if (!records[index]) this.#forget("agents", tenant, member, member);
      }
      return records.flatMap((record) => (record && isWanted(record, filter) ? record : []));
    });
  }

  async requests(filter: RequestFilter, after: AgentRequest | undefined, limit: number): Promise<AgentRequest[]> {
    const { tenant, rootAgentId, agentId, status } = filter;
    const inTree = agentId ?? rootAgentId;
    const list: HintList = status === "open" ? "open" : "requests";
    const lists =
      inTree === undefined
        ? partitions.map((partition) => this.#keys.hints(list, partition, tenant).list)
        : [this.#keys.treeOf(tenant, inTree).requests];
    const start = after && { member: requestMember(after), score: after.openedAt };
    const members = merged(
      lists.map((key) => this.#byScore(key)),
      start,
    );
    return collected(members, limit, async (piece) => {
      const found = await Promise.all(
        piece.map(async ({ member }) => {
          const [requestId = "", ofAgent = ""] = JSON.parse(member) as readonly string[];
          const tree = this.#keys.treeOf(tenant, ofAgent);
          const request = await this.#reader.row(tree, rowKinds.request(ofAgent, requestId));
          if (!request && inTree === undefined) this.#forget(list, tenant, ofAgent, member);
          return request;
        }),
      );
      return found.flatMap((request) => (request && isAsked(request, filter) ? request : []));
    });
  }

  async dueTimers(moment: Moment, limit: number): Promise<Timer[]> {
    // Where the two times differ, one that seems due may not be.
    const until = Math.max(moment.now, moment.steady);
    const due = await collected(this.#treesByTimers(until), limit, async (members) => {
      const found = await Promise.all(members.map((member) => this.#dueOfTree(member, until)));
      return found.flat().filter((timer) => isDue(timer, moment));
    });
    return due.sort((a, b) => a.dueAt - b.dueAt);
  }

  async nextTimerAt(): Promise<number | undefined> {
    let next: number | undefined;
    for await (const member of this.#treesByTimers()) {
      if (next !== undefined && member.score >= next) break;
      const tree = this.#keys.ofTag(member.member);
      const first = await this.#reader.lowestScore(tree.due);
      if (first !== "") next = Math.min(next ?? Number.POSITIVE_INFINITY, Number(first));
      if (first !== String(member.score)) await this.#correctTimers(tree);
    }
    return next;
  }

  #treesByTimers(until?: number): AsyncGenerator<Member> {
    return merged(
      partitions.map((partition) => this.#byScore(this.#keys.hints("timers", partition).list, until)),
      undefined,
    );
  }

  /** What is not there (any more) leaves its list in time. */
  #forget(list: HintList, tenant: string, agentId: string, member: string): void {
    const { partition } = this.#keys.treeOf(tenant, agentId);
    this.#hints.forget(this.#keys.hints(list, partition, tenant), member).catch(() => undefined);
  }

  async #dueOfTree({ member, score }: Member, until: number): Promise<Timer[]> {
    const tree = this.#keys.ofTag(member);
    const timers = await this.#reader.timersUntil(tree, until);
    if (timers[0]?.dueAt !== score) await this.#correctTimers(tree);
    return timers;
  }

  async #agentsOfTree(filter: AgentFilter, rootAgentId: string, limit: number): Promise<AgentRecord[]> {
    const { tenant, after } = filter;
    const tree = this.#keys.treeOf(tenant, rootAgentId);
    const ids = (await this.#reader.list(tree.agents)).filter((id) => after === undefined || id > after).sort();
    const records = await this.#reader.rows(
      tree,
      ids.map((id) => rowKinds.record(tenant, id)),
    );
    return records.filter((record) => isWanted(record, filter)).slice(0, limit);
  }

  #byName(key: string): Source {
    return async (after) => {
      const from = after === undefined ? "-" : `(${after.member}`;
      const names = await this.#connection.run((client) => client.zrangebylex(key, from, "+", "LIMIT", 0, PAGE));
      return names.map((member) => ({ member, score: 0 }));
    };
  }

  #byScore(key: string, until: number | "+inf" = "+inf"): Source {
    return async (after) => {
      // Others of the same score may come before it.
      for (let offset = 0; ; offset += PAGE) {
        const from = after?.score ?? "-inf";
        const page = await this.#connection.run((client) =>
          client.zrangebyscore(key, from, until, "WITHSCORES", "LIMIT", offset, PAGE),
        );
        const members: Member[] = [];
        for (let at = 0; at < page.length; at += 2)
          members.push({ member: page[at] ?? "", score: Number(page[at + 1]) });
        const later = after ? members.filter((member) => compareMembers(member, after) > 0) : members;
        if (later.length > 0 || members.length < PAGE) return later;
      }
    };
  }
}

function isWanted(record: AgentRecord, { rootAgentId, sessionId, ownerId, rootsOnly }: AgentFilter): boolean {
  if (rootAgentId !== undefined && record.rootAgentId !== rootAgentId) return false;
  if (sessionId !== undefined && record.sessionId !== sessionId) return false;
  if (ownerId !== undefined && record.ownerId !== ownerId) return false;
  return !rootsOnly || record.parentAgentId === null;
}

function isAsked(request: AgentRequest, { rootAgentId, agentId, turnId, status }: RequestFilter): boolean {
  if (rootAgentId !== undefined && request.rootAgentId !== rootAgentId) return false;
  if (agentId !== undefined && request.agentId !== agentId) return false;
  if (turnId !== undefined && request.turnId !== turnId) return false;
  return status === undefined || request.status === status;
}
