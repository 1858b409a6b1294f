/**
 * Prints the files of src/ that one turn with a tool on SQLite passes through, from `executeTurn` to its result: the files
 * in which a function ran, by V8's coverage. Loading a file does not count.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createRuntime, defineAgent, defineTool } from "troupe";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";
import { repositoryRoot } from "./run-command.ts";

const sources = pathToFileURL(join(repositoryRoot, "src")).href;

async function filesOfOneTurn(path: string): Promise<readonly string[]> {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({ where: z.string() }),
    execute: () => "a key",
  });
  const model = scriptedModel(
    [1, 2].flatMap(() => [{ toolCalls: [{ name: "look", arguments: { where: "here" } }] }, "A key."]),
  );
  const definition = defineAgent({ name: "clerk", model, tools: [look], instructions: "Look before you answer." });
  const runtime = await createRuntime({ stores: sqliteStores(path), agents: [definition] });
  const session = new Session();
  session.connect();
  try {
    const agent = await runtime.agent("clerk");
    await agent.start();
    await agent.executeTurn("What is here?").result;
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    await session.post("Profiler.takePreciseCoverage");
    await agent.executeTurn("And now?").result;
    const { result } = await session.post("Profiler.takePreciseCoverage");
    return result
      .filter(({ url }) => url.startsWith(sources))
      .filter(({ functions }) => functions.some((ran) => ran.functionName !== "" || ran.ranges[0]?.startOffset !== 0))
      .map(({ url }) => relative(repositoryRoot, fileURLToPath(url)))
      .sort();
  } finally {
    session.disconnect();
    await runtime.shutdown();
  }
}

const folder = mkdtempSync(join(tmpdir(), "troupe-turn-files-"));
try {
  const files = await filesOfOneTurn(join(folder, "turn.db"));
  for (const file of files) console.log(file);
  console.log(`${files.length} files`);
} finally {
  rmSync(folder, { recursive: true });
}
