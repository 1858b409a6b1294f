import { BullmqProcess } from "./bullmq-process.ts";
import { type BullmqQueuesOptions, checkedOptions } from "./bullmq-options.ts";
import { checkAnyQueueName, checkedAdd, checkQueueName, checkWhole } from "./checks.ts";
import { seal, checkedTool, checkedWake, toolJobIdOf, wakeKeyOf } from "./jobs.ts";
import { type Queues, WAKE_QUEUE } from "./ports.ts";

export type { BullmqQueuesOptions, PostgresQueuesOptions } from "./bullmq-options.ts";
export type { SigningKey } from "./jobs.ts";

/**
 * Queues in Redis 6.2 or later, single or cluster, or in Postgres 13 or later, with BullMQ, for any number of processes on any number of
 * machines. They connect on first use; close them when they are no longer needed.
 *
 * Throws `InvalidInputError` for contradicting options. The first use throws `InvalidInputError` for a Redis that evicts data when its
 * memory is full, or for a user of Postgres that may not create the tables, and `UnsupportedError` if the packages `bullmq` and `ioredis`
 * or `pg` are missing.
 */
export function bullmqQueues(options: BullmqQueuesOptions): Queues {
  const checked = checkedOptions(options);
  const own = new BullmqProcess(checked);
  const { keyspace, cancellations } = own;

  return {
    kind: "bullmq",

    async wake(agent, trace) {
      const job = checkedWake(agent, trace);
      await keyspace.wake(seal(WAKE_QUEUE, job, checked.signer), job);
    },

    async awaited(agents) {
      const keys = agents.map((agent) => wakeKeyOf(checkedWake(agent, undefined)));
      return await Promise.all(keys.map((key) => keyspace.isInHand(WAKE_QUEUE, key)));
    },

    async add(queue, toolJob, addOptions = {}) {
      checkQueueName(queue);
      const job = checkedTool(toolJob);
      const { priority, delayMs } = checkedAdd(addOptions);
      const data = seal(queue, job, checked.signer);
      await keyspace.add(queue, data, { jobId: toolJobIdOf(job), priority, delay: delayMs });
    },

    async cancel(queue, key, reason) {
      checkQueueName(queue);
      return await cancellations.cancel(queue, toolJobIdOf(key), reason);
    },

    work: (workOptions) => own.work(workOptions),
    names: () => keyspace.names(),
    counts: (queues) => own.counts(queues),

    async workers(queue = WAKE_QUEUE) {
      checkAnyQueueName(queue);
      return await own.presence.count(queue);
    },

    async deadLetters(queue, { limit = 100 } = {}) {
      checkWhole("limit", limit, 1, 10_000);
      return await keyspace.deadLetters(queue, limit);
    },

    health: (healthOptions) => own.health(healthOptions),

    async drain({ timeoutMs }) {
      checkWhole("timeoutMs", timeoutMs, 0, 2 ** 31 - 1);
      return await own.drain(timeoutMs);
    },

    close: () => own.close(),
  };
}
