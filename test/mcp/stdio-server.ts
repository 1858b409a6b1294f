// A process that serves the desk over stdio: node stdio-server.ts ERA WITNESS
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { deskServer } from "./desk-server.ts";

const [era, witness] = process.argv.slice(2);
if (era === "legacy") await deskServer(witness).connect(new StdioServerTransport());
else serveStdio(() => deskServer(witness), { legacy: "reject" });
