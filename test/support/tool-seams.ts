import { z } from "zod";
import { type AgentOptions, defineTool, type LanguageModel, type RunContext } from "../../src/index.ts";
import { AwaitedChild } from "../../src/tools/index.ts";
import { adapter, callOf, childDefinition, type Foreign, type Seam, worker } from "./seam-play.ts";

const callsTool = (): LanguageModel => adapter(() => callOf("probe"));
const artifact = { name: "a", contentType: "text/plain", content: "b" };

type ToolCode = (run: RunContext, foreign: Foreign) => unknown;

interface ToolSeam {
  readonly name: string;
  readonly code: ToolCode;
  readonly more: (foreign: Foreign) => object;
}

function tool(name: string, code: ToolCode, more: (foreign: Foreign) => object = () => ({})): ToolSeam {
  return { name, code, more };
}

/** The same on the queue, where the code runs as a job. */
function queued({ name, code, more }: ToolSeam): Seam {
  const seam = seamOf({ name, code, more: (foreign) => ({ ...more(foreign), queue: "probes" }) });
  return { ...seam, name: `${name}, on a queue`, runtime: { work: { queues: { probes: { concurrency: 2 } } } } };
}

function seamOf({ name, code, more }: ToolSeam): Seam {
  const define = (foreign: Foreign): AgentOptions => {
    const execute = async (_args: object, run: RunContext): Promise<unknown> =>
      foreign.isOn ? await code(run, foreign) : "right";
    const base = { name: "probe", description: "Probes.", parameters: z.object({}), effect: "none" as const, execute };
    return worker({ model: callsTool(), tools: [defineTool({ ...base, ...more(foreign) })] });
  };
  return { name, define };
}

const onBoth: readonly ToolSeam[] = [
  tool("a tool's result", (_run, foreign) => foreign.or("x")),
  tool("within a tool's result", (_run, foreign) => ({ inner: [foreign.or("x")] })),
  tool("a tool that throws", (_run, foreign) => foreign.thrown()),
  tool("saveArtifact()", (run, foreign) => run.saveArtifact(foreign.or(artifact))),
  ...(["name", "contentType", "content"] as const).map((field) =>
    tool(`saveArtifact({ ${field} })`, (run, foreign) => run.saveArtifact({ ...artifact, [field]: foreign.or("x") })),
  ),
  tool("saveArtifact() that is not awaited", (run, foreign) => void run.saveArtifact(foreign.or(artifact))),
  tool("progress()", (run, foreign) => run.progress(foreign.or("x"))),
  tool("spawn(), its input", async (run, foreign) => {
    return run.await(await run.spawn(childDefinition, foreign.or("x"), { key: "one" }));
  }),
  tool("await(), its options", async (run, foreign) => {
    return run.await(await run.spawn(childDefinition, "x", { key: "one" }), foreign.or({}));
  }),
  tool("await(), its prefix", async (run, foreign) => {
    return run.await(await run.spawn(childDefinition, "x", { key: "one" }), { prefix: foreign.or("x") });
  }),
  tool("await(), its child", (run, foreign) => run.await(foreign.or({ agentId: "x" }))),
  tool(
    "needsApproval()",
    () => "x",
    (foreign) => ({ needsApproval: () => foreign.or(false) }),
  ),
  tool(
    "describeCall()",
    () => "x",
    (foreign) => ({ needsApproval: () => foreign.isOn, describeCall: () => foreign.or("x") }),
  ),
  tool(
    "a secret",
    () => "x",
    (foreign) => ({ secrets: { key: () => foreign.or("xxxxxxxx") } }),
  ),
  tool(
    "reconcile()",
    () => {
      throw new Error("it may have taken effect");
    },
    (foreign) => ({ effect: "once", reconcile: () => foreign.or({ done: true, result: "x" }) }),
  ),
  tool("an AwaitedChild that the tool created itself", (_run, foreign) => {
    return new AwaitedChild(foreign.or("x"), foreign.or("x"));
  }),
];

/** All code of a tool, in the agent's process and as a job on a queue. */
export const toolSeams: readonly Seam[] = [...onBoth.map(seamOf), ...onBoth.map(queued)];
