import { Option } from "commander";
import { nonEmpty } from "./arguments.ts";

export const inspectHelp = "serve the state charts of the live agents on this machine";

export function storeOption(): Option {
  return new Option("--store <path>", "SQLite file in which jobs are kept")
    .default("./.troupe/ask.db")
    .argParser(nonEmpty);
}

export function jsonOption(): Option {
  return new Option("--json", "print every event as a line of JSON").conflicts("quiet");
}

export function quietOption(): Option {
  return new Option("--quiet", "print the answer alone");
}

export function agentsOption(): Option {
  return new Option(
    "--agents <file>",
    "agent file that exports the definition, where the store does not name one",
  ).argParser(nonEmpty);
}
