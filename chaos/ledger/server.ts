/**
 * The effect ledger as a separate process on loopback: `node chaos/ledger/server.ts LOG`. Its first line is its origin.
 * `POST /attempts` records an attempt and returns whether it was applied; `GET /keys/KEY` counts one key, `GET /counts`
 * all.
 */
import { z } from "zod";
import { startRawServer } from "../../test/support/raw-server.ts";
import { endWithParent } from "../end-with-parent.ts";
import { fractionOf } from "../../src/testing/simulation/seeded-random.ts";
import { EffectLedger } from "./effect-ledger.ts";

/** An effect is applied at once, but its answer is delayed by up to this many milliseconds, in which the caller may die. */
const SLOWEST_ANSWER_MS = 8;

const attemptSchema = z.object({
  key: z.string().min(1),
  tool: z.string().min(1),
  effect: z.enum(["none", "keyed", "once"]),
  pid: z.int().positive(),
});

const [path] = process.argv.slice(2);
if (path === undefined) throw new Error("name the file of the log");
const ledger = new EffectLedger(path);

const server = await startRawServer((request, response, body) => {
  const answer = (status: number, value: object): void => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
  };
  const url = request.url ?? "";
  if (request.method === "GET" && url === "/counts") return answer(200, ledger.counts());
  if (request.method === "GET" && url.startsWith("/keys/")) {
    return answer(200, ledger.of(decodeURIComponent(url.slice("/keys/".length))));
  }
  if (request.method !== "POST" || url !== "/attempts") return answer(404, { error: `nothing at ${url}` });
  const parsed = attemptSchema.safeParse(JSON.parse(body));
  if (!parsed.success) return answer(400, { error: parsed.error.message });
  const attempt = ledger.attempt(parsed.data, Date.now());
  setTimeout(() => answer(200, attempt), fractionOf(attempt.key) * SLOWEST_ANSWER_MS);
});
endWithParent();
process.stdout.write(`${server.origin}\n`);
