import { workerData } from "node:worker_threads";

/**
 * Kills its own process after a number of milliseconds. It runs in a separate thread, so that the kill can hit any
 * instruction, including a write.
 */
const { killAfterMs } = workerData as { readonly killAfterMs: number };
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, killAfterMs);
process.kill(process.pid, "SIGKILL");
