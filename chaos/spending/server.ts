/**
 * The provider of the spending scenarios, a separate process: `node chaos/spending/server.ts LOG SLOWEST_MS`. Its first
 * line is its base URL. Every request is logged with its bill before it is answered; clients that left before are in
 * LOG.gone.
 */
import { setTimeout as delay } from "node:timers/promises";
import { startModelServer } from "../../test/support/model-server.ts";
import { endWithParent } from "../end-with-parent.ts";
import { openLineWriter } from "../line-log.ts";
import { fractionOf } from "../../src/testing/simulation/seeded-random.ts";
import { type GoneLine, type SpendingLine, spendingAnswer } from "./script.ts";

const [path, slowest = "40"] = process.argv.slice(2);
if (path === undefined) throw new Error("name the file of the log");
const log = openLineWriter(path, { sync: false });
const gone = openLineWriter(`${path}.gone`, { sync: false });
let atOnce = 0;

const server = await startModelServer((body, { signal }) => {
  const { reply, line, hangs } = spendingAnswer(body, Date.now());
  atOnce += 1;
  // Resolves when the answer is sent or the client has disconnected.
  signal.addEventListener("abort", () => (atOnce -= 1), { once: true });
  const logged: SpendingLine = { ...line, atOnce };
  log.append(logged);
  const share = 0.5 + fractionOf(`${line.step}:${line.task}`) / 2;
  if (!hangs) return { ...reply, delayUntil: delay(share * Number(slowest)) };
  const left = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  const { task, step } = line;
  return { ...reply, delayUntil: left.then(() => gone.append({ task, step, at: Date.now() } satisfies GoneLine)) };
});
endWithParent();
process.stdout.write(`${server.baseURL}\n`);
