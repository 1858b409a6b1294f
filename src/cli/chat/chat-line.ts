/** What is typed after a `/` and known to the chat. */
export const chatCommands = {
  pause: "hold the agent and all below it at the next safe point",
  resume: "end the pause",
  abort: "end the open turn",
  budget: "what was used, against what is allowed",
  tree: "the agents, with their figures",
  requests: "what waits for somebody, and ask again what was put off",
  help: "this",
  exit: "leave; nothing is lost",
} as const;
export type ChatCommand = keyof typeof chatCommands;

/** A typed line as the chat understands it. */
export type ChatLine =
  | { readonly type: "message"; readonly text: string }
  | { readonly type: "command"; readonly command: ChatCommand }
  | { readonly type: "unknown"; readonly name: string }
  | { readonly type: "blank" };

/** Reads a typed line. `//` at its start stands for a `/` of the message. */
export function chatLineOf(line: string): ChatLine {
  const text = line.trim();
  if (text === "") return { type: "blank" };
  if (text.startsWith("//")) return { type: "message", text: text.slice(1) };
  if (!text.startsWith("/")) return { type: "message", text };
  const [name = ""] = text.slice(1).split(/\s/);
  return isCommand(name) ? { type: "command", command: name } : { type: "unknown", name };
}

function isCommand(name: string): name is ChatCommand {
  return Object.hasOwn(chatCommands, name);
}

export function helpLines(): string[] {
  const lines = Object.entries(chatCommands).map(([name, what]) => `  /${name.padEnd(9)} ${what}`);
  return [...lines, "Anything else is a message; one that begins with / is typed with //."];
}
