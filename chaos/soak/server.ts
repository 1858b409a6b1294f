/** The model of the soak as a separate process: `node chaos/soak/server.ts`. Its first line is its base URL. */
import { startModelServer } from "../../test/support/model-server.ts";
import { endWithParent } from "../end-with-parent.ts";
import { soakAnswer } from "./script.ts";

const server = await startModelServer((body, { signal }) => soakAnswer(body, signal));
endWithParent();
process.stdout.write(`${server.baseURL}\n`);
