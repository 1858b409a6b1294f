// A program whose agent runs a long command in a sandbox: node sandboxed-program.ts FOLDER
import { createAgent } from "../../src/index.ts";
import { bubblewrap, shell } from "../../src/kit/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

const root = process.argv[2] ?? "";
const command = "setsid sh -c ': killed-canary; sleep 61' & echo > begun; : killed-canary; sleep 62";
const model = scriptedModel([{ toolCalls: [{ name: "shell", arguments: { command } }] }]);
const tools = [shell({ folder: root, wrap: bubblewrap({ folder: root }), needsApproval: false })];
const agent = await createAgent({ model, tools });
await agent.start();
await agent.executeTurn("Go.").result;
