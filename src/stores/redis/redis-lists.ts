import type { Moment } from "../../budget/index.ts";
import {
  type AgentRecord,
  type AgentRequest,
  agentOfTurn,
  type Schedule,
  scheduleDueAt,
  type Timer,
  type TreeWebhooks,
  type TurnRecord,
} from "../../state/index.ts";
import {
  type AgentFilter,
  type AgentListCursor,
  byAge,
  byChange,
  isDue,
  isRequestOf,
  isScheduleOf,
  isTurnOf,
  type RequestFilter,
  type ScheduleCursor,
  type ScheduleFilter,
  type TurnFilter,
  type TurnListCursor,
} from "../rules/queries.ts";
import { CorruptTimers } from "../rules/stored-values.ts";
import type { RedisConnection } from "./redis-connection.ts";
import type { RedisIndexes } from "./redis-indexes.ts";
import {
  type IndexKeys,
  type IndexName,
  ofOwner,
  PARTITIONS,
  type RedisKeys,
  requestMember,
  type TreeKeys,
  turnIndexes,
} from "./redis-keys.ts";
import { collected, type Member, merged, pagesOf } from "./redis-pages.ts";
import type { RedisReader } from "./redis-reader.ts";
import { rowKinds } from "./redis-rows.ts";

/** How many records of one tree are read at once. */
const RECORDS = 200;

/**
 * How often to list turns if one of them had an outdated position, which is then corrected. Turns that moved in three attempts change all
 * the time, and any list of them is outdated on arrival.
 */
const LIST_ATTEMPTS = 3;

/** Transactions that correct a tree's entry in an index by time. */
interface Corrections {
  /** Corrects the time of the tree's first timer. */
  timers(tree: TreeKeys): Promise<void>;
  webhooks(tree: TreeKeys): Promise<void>;
}

const partitions = Array.from({ length: PARTITIONS }, (_, index) => index);

/**
 * Answers queries over all trees from the indexes, and checks each result in its tree, because indexes may be outdated. Lists in the
 * order newest first have negated times as scores, because Redis lists the lowest score first.
 */
export class RedisLists {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #reader: RedisReader;
  readonly #indexes: RedisIndexes;
  readonly #correct: Corrections;
  readonly #damaged = new CorruptTimers();

  constructor(
    connection: RedisConnection,
    keys: RedisKeys,
    reader: RedisReader,
    indexes: RedisIndexes,
    correct: Corrections,
  ) {
    this.#connection = connection;
    this.#keys = keys;
    this.#reader = reader;
    this.#indexes = indexes;
    this.#correct = correct;
  }

  /** `place`: the parsed `after` of a filter with the order `newest`. */
  async agents(filter: AgentFilter, limit: number, place?: AgentListCursor): Promise<AgentRecord[]> {
    const { tenant, rootAgentId, after, order } = filter;
    if (rootAgentId !== undefined) return this.#agentsOfTree(filter, rootAgentId, limit, place);
    const isNewest = order === "newest";
    const [list, ...of] = listFor(filter);
    const keys = partitions.map((partition) => this.#keys.index(list, partition, ...of).list);
    const byName = after === undefined ? undefined : { member: after, score: 0 };
    const start = isNewest ? place && { member: place.agentId, score: -place.createdAt } : byName;
    const found = merged(pagesOf(this.#connection, keys, { by: isNewest ? "score" : "name", wanted: limit }), start);
    return collected(found, limit, async (members) => {
      const records = await Promise.all(
        members.map(({ member: id }) => this.#reader.row(this.#keys.treeOf(tenant, id), rowKinds.record(tenant, id))),
      );
      for (const [index, { member }] of members.entries()) {
        if (!records[index]) this.#forget(member, member, list, ...of);
      }
      return records.flatMap((record) => (record && isWanted(record, filter) ? record : []));
    });
  }

  /** Only reads the index, not the trees. */
  async rootIds(tenant: string, after: string | undefined, limit: number): Promise<string[]> {
    const keys = partitions.map((partition) => this.#keys.index("roots", partition, tenant).list);
    const start = after === undefined ? undefined : { member: after, score: 0 };
    const found = merged(pagesOf(this.#connection, keys, { by: "name", wanted: limit }), start);
    return collected(found, limit, async (members) => members.map(({ member }) => member));
  }

  async requests(filter: RequestFilter, after: AgentRequest | undefined, limit: number): Promise<AgentRequest[]> {
    const { tenant, rootAgentId, agentId, ownerId, status } = filter;
    const inTree = agentId ?? rootAgentId;
    const list = status === "open" ? "open" : "requests";
    const of = ownerId === undefined ? [] : ofOwner(ownerId);
    const lists =
      inTree === undefined
        ? partitions.map((partition) => this.#keys.index(list, partition, tenant, ...of).list)
        : [this.#keys.treeOf(tenant, inTree)[list]];
    const start = after && { member: requestMember(after), score: after.openedAt };
    const members = merged(pagesOf(this.#connection, lists, { by: "score", wanted: limit }), start);
    return collected(members, limit, async (piece) => {
      const found = await Promise.all(
        piece.map(async ({ member }) => {
          const [requestId = "", ofAgent = ""] = JSON.parse(member) as readonly string[];
          const tree = this.#keys.treeOf(tenant, ofAgent);
          const request = await this.#reader.row(tree, rowKinds.request(ofAgent, requestId));
          if (!request && inTree === undefined) this.#forget(ofAgent, member, list, tenant, ...of);
          return request;
        }),
      );
      return found.flatMap((request) => (request && isRequestOf(filter, request) ? request : []));
    });
  }

  async turns(filter: TurnFilter, limit: number, place?: TurnListCursor): Promise<TurnRecord[]> {
    for (let attempt = 1; ; attempt += 1) {
      const { turns, hasMoved } = await this.#turnsListed(filter, limit, place);
      if (!hasMoved || attempt === LIST_ATTEMPTS) return turns.sort(byChange);
    }
  }

  /** `hasMoved`: a turn had an outdated position, which is being corrected. */
  async #turnsListed(
    filter: TurnFilter,
    limit: number,
    place: TurnListCursor | undefined,
  ): Promise<{ readonly turns: TurnRecord[]; readonly hasMoved: boolean }> {
    const { tenant, agentId } = filter;
    const isOfUnfinished = filter.status === "queued" || filter.status === "open";
    const indexOf = (partition: number): IndexKeys => {
      if (isOfUnfinished) return this.#keys.index("unfinished", partition, tenant);
      const found = turnIndexes(this.#keys, { tenant, partition }, filter).at(-1);
      return found ?? this.#keys.index("turns", partition, tenant);
    };
    const tree = agentId === undefined ? undefined : this.#keys.treeOf(tenant, agentId);
    const lists = tree ? [tree.changes] : partitions.map((partition) => indexOf(partition).list);
    const start = place && { member: place.turnId, score: -place.changedAt };
    let hasMoved = false;
    const turnOf = async ({ member, score }: Member): Promise<TurnRecord | undefined> => {
      const ofTree = tree ?? this.#keys.treeOf(tenant, agentOfTurn(member));
      const turn = await this.#reader.turn(ofTree, member);
      if (turn && turn.changedAt !== -score) hasMoved = true;
      if (!tree) await this.#correctTurn(ofTree, indexOf(ofTree.partition), { member, score }, turn);
      return turn;
    };
    const members = merged(pagesOf(this.#connection, lists, { by: "score", wanted: limit }), start);
    const turns = await collected(members, limit, async (piece) => {
      const found = await Promise.all(piece.map(turnOf));
      return found.flatMap((turn) =>
        turn && isTurnOf(filter, turn) && (!place || byChange(place, turn) < 0) ? turn : [],
      );
    });
    return { turns, hasMoved };
  }

  /** Corrects an index entry that its writer could not correct because of a crash. */
  async #correctTurn(
    tree: TreeKeys,
    keys: IndexKeys,
    { member, score }: Member,
    turn: TurnRecord | undefined,
  ): Promise<void> {
    if (!turn) return void this.#indexes.forget(keys, member).catch(() => undefined);
    const isOfUnfinished = keys.list === this.#keys.index("unfinished", tree.partition, tree.tenant).list;
    const isOver = isOfUnfinished && turn.stopReason !== null;
    if (turn.changedAt === -score && !isOver) return;
    const written = await this.#indexes.lastWritten(keys, member);
    const now = await this.#reader.turn(tree, member);
    if (now) await this.#indexes.correct(keys, member, written, isOver ? undefined : -now.changedAt);
  }

  async dueTimers(moment: Moment, limit: number): Promise<Timer[]> {
    // Wall-clock and steady time differ: a timer before the later of the two may not be due.
    const until = Math.max(moment.now, moment.steady);
    const due = await collected(this.#treesByTimers(limit, until), limit, async (members) => {
      const found = await Promise.all(members.map((member) => this.#dueOfTree(member, until)));
      return found.flat().filter((timer) => isDue(timer, moment));
    });
    return due.sort((a, b) => a.dueAt - b.dueAt);
  }

  async nextTimerAt(): Promise<number | undefined> {
    let next: number | undefined;
    // The second tree is needed to see whether the first one's timer is the earliest.
    for await (const member of this.#treesByTimers(2)) {
      if (next !== undefined && member.score >= next) break;
      const tree = this.#keys.ofTag(member.member);
      const first = await this.#reader.lowestScore(tree.due);
      if (first !== "") next = Math.min(next ?? Number.POSITIVE_INFINITY, Number(first));
      if (first !== String(member.score)) await this.#correct.timers(tree);
    }
    return next;
  }

  async dueWebhooks(tenant: string, now: number, limit: number): Promise<TreeWebhooks[]> {
    const keys = partitions.map((partition) => this.#keys.index("webhooks", partition, tenant).list);
    const members = merged(pagesOf(this.#connection, keys, { by: "score", wanted: limit, until: now }), undefined);
    return collected(members, limit, async (piece) => {
      const found = await Promise.all(
        piece.map(async ({ member, score }) => {
          const tree = this.#keys.ofTag(member);
          const stored = await this.#reader.row(tree, rowKinds.webhooks);
          if (stored?.dueAt !== score) await this.#correct.webhooks(tree);
          return stored;
        }),
      );
      return found.flatMap((stored) => (stored !== undefined && stored.dueAt <= now ? stored : []));
    });
  }

  /** A schedule and its places in both lists change in one transaction, so neither list is ever outdated. */
  async schedules(filter: ScheduleFilter, limit: number): Promise<Schedule[]> {
    const { tenant, after } = filter;
    const group = this.#keys.schedulesOf(tenant);
    const start = after === undefined ? undefined : { member: after, score: 0 };
    const members = merged(pagesOf(this.#connection, [group.schedules], { by: "name", wanted: limit }), start);
    return collected(members, limit, async (piece) => {
      const found = await this.#reader.rows(
        group,
        piece.map(({ member }) => rowKinds.schedule(member)),
      );
      return found.filter((schedule) => isScheduleOf(filter, schedule));
    });
  }

  async dueSchedules(tenant: string, now: number, limit: number, place?: ScheduleCursor): Promise<Schedule[]> {
    const group = this.#keys.schedulesOf(tenant);
    const start = place && { member: place.key, score: place.dueAt };
    const order = { by: "score", wanted: limit, until: now } as const;
    const members = merged(pagesOf(this.#connection, [group.due], order), start);
    return collected(members, limit, async (piece) => {
      const kinds = piece.map(({ member }) => rowKinds.schedule(member));
      const found = await Promise.all(
        kinds.map(
          async (kind) => await this.#reader.row(group, kind).catch((error: unknown) => this.#damaged.report(error)),
        ),
      );
      // It may have changed since the list was read.
      return found.flatMap((schedule) => (schedule && isDueUntil(schedule, now) ? schedule : []));
    });
  }

  #treesByTimers(wanted: number, until?: number): AsyncGenerator<Member> {
    const keys = partitions.map((partition) => this.#keys.index("timers", partition).list);
    const order = { by: "score", wanted, ...(until === undefined ? {} : { until }) } as const;
    return merged(pagesOf(this.#connection, keys, order), undefined);
  }

  /** Removes a member that does not exist from its index. */
  #forget(agentId: string, member: string, list: IndexName, tenant: string, ...of: readonly string[]): void {
    const { partition } = this.#keys.treeOf(tenant, agentId);
    this.#indexes.forget(this.#keys.index(list, partition, tenant, ...of), member).catch(() => undefined);
  }

  async #dueOfTree({ member, score }: Member, until: number): Promise<Timer[]> {
    const tree = this.#keys.ofTag(member);
    const { first, timers } = await this.#reader.timersUntil(tree, until);
    if (first !== String(score)) await this.#correct.timers(tree);
    return timers;
  }

  async #agentsOfTree(
    filter: AgentFilter,
    rootAgentId: string,
    limit: number,
    place: AgentListCursor | undefined,
  ): Promise<AgentRecord[]> {
    const { tenant } = filter;
    // A tree has only one root, which is compared with the position.
    const after = filter.order === "newest" ? undefined : filter.after;
    const tree = this.#keys.treeOf(tenant, rootAgentId);
    const ids = (await this.#reader.list(tree.agents)).filter((id) => after === undefined || id > after).sort();
    const found: AgentRecord[] = [];
    for (let at = 0; at < ids.length && found.length < limit; at += RECORDS) {
      const kinds = ids.slice(at, at + RECORDS).map((id) => rowKinds.record(tenant, id));
      const records = await this.#reader.rows(tree, kinds);
      found.push(...records.filter((one) => isWanted(one, filter) && (!place || byAge(place, one) < 0)));
    }
    return found.slice(0, limit);
  }
}

function isDueUntil(schedule: Schedule, now: number): boolean {
  return (scheduleDueAt(schedule) ?? Number.POSITIVE_INFINITY) <= now;
}

/** The shortest index that contains all results. */
function listFor({ tenant, sessionId, ownerId, rootsOnly, order }: AgentFilter): [IndexName, string, ...string[]] {
  if (order === "newest") return ["newest", tenant];
  if (sessionId !== undefined) return ["session", tenant, sessionId];
  if (ownerId !== undefined) return ["owner", tenant, ownerId];
  return [rootsOnly ? "roots" : "agents", tenant];
}

function isWanted(record: AgentRecord, { rootAgentId, sessionId, ownerId, rootsOnly }: AgentFilter): boolean {
  if (rootAgentId !== undefined && record.rootAgentId !== rootAgentId) return false;
  if (sessionId !== undefined && record.sessionId !== sessionId) return false;
  if (ownerId !== undefined && record.ownerId !== ownerId) return false;
  return !rootsOnly || record.parentAgentId === null;
}
