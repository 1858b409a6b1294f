import {
  anyRule,
  type Clock,
  clockRule,
  type OptionsSchema,
  functionRule,
  optionsOf,
  systemClock,
} from "../base/index.ts";
import { InvariantError } from "../errors/index.ts";
import {
  checkAnyQueueName,
  checkedAdd,
  checkedWork,
  checkQueueName,
  checkWhole,
  CLOSE_DRAIN_MS,
  DEFAULT_DEAD_LETTERS_KEPT,
  DEFAULT_GRACE_MS,
  DEFAULT_HEALTH_MS,
  redactKnown,
} from "./checks.ts";
import { checkedTool, checkedWake, toolJobIdOf, wakeKeyOf } from "./jobs.ts";
import { LocalQueue } from "./local-queue.ts";
import { type QueueHealth, type Queues, WAKE_QUEUE } from "./ports.ts";
import { RunningJobs } from "./running-jobs.ts";

export interface LocalQueuesOptions {
  /** Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** Random numbers in [0, 1), for pauses between tries. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** How long a processor may continue after its signal was aborted, in milliseconds. Default 5,000. */
  readonly graceMs?: number | undefined;
  /** How many of the newest dead letters are kept per queue. Default 1,000. */
  readonly deadLettersKept?: number | undefined;
  /** Removes secrets from the errors of processors. Default: known formats, and the values of environment variables with secret names. */
  readonly redact?: ((text: string) => string) | undefined;
}

/** Queues within this process. They are lost when it ends, and their workers cannot die without it. */
export function localQueues(given?: LocalQueuesOptions): Queues {
  const options = optionsOf<LocalQueuesOptions>(given, "localQueues()", localOptionsSchema);
  const { clock = systemClock, random = Math.random, deadLettersKept = DEFAULT_DEAD_LETTERS_KEPT } = options;
  const { graceMs = DEFAULT_GRACE_MS, redact = redactKnown() } = options;
  checkWhole("deadLettersKept", deadLettersKept, 1, 1_000_000);
  checkWhole("graceMs", graceMs, 0, 3_600_000);
  const running = new RunningJobs({ clock, graceMs, redact });
  const queues = new Map<string, LocalQueue>();
  let isAtWork = false;
  let isClosed = false;

  function queueOf(name: string): LocalQueue {
    const known = queues.get(name);
    if (known) return known;
    const queue = new LocalQueue(name, { clock, random, running, deadLettersKept });
    queues.set(name, queue);
    return queue;
  }

  function assertOpen(): void {
    if (isClosed) throw new InvariantError("the queues are closed");
  }

  return {
    kind: "local",

    async wake(agent, trace) {
      assertOpen();
      const job = checkedWake(agent, trace);
      queueOf(WAKE_QUEUE).add(wakeKeyOf(job), job, { priority: 0, delayMs: 0, isFollowed: true });
    },

    async awaited(agents) {
      return agents.map((agent) => queues.get(WAKE_QUEUE)?.isInHand(wakeKeyOf(checkedWake(agent, undefined))) === true);
    },

    async add(queue, toolJob, addOptions = {}) {
      assertOpen();
      checkQueueName(queue);
      const job = checkedTool(toolJob);
      queueOf(queue).add(toolJobIdOf(job), job, { ...checkedAdd(addOptions), isFollowed: false });
    },

    async cancel(queue, key, reason) {
      assertOpen();
      checkQueueName(queue);
      return queueOf(queue).cancel(toolJobIdOf(key), reason);
    },

    async work(workOptions) {
      assertOpen();
      if (isAtWork || running.isLeaving) throw new InvariantError("work() was called twice, or after drain()");
      const works = checkedWork(workOptions);
      isAtWork = true;
      for (const work of works) queueOf(work.queue).work({ ...work, onDead: workOptions.onDead });
    },

    async names() {
      const known = [...queues].filter(([, queue]) => queue.isWorkedOn || queue.wasAddedTo);
      return known.map(([name]) => name).toSorted();
    },

    async counts(names = [...queues.keys()]) {
      return names.map((queue) => ({ queue, ...queueOf(queue).counts(), deaths: 0, refused: 0 }));
    },

    async workers(queue = WAKE_QUEUE) {
      assertOpen();
      checkAnyQueueName(queue);
      return queues.get(queue)?.isWorkedOn === true && !running.isLeaving ? 1 : 0;
    },

    async deadLetters(queue, { limit = 100 } = {}) {
      checkWhole("limit", limit, 1, 10_000);
      return queueOf(queue).deadLetters(limit);
    },

    health: ({ timeoutMs = DEFAULT_HEALTH_MS } = {}) => health(timeoutMs, running, isClosed),

    async drain({ timeoutMs }) {
      checkWhole("timeoutMs", timeoutMs, 0, 2 ** 31 - 1);
      return await running.drain(timeoutMs);
    },

    async close() {
      if (isClosed) return;
      isClosed = true;
      await running.drain(CLOSE_DRAIN_MS);
      for (const queue of queues.values()) queue.close();
    },
  };
}

/** Numbers are checked in `localQueues`, which has their defaults. */
const localOptionsSchema: OptionsSchema<LocalQueuesOptions> = {
  rules: { clock: clockRule, random: functionRule, graceMs: anyRule, deadLettersKept: anyRule, redact: functionRule },
};

/** Local jobs stop only if the event loop is blocked, so the health check measures its delay. */
async function health(timeoutMs: number, running: RunningJobs, isClosed: boolean): Promise<QueueHealth> {
  checkWhole("timeoutMs", timeoutMs, 1, 2 ** 31 - 1);
  const from = performance.now();
  await new Promise((resolve) => setImmediate(resolve));
  const roundTripMs = performance.now() - from;
  const problems = [
    ...(isClosed ? ["the queues are closed"] : []),
    ...(running.isLeaving && !isClosed ? ["the worker leaves"] : []),
    ...(roundTripMs > timeoutMs ? [`the canary took ${Math.round(roundTripMs)} ms`] : []),
  ];
  return { isHealthy: problems.length === 0, roundTripMs, problems };
}
