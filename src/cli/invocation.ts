import { relative } from "node:path";

/** How this program was started, so that the commands it proposes work as they are typed. */
export interface Invocation {
  /** Path of the file that runs: `…/src/cli/main.ts` in a clone, `…/dist/cli/main.js` in a package. */
  readonly main: string;
  readonly directory: string;
  /** Name of the npm script that started it, if one did. */
  readonly script: string | undefined;
}

/** The command line of a subcommand: `npm start -- --resume`, `npm run troupe -- show x`, `npx troupe show x`. */
export function commandLine(
  { main, directory, script }: Invocation,
  command: string,
  parameters: readonly string[],
): string {
  const words = parameters.map(quoted);
  if (!main.endsWith(".ts")) return ["npx troupe", command, ...words].join(" ");
  if (script === undefined) return ["node", quoted(relative(directory, main)), command, ...words].join(" ");
  if (command === "ask") return words.length === 0 ? "npm start" : ["npm start --", ...words].join(" ");
  return ["npm run troupe --", command, ...words].join(" ");
}

/** A word as a POSIX shell takes it. */
function quoted(word: string): string {
  return /^[\w@%+=:,./~#-]+$/.test(word) && !/^[~#]/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
