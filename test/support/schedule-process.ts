// A process that opens the turns of the schedules in a SQLite file. Arguments: the file, and the point at which it kills itself.
import { createRuntime, defineAgent } from "../../src/index.ts";
import { armFaultPoints } from "../../src/base/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { scriptedModel } from "../../src/testing/index.ts";

const [, , file = "", fault = ""] = process.argv;
if (fault !== "") armFaultPoints(fault);
const desk = defineAgent({ name: "desk", model: scriptedModel("done") });
await createRuntime({ agents: [desk], stores: sqliteStores(file), leaseMs: 1_000 });
// Runtimes alone keep no process alive.
setInterval(() => undefined, 60_000);
process.stdout.write("ready\n");
