import { parseArgs } from "node:util";
import { type PeerName, peerNames, peersNamed } from "./peers/index.ts";
import { type ListedStudy, studies, studyGroups } from "./studies/index.ts";

export const help = `Usage: npm run bench -- [options]

  --only NAME,NAME  only these: ${studies.map(({ name }) => name).join(", ")};
                    or all of a group: ${studyGroups.join(", ")}
  --with NAME,NAME  the scenarios with these libraries beside ours: ${peerNames.join(", ")};
                    what is not there yet is installed into .troupe/peers, by npm
  --quick           smaller samples, fewer rounds: some minutes for all
  --json            end with one line of JSON instead of the table
  --self            what ours is compared with, against itself: what is not 1 is the noise of this machine
  --help            this text
`;

export interface Options {
  readonly chosen: readonly ListedStudy[];
  readonly peers: readonly PeerName[];
  readonly quick: boolean;
  readonly json: boolean;
  readonly self: boolean;
  readonly help: boolean;
}

/** Throws an error with a message for people if options are unknown or conflict. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      with: { type: "string" },
      quick: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      self: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const names = values.only?.split(",").map((name) => name.trim());
  for (const name of names ?? []) {
    if (!studies.some((study) => study.name === name || study.group === name)) {
      throw new Error(`--only: there is no scenario "${name}".`);
    }
  }
  const isChosen = ({ name, group }: ListedStudy): boolean =>
    names === undefined || names.includes(name) || (group !== undefined && names.includes(group));
  const peers = values.with === undefined ? [] : peersNamed(values.with);
  if (values.self && peers.length > 0) {
    throw new Error("--with: --self compares nothing but the bare sides with themselves; leave out one of the two.");
  }
  const { quick, json, self, help: asksForHelp } = values;
  return { chosen: studies.filter(isChosen), peers, quick, json, self, help: asksForHelp };
}
