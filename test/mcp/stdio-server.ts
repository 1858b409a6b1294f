// A process that serves a server of the tests over stdio: node stdio-server.ts ERA WITNESS [desk|faults]
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { deskServer } from "./desk-server.ts";
import { faultServer } from "./fault-server.ts";

const [era, witness, kind] = process.argv.slice(2);
const serverOf = kind === "faults" ? () => faultServer(witness) : () => deskServer(witness);
if (era === "legacy") await serverOf().connect(new StdioServerTransport());
else serveStdio(serverOf, { legacy: "reject" });
