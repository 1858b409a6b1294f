// A process that serves the desk or the inn over stdio: node stdio-server.ts ERA WITNESS [desk|inn]
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { askingServer } from "./asking-server.ts";
import { deskServer } from "./desk-server.ts";

const [era, witness, kind = "desk"] = process.argv.slice(2);
const make = () =>
  kind === "desk" ? deskServer(witness) : askingServer(era === "legacy" ? "legacy" : "modern", witness);
if (era === "legacy") await make().connect(new StdioServerTransport());
else serveStdio(make, { legacy: "reject" });
