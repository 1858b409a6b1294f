// A process that asks a server of bound thinking over a SQLite file, until the test kills it.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createRuntime } from "troupe";
import { aiSdkModel } from "troupe/models/ai-sdk";
import { sqliteStores } from "troupe/stores/sqlite";
import { clerkOn } from "../support/strict-clerk.ts";

const [path = "", origin = ""] = process.argv.slice(2);
const model = aiSdkModel(createAnthropic({ baseURL: `${origin}/v1`, apiKey: "key-for-tests" })("claude-opus-5-5"));
const runtime = await createRuntime({ agents: [clerkOn(model)], stores: sqliteStores(path) });
const clerk = await runtime.agent("clerk", { agentId: "desk" });
await clerk.start();
await clerk.executeTurn("One?").result;
await clerk.executeTurn("Two?").result;
