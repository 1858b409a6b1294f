import type { Command } from "ioredis";
import type { RedisClient } from "./redis-place.ts";

/** Arguments of a command, in lists that follow each other: joining them first would cost more than sending them. */
export type ArgumentLists = readonly (readonly (string | number)[])[];

type CommandType = typeof Command;
type ReadyCommandType = new (name: string, text: string) => Command;

/** Lengths up to this have their text made beforehand. */
const COMMON_LENGTHS = 2_048;
const lengthTexts = Array.from({ length: COMMON_LENGTHS }, (_, length) => `\r\n$${length}\r\n`);

/** How commands are made for a client, where that client is of the package that was loaded here, and of one server. */
const typesOf = new WeakMap<RedisClient, ReadyCommandType>();
const readyTypes = new WeakMap<CommandType, ReadyCommandType>();

/** Lets `sendCommand` write what is sent over this client. `type`: the commands of the package that the client is of. */
export function writeCommandsOf(client: RedisClient, type: CommandType): void {
  const known = readyTypes.get(type) ?? readyTypeOf(type);
  readyTypes.set(type, known);
  typesOf.set(client, known);
}

/** A command whose text is there already, so that nothing is done for each of its arguments. */
function readyTypeOf(type: CommandType): ReadyCommandType {
  return class extends type {
    readonly #text: string;

    constructor(name: string, text: string) {
      super(name, [], { replyEncoding: "utf8" });
      this.#text = text;
    }

    override toWritable(): string {
      return this.#text;
    }
  };
}

/** Sends a command of many arguments. */
export async function sendCommand(
  client: RedisClient,
  name: "eval" | "evalsha",
  lists: ArgumentLists,
): Promise<unknown> {
  const Ready = typesOf.get(client);
  if (Ready && !("slots" in client)) return client.sendCommand(new Ready(name, textOf(name, lists)));
  const [first = "", count = 0, ...others] = lists.flat();
  return client[name](String(first), Number(count), ...others);
}

/** The command in the protocol of Redis. */
function textOf(name: string, lists: ArgumentLists): string {
  let count = 1;
  for (const list of lists) count += list.length;
  // As long as it will be, because one that grows is copied again and again.
  const parts: string[] = [];
  parts.length = 2 * count + 2;
  let at = 0;
  const add = (text: string): void => {
    parts[at + 1] = lengthText(text);
    parts[at + 2] = text;
    at += 2;
  };
  parts[0] = `*${count}`;
  add(name);
  for (const list of lists)
    for (const argument of list) add(typeof argument === "string" ? argument : String(argument));
  parts[at + 1] = "\r\n";
  return parts.join("");
}

function lengthText(text: string): string {
  const length = Buffer.byteLength(text);
  return lengthTexts[length] ?? `\r\n$${length}\r\n`;
}
