import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { repositoryRoot } from "../../../scripts/run-command.ts";
import { apiSurface } from "../../../src/server/api/api-surface.ts";
import { inFull } from "../../support/full.ts";
import { clientSource } from "./client-source.ts";
import { readDocument } from "./document.ts";
import { ada, served } from "./served.ts";

const run = promisify(execFile);

/** The main flow, as a user of only the generated client writes it. */
const program = `
import { type Agent, ApiError, Client, type Frame, type Event, type Request, type Turn } from "./client.ts";

const [base = "", token = ""] = process.argv.slice(2);
const client = new Client(base, token);
const created = await client.createAgent({ body: { definition: "clerk", key: "desk", budget: { maxTokens: 100_000 } } });
const agent: Agent = created.body;
const path = { agentId: agent.agentId };

const frames: Frame<Event>[] = [];
for await (const frame of client.startTurnStream({ path, body: { input: "chat" } })) frames.push(frame);
const text = frames.map(({ data }) => (data.type === "text.delta" ? data.text : "")).join("");

const started = await client.startTurn({ path, body: { input: "remove" }, header: { prefer: "wait=30", "idempotency-key": "k" } });
const turn: Turn | undefined = started.status === 200 ? started.body : undefined;
const request: Request | undefined = turn?.requests[0];
if (!request) throw new Error("nothing to decide");
const { requestId, argumentsHash } = request;
const decided = await client.decideRequest({ path: { requestId: requestId.replace("#", ".") }, body: { verdict: "approved", argumentsHash } });
const ended = await client.getTurn({ path: { ...path, number: 2 }, header: { prefer: "wait=30" } });

const messages = (await client.listMessages({ path, query: { last: 2 } })).body.items;
const trace = (await client.getTrace({ path: { ...path, number: 2 } })).body.items;
const artifacts = (await client.listArtifacts({ path })).body.items;
const accounts = (await client.listAccounts({ path })).body.items;
const aborted = await client.abortTurn({ path: { ...path, number: 2 }, body: { reason: "late" } });
let refused = 0;
try {
  await client.getAgent({ path: { agentId: "none" } });
} catch (error) {
  if (error instanceof ApiError) refused = error.status;
}
console.log(JSON.stringify({
  status: created.status, text, decision: decided.body.decision?.verdict, ended: ended.body.result?.text,
  roles: messages.map(({ role }) => role), trace: trace.map(({ type }) => type), artifacts: artifacts.length,
  accounts: accounts.length > 0, aborted: aborted.body.status, refused,
}));
`;

/** The generated client and the program in a temporary folder. */
async function writeProgram(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "generated-client-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "client.ts"), clientSource(await readDocument(apiSurface())));
  writeFileSync(join(folder, "program.ts"), program);
  return folder;
}

it("a client that is generated from the document runs the main flow", async () => {
  const { server } = await served();
  const { url } = await server.listen();
  const file = join(await writeProgram(), "program.ts");
  const { stdout } = await run(process.execPath, ["--no-warnings", file, url, ada]);
  expect(JSON.parse(stdout)).toEqual({
    status: 201,
    text: "Parcel A weighs 3 kg.",
    decision: "approved",
    ended: "Done.",
    roles: ["tool", "assistant"],
    trace: ["user_input", "llm_call", "tool_execution", "llm_call"],
    artifacts: 0,
    accounts: true,
    aborted: "completed",
    refused: 404,
  });
});

inFull(() => {
  it("that client compiles, and so does a program that uses it", async () => {
    const folder = await writeProgram();
    const types = join(repositoryRoot, "node_modules", "@types");
    const tsc = join(repositoryRoot, "node_modules", "typescript", "bin", "tsc");
    const strict = [
      "--strict",
      "--noEmit",
      "--target",
      "esnext",
      "--module",
      "nodenext",
      "--types",
      "node",
      "--typeRoots",
      types,
    ];
    const options = [...strict, "--allowImportingTsExtensions", "--exactOptionalPropertyTypes", "--skipLibCheck"];
    const { stdout } = await run(process.execPath, [tsc, ...options, "program.ts"], { cwd: folder }).catch(
      (error: { stdout: string }) => error,
    );
    expect(stdout).toBe("");
  });
});
