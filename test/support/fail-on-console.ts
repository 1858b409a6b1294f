// Runs before every test file. Unexpected console output fails the test that printed it. A test that expects output installs
// its own spy on the console (`vi.spyOn(console, "warn").mockReturnValue()`) and asserts on that.
import { afterAll, afterEach } from "vitest";
import { recordConsole } from "./console-recorder.ts";

const recorder = recordConsole(console);
const warnings: string[] = [];
const onWarning = (warning: Error): void => {
  warnings.push(`process warning: ${warning.stack ?? warning.message}`);
};
process.on("warning", onWarning);

// Saved before a test installs a fake clock.
const { setImmediate: nextTurn } = globalThis;

async function failOnOutput(): Promise<void> {
  // Node emits warnings a tick after their cause.
  await new Promise((resolve) => nextTurn(resolve));
  const unexpected = [...recorder.take(), ...warnings.splice(0)];
  if (unexpected.length > 0) throw new Error(`Unexpected output:\n${unexpected.join("\n")}`);
}

afterEach(failOnOutput);
// The last check of a file, because the next file may run in this process too.
afterAll(async () => {
  try {
    await failOnOutput();
  } finally {
    recorder.restore();
    process.off("warning", onWarning);
  }
});
