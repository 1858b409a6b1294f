/**
 * The scripted model as a separate process: `node chaos/model/server.ts LOG`. Its first line is its base URL. Every
 * request is logged before it is answered.
 */
import { setTimeout as delay } from "node:timers/promises";
import { startModelServer } from "../../test/support/model-server.ts";
import { endWithParent } from "../end-with-parent.ts";
import { openLineWriter } from "../line-log.ts";
import { fractionOf } from "../../src/testing/simulation/seeded-random.ts";
import { answerTo, type BilledCallLine, billOf, readRequest } from "./script.ts";

/** Longest time to an answer, in milliseconds. */
const SLOWEST_ANSWER_MS = 12;

const [path] = process.argv.slice(2);
if (path === undefined) throw new Error("name the file of the log");
const log = openLineWriter(path, { sync: false });

const server = await startModelServer((body) => {
  const call = readRequest(body, Date.now());
  const answer = answerTo(call);
  const usage = billOf(body, answer);
  const line: BilledCallLine = { ...call, ...usage };
  log.append(line);
  const delayUntil = delay(fractionOf(`${call.task}:${call.step}`) * SLOWEST_ANSWER_MS);
  return { ...answer, usage, delayUntil };
});
endWithParent();
process.stdout.write(`${server.baseURL}\n`);
