// A process that serves a server of the tests over stdio: node stdio-server.ts ERA WITNESS [desk|faults|inn]
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { askingServer } from "./asking-server.ts";
import { deskServer } from "./desk-server.ts";
import { faultServer } from "./fault-server.ts";

const [era, witness, kind = "desk"] = process.argv.slice(2);
const serverOf = () => {
  if (kind === "inn") return askingServer(era === "legacy" ? "legacy" : "modern", witness);
  return kind === "faults" ? faultServer(witness) : deskServer(witness);
};
if (era === "legacy") await serverOf().connect(new StdioServerTransport());
else serveStdio(serverOf, { legacy: "reject" });
