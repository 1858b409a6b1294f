import { workerData } from "node:worker_threads";

/**
 * Kills the process of the thread that started it, after so many milliseconds: from another thread, so that it falls
 * anywhere, in the middle of a write too.
 */
const { killAfterMs } = workerData as { readonly killAfterMs: number };
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, killAfterMs);
process.kill(process.pid, "SIGKILL");
