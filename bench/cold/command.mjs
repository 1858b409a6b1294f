// Runs the command of its first argument with the others, and says at its end what it took.
import { pathToFileURL } from "node:url";

const [main, ...words] = process.argv.slice(2);
process.argv.splice(1, process.argv.length, main, ...words);
process.on("exit", () => {
  process.stdout.write(`${JSON.stringify({ text: "", processor: process.cpuUsage() })}\n`);
});
await import(pathToFileURL(main).href);
