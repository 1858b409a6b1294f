// A worker of a test, as a process of its own: it says what it begins, and does not outlive it. Arguments: the queues' options as
// JSON, and what a job does to it: `kill` ends it as a crash would, `hang` lets it hang until the test ends it. When its
// input ends it leaves, and nothing else ends it then.
import { bullmqQueues, type BullmqQueuesOptions } from "../../src/queues/bullmq.ts";
import type { Job, JobOutcome } from "../../src/queues/index.ts";

const [, , options = "{}", how = "hang"] = process.argv;
const queues = bullmqQueues(JSON.parse(options) as BullmqQueuesOptions);

async function run(job: Job): Promise<JobOutcome> {
  process.stdout.write(`begun ${job.kind === "tool" ? job.callId : job.agentId}\n`);
  if (how === "kill") process.kill(process.pid, "SIGKILL");
  return await new Promise<never>(() => undefined);
}

await queues.work({
  wakes: { concurrency: 10, run },
  tools: { queues: { web: { concurrency: 10 } }, run },
  onDead: async (job) => void process.stdout.write(`dead ${job.kind}\n`),
});
process.stdout.write("ready\n");
process.stdin.once("end", () => {
  queues
    .drain({ timeoutMs: 500 })
    .then(() => queues.close())
    .then(() => process.stdout.write("left\n"), console.error);
});
process.stdin.resume();
