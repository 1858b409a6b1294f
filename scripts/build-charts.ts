// Writes the statecharts of the inspector's page with their layouts. Run it after changing a machine; a test fails if it is
// due.
import { writeFileSync } from "node:fs";
import { chartsFile, chartsText } from "./charts.ts";

const text = await chartsText();
writeFileSync(chartsFile, text);
process.stdout.write(`${chartsFile}: ${text.length} bytes\n`);
