// Asks the agent over HTTP, as another program does: npm run ask -- "Where is order 7?"
import { createClient } from "troupe/client";
import { serveToken } from "./token.ts";

const url = process.env["AGENTS_URL"] || "http://127.0.0.1:3000";
const client = createClient({ url, headers: () => ({ authorization: `Bearer ${serveToken()}` }) });
const agent = await client.createAgent({ definition: "desk" });
const turn = await agent.executeTurn(process.argv[2] ?? "Where is order 7?");
const { result } = await turn.settled();
console.log(result?.text);
