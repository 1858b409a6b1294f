// A test's worker in its own process, which prints the jobs that it begins and never completes them. Arguments: the queues'
// options as JSON, and the effect of a job: `kill` ends the process as a crash would, `hang` lets the job hang until the test
// ends the process. When its input ends the worker closes; nothing else ends it then.
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
