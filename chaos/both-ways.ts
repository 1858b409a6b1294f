/**
 * Loaded into a process, makes each step of its machines both ways: by the table of its chart, and as XState makes it. Where they
 * differ the process says so and ends, and the run has failed. The processes that it starts do the same.
 */
import { stepBothWays } from "../test/support/both-ways.ts";

const options = process.env["NODE_OPTIONS"] ?? "";
if (!options.includes(import.meta.url)) process.env["NODE_OPTIONS"] = `${options} --import=${import.meta.url}`;

stepBothWays((difference) => {
  process.stderr.write(`${difference}\n`);
  process.exit(1);
});
