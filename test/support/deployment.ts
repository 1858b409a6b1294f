import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type AgentDefinition,
  createRuntime,
  localQueues,
  type Queues,
  type Runtime,
  type RuntimeOptions,
  type Stores,
} from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { queuesOn, ownQueuePrefix } from "./bullmq-queues.ts";
import type { RedisServer } from "./redis-server.ts";
import { ownPrefix, storesOn } from "./redis-stores.ts";

export type MemberOptions = Partial<Omit<RuntimeOptions, "stores" | "queues">> & {
  readonly agents: readonly AgentDefinition[];
};

export interface Member {
  readonly runtime: Runtime;
  /** As SIGKILL: its later calls to stores and queues have no effect. */
  kill(): Promise<void>;
}

/** Several runtimes as the processes of one deployment. */
export class Deployment {
  readonly #server: RedisServer | undefined;
  readonly #folder: string;
  readonly #prefix = ownPrefix();
  readonly #queuePrefix = ownQueuePrefix();
  /** Without Redis, all processes other than clients share these queues. */
  readonly #shared: Queues = { ...localQueues(), kind: "shared" };
  readonly #closes: (() => Promise<void>)[] = [];
  #isWorked = false;

  /** Runs on Redis and BullMQ. Without a server it runs on a SQLite file, with at most one worker process. */
  constructor(server?: RedisServer) {
    this.#server = server;
    this.#folder = mkdtempSync(join(tmpdir(), "troupe-deployment-"));
  }

  async open(options: MemberOptions): Promise<Runtime> {
    return (await this.join(options)).runtime;
  }

  async join(options: MemberOptions): Promise<Member> {
    let isKilled = false;
    const dead = <T extends object>(target: T): T =>
      new Proxy(target, {
        get: (object, name) => {
          const member: unknown = Reflect.get(object, name);
          if (typeof member !== "function") return member;
          const call = member as (...given: unknown[]) => unknown;
          return (...given: unknown[]) => (isKilled ? new Promise<never>(() => undefined) : call.apply(object, given));
        },
      });
    const stores = this.#stores();
    const inner = this.#queues(options.role !== "client");
    const work: Queues["work"] = (given) =>
      inner.work({ ...given, onFault: (error) => (isKilled ? undefined : given.onFault?.(error)) });
    const queues: Queues = { ...inner, work };
    const runtime = await createRuntime({ leaseMs: 2_000, ...options, stores: dead(stores), queues: dead(queues) });
    this.#closes.push(async () => {
      if (isKilled) await stores.close();
      else await runtime.shutdown();
    });
    return {
      runtime,
      kill: async () => {
        isKilled = true;
        // It keeps its jobs until their locks have expired.
        await queues.close();
      },
    };
  }

  async close(): Promise<void> {
    for (const close of this.#closes.splice(0).toReversed()) await close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #stores(): Stores {
    return this.#server
      ? storesOn(this.#server, { prefix: this.#prefix })
      : sqliteStores(join(this.#folder, "troupe.db"));
  }

  #queues(works: boolean): Queues {
    if (this.#server) return queuesOn(this.#server, { prefix: this.#queuePrefix });
    if (works && this.#isWorked) throw new Error("without Redis only one process can work on the queues");
    this.#isWorked ||= works;
    return works ? this.#shared : { ...this.#shared, close: async () => undefined };
  }
}
