import { localQueues } from "../../src/queues/index.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { queuesContract } from "../contracts/queues.contract.ts";

/** The step, in milliseconds, by which the clock advances while a promise of the test is pending. */
const STEP_MS = 10;

queuesContract("local", () => {
  const clock = createFakeClock();
  const graceMs = 200;
  const queues = localQueues({ clock, graceMs, random: () => 0.5 });
  return {
    graceMs,
    client: () => queues,
    now: () => clock.elapsed(),
    async soon(promise) {
      let isSettled = false;
      promise.then(
        () => (isSettled = true),
        () => (isSettled = true),
      );
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        if (isSettled) return await promise;
        clock.advance(STEP_MS);
      }
    },
  };
});
