// Writes the statecharts of the inspector's page, laid out, beside it. To be run after a change of a machine; a test says when.
import { writeFileSync } from "node:fs";
import { chartsFile, chartsText } from "./charts.ts";

const text = await chartsText();
writeFileSync(chartsFile, text);
process.stdout.write(`${chartsFile}: ${text.length} bytes\n`);
