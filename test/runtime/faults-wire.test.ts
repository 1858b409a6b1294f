import * as fc from "fast-check";
import { afterEach, expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, openaiModel } from "../../src/index.ts";
import type { EntryOf } from "../../src/state/index.ts";
import { amount } from "../support/full.ts";
import { entriesOfType, loopTurns, orderFault } from "../support/journal-probes.ts";
import type { FakeClock } from "../../src/testing/index.ts";
import { type ModelServer, type ServerReply, startModelServer } from "../support/model-server.ts";
import { describeRuntimes } from "../support/runtimes.ts";

/** Total number of failure sequences; 1,000 is the full count of F26. */
const sequences = Number(process.env["TROUPE_SEQUENCES"] ?? amount(150, 30));
const sequencesOfPart = 50;
const maxModelAttempts = 4;
/** In real time: the socket notices a silent server, not the fake clock. */
const silenceMs = 750;
const silence = { requestTimeoutMs: silenceMs, headersTimeoutMs: silenceMs, stallTimeoutMs: silenceMs };

interface Failure {
  readonly kind: string;
  /** Value of `Retry-After`; 0 omits the header. */
  readonly seconds: number;
}

const seconds = fc.integer({ min: 1, max: 20 });
const failure: fc.Arbitrary<Failure> = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.record({ kind: fc.constantFrom("429", "429 in milliseconds", "503 with Retry-After"), seconds }),
  },
  {
    weight: 60,
    arbitrary: fc.record({
      kind: fc.constantFrom("408", "409", "429", "500", "502", "503", "529", "cut text", "cut call", "garbage"),
      seconds: fc.constant(0),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("silence"), seconds: fc.constant(0) }) },
);

/** Failures before each of the turn's two answers, and whether the test subscribes to the stream. */
const sequence = fc.record({
  before: fc.tuple(fc.array(failure, { maxLength: 5 }), fc.array(failure, { maxLength: 5 })),
  isStreamed: fc.boolean(),
});

const partial = "half an answer";

function replyTo({ kind, seconds: wait }: Failure, gone: AbortSignal): ServerReply {
  const retryAfter = { "retry-after": String(wait) };
  if (kind === "cut text") return { deltas: [partial, partial], cutAfterChunks: 2 };
  if (kind === "cut call") return { text: partial, toolCalls: [{ name: "look" }], cutAfterChunks: 3 };
  if (kind === "garbage") return { status: 200, errorBody: { nonsense: partial } };
  if (kind === "silence") return { text: partial, delayUntil: whenAborted(gone) };
  if (kind === "429 in milliseconds") return { status: 429, headers: { "retry-after-ms": String(wait * 1_000) } };
  return { status: Number.parseInt(kind, 10), headers: wait > 0 ? retryAfter : {} };
}

async function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve(), { once: true });
  await promise;
}

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

// Real sockets need turns of the event loop; the stores make no difference here.
describeRuntimes(
  "failures on the wire",
  (stage) => {
    let server: ModelServer | undefined;
    afterEach(async () => {
      await server?.stop();
      server = undefined;
    });

    it.each(Array.from({ length: Math.ceil(sequences / sequencesOfPart) }, (_, part) => ({ part })))(
      "F26: the attempts stay within one bound, honour Retry-After and commit nothing partial: part $part",
      async () => {
        let due: (Failure | ServerReply)[] = [];
        let asked = 0;
        server = await startModelServer((_body, { signal }) => {
          asked += 1;
          const next = due.shift();
          if (!next) return { status: 418 };
          return "kind" in next ? replyTo(next, signal) : next;
        });
        const { baseURL } = server;
        const model = openaiModel("served", { apiKey: "secret-key", baseURL, ...silence });
        const worker = defineAgent({ name: "worker", model, tools: [look], maxModelAttempts });
        const runtime = await stage().open({ agents: [worker], random: () => 0.25 });
        let number = 0;
        const property = fc.asyncProperty(sequence, async ({ before, isStreamed }) => {
          const agentId = `w-${(number += 1)}`;
          const agent = await runtime.agent("worker", { agentId });
          await agent.start();
          const failsFor = before.findIndex((failures) => failures.length >= maxModelAttempts);
          due = [...before[0], { text: "Let me see.", toolCalls: [{ name: "look" }] }, ...before[1], "done"].map(
            (one) => (typeof one === "string" ? { text: one } : one),
          );
          asked = 0;
          const turn = agent.executeTurn("go");
          const listener = isStreamed ? turn.subscribe(() => undefined) : undefined;
          const result = await untilEnded(stage().clock, turn.result);
          listener?.unsubscribe();

          const failed = failsFor < 0 ? before : before.slice(0, failsFor + 1);
          const attempts = failed.map((failures) => Math.min(failures.length + 1, maxModelAttempts));
          expect(asked).toBe(attempts.reduce((sum, count) => sum + count, 0));
          const waits = await entriesOfType(stage().look(), agentId, "model.failed");
          const requested = await entriesOfType(stage().look(), agentId, "model.requested");
          for (const { step, attempt, retryAt } of waits) {
            const next = requested.find((one) => one.step === step && one.attempt === attempt + 1);
            expect(next?.at ?? 0).toBeGreaterThanOrEqual(retryAt ?? 0);
          }
          expectWaits(waits, failed.map((failures) => failures.slice(0, maxModelAttempts)).flat());
          expect(result).toMatchObject(
            failsFor < 0 ? { status: "completed", text: "done", steps: 2 } : { status: "failed" },
          );
          const messages = await agent.getMessages();
          expect(orderFault(messages)).toBeUndefined();
          expect(JSON.stringify(messages)).not.toContain(partial);
          expect(messages).toHaveLength(failsFor < 0 ? 4 : 1 + 2 * failsFor);
          const committed = await entriesOfType(stage().look(), agentId, "model.responded");
          expect(committed).toHaveLength(failsFor < 0 ? 2 : failsFor);
          for (const { reserved } of await runtime.accounts(agentId)) expect(reserved.tokens).toBe(0);
        });
        await fc.assert(property, {
          seed: 20_261_121,
          numRuns: Math.min(sequencesOfPart, sequences),
          interruptAfterTimeLimit: 170_000,
          markInterruptAsFailure: true,
        });
      },
    );
  },
  ["memory"],
);

/** Expects the server's wait to the millisecond, otherwise a back-off, and no wait after the last attempt. */
function expectWaits(waits: readonly EntryOf<"model.failed">[], failures: readonly Failure[]): void {
  const waited = waits.map(({ at, retryAt }) => (retryAt === null ? null : retryAt - at));
  const expected = failures.map(({ seconds: wait }, index) => {
    const attempt = waits[index]?.attempt ?? 0;
    if (attempt === maxModelAttempts) return null;
    return wait > 0 ? wait * 1_000 : 125 * 2 ** (attempt - 1);
  });
  expect(waited).toEqual(expected);
}

/** Advances the clock while the sockets work. */
async function untilEnded<T>(clock: FakeClock, work: Promise<T>): Promise<T> {
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  work.then(end, end);
  while (!isOver) {
    await loopTurns(1);
    clock.advance(100);
  }
  return await work;
}
