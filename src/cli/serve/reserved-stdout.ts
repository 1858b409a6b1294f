import { Writable } from "node:stream";

/**
 * Reserves standard output for a protocol: afterwards, everything that code of this process writes to `process.stdout`,
 * also with `console.log`, goes to standard error. Returns the only stream to standard output.
 */
export function reserveStdout({ stdout, stderr }: Pick<NodeJS.Process, "stdout" | "stderr">): Writable {
  const write = stdout.write.bind(stdout);
  stdout.write = stderr.write.bind(stderr);
  // The end of its input tells that the client has left; then the process still stops its turns at a safe point.
  stdout.removeAllListeners("error");
  stdout.on("error", () => undefined);
  return new Writable({
    write: (chunk: Buffer, _encoding, done) => void write(chunk, done),
  });
}
