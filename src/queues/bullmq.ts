import { BullmqDesk } from "./bullmq-desk.ts";
import { type BullmqQueuesOptions, checkedOptions } from "./bullmq-connection.ts";
import { checkAnyQueueName, checkedAdd, checkQueueName, checkWhole } from "./checks.ts";
import { seal, checkedTool, checkedWake, toolJobIdOf, wakeKeyOf } from "./jobs.ts";
import { type Queues, WAKE_QUEUE } from "./ports.ts";
import { createId } from "../base/index.ts";

export type { BullmqQueuesOptions } from "./bullmq-connection.ts";
export type { SigningKey } from "./jobs.ts";

/**
 * Queues in Redis 6.2 or later, single or cluster, by BullMQ, for any number of processes on any number of machines.
 * They connect on first use; close them when they are no longer needed.
 *
 * Throws `InvalidInputError` for options that do not go together. The first use throws `InvalidInputError` for a Redis
 * that evicts data when its memory is full, and `UnsupportedError` without the packages `bullmq` and `ioredis`.
 */
export function bullmqQueues(options: BullmqQueuesOptions): Queues {
  const checked = checkedOptions(options);
  const desk = new BullmqDesk(checked);
  const { places, marks } = desk;

  return {
    kind: "bullmq",

    async wake(agent, trace) {
      const job = checkedWake(agent, trace);
      const data = seal(WAKE_QUEUE, job, checked.signer);
      // Each wake is a separate job. A wake that is requested while another one of the agent runs waits until that one
      // has ended; a wake that waits for its next try is run at once instead.
      const deduplication = { id: wakeKeyOf(job), keepLastIfActive: true, reschedule: true };
      await places.add(WAKE_QUEUE, data, { jobId: createId("wake"), deduplication });
    },

    async awaited(agents) {
      return await marks.areInHand(
        WAKE_QUEUE,
        agents.map((agent) => wakeKeyOf(checkedWake(agent, undefined))),
      );
    },

    async add(queue, toolJob, addOptions = {}) {
      checkQueueName(queue);
      const job = checkedTool(toolJob);
      const { priority, delayMs } = checkedAdd(addOptions);
      const data = seal(queue, job, checked.signer);
      const jobId = toolJobIdOf(job);
      await marks.setAsideRefused(queue, jobId);
      await places.add(queue, data, { jobId, priority, delay: delayMs });
    },

    async cancel(queue, key, reason) {
      checkQueueName(queue);
      return await marks.cancel(queue, toolJobIdOf(key), reason);
    },

    work: (workOptions) => desk.work(workOptions),
    names: () => places.names(),
    counts: (queues) => desk.counts(queues),

    async workers(queue = WAKE_QUEUE) {
      checkAnyQueueName(queue);
      return await desk.presence.count(queue);
    },

    async deadLetters(queue, { limit = 100 } = {}) {
      checkWhole("limit", limit, 1, 10_000);
      return await places.deadLetters(queue, limit);
    },

    health: (healthOptions) => desk.health(healthOptions),

    async drain({ timeoutMs }) {
      checkWhole("timeoutMs", timeoutMs, 0, 2 ** 31 - 1);
      return await desk.drain(timeoutMs);
    },

    close: () => desk.close(),
  };
}
