import type { FactParts } from "../../actors/index.ts";
import { describeValue, wordsOfThrown } from "../../base/index.ts";
import { assertSettlement } from "../../budget/index.ts";
import { InvariantError } from "../../errors/index.ts";
import {
  contentSchema,
  entrySchema,
  type EntryType,
  type FactBody,
  type Message,
  type ToolCallRequest,
} from "../../state/index.ts";

/**
 * Entries with values from user code that not every step writes: they are validated before they are written. Inbox items were
 * validated when they were read, and a refusal at this point would keep them in the inbox forever.
 */
const readFirst: ReadonlySet<EntryType> = new Set([
  "instructions.resolved",
  "hook.applied",
  "output.checked",
  "context.compacted",
  "context.expanded",
  "effect.failed",
  "warning",
  "model.failed",
  "generate.responded",
  "generate.failed",
  "request.opened",
  "artifact.saved",
  "child.awaited",
  "tool.noted",
  "tool.billed",
]);

const schemas = new Map(
  entrySchema.options.flatMap((schema) =>
    readFirst.has(schema.shape.type.value) ? [[schema.shape.type.value as EntryType, schema] as const] : [],
  ),
);

/** The fields that the writer adds. */
const envelope = { seq: 1, at: 0, epoch: 1 };

/**
 * Validates values from outside a second time. An invalid value that the first check missed fails its effect and does not make
 * the agent unreadable. In entries that every step writes, only the few fields from user code are validated.
 * @throws InvariantError; nothing was written.
 */
export function assertWritable(body: FactBody, { messages = [], moves = [] }: FactParts = {}): void {
  const schema = schemas.get(body.type);
  if (schema) assertReads(schema, body);
  else if (body.type === "model.responded") assertCounts(body);
  if (body.type !== "turn.started") for (const message of messages) assertMessage(message);
  for (const move of moves) if (move.type === "settle") assertSettlement(move.settlement);
}

function assertReads(schema: { safeParse(value: unknown): ReadResult }, body: FactBody): void {
  let problem: string | undefined;
  try {
    const [issue] = schema.safeParse({ ...body, ...envelope }).error?.issues ?? [];
    problem = issue && `${issue.message} at ${issue.path.map(String).join(".")}`;
  } catch (error) {
    // The value is nested too deeply for the schema.
    problem = wordsOfThrown(error);
  }
  if (problem !== undefined) throw unreadable(`"${body.type}"`, problem);
}

interface ReadResult {
  readonly error?:
    | { readonly issues: readonly { readonly message: string; readonly path: readonly PropertyKey[] }[] }
    | undefined;
}

function assertCounts({ usage, model, calls }: Extract<FactBody, { type: "model.responded" }>): void {
  const { inputTokens, outputTokens, cachedInputTokens = 0, reasoningTokens = 0 } = usage;
  const { cacheWriteTokens = 0, longCacheWriteTokens = 0 } = usage;
  const counts = [
    inputTokens,
    outputTokens,
    cachedInputTokens,
    cacheWriteTokens,
    longCacheWriteTokens,
    reasoningTokens,
  ];
  const wrong = counts.find((count) => !Number.isSafeInteger(count) || count < 0);
  if (wrong !== undefined) throw unreadable('"model.responded"', `its usage has ${describeValue(wrong)}`);
  if (typeof model === "string" && calls.every(({ name }) => typeof name === "string")) return;
  throw unreadable('"model.responded"', "a name must be a string");
}

function assertMessage(message: Message): void {
  const { id, content, createdAt, origin } = message;
  const isText = typeof content === "string" || contentSchema.safeParse(content).success;
  const isRight = isText && typeof id === "string" && typeof origin === "string" && Number.isSafeInteger(createdAt);
  const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
  if (isRight && calls.every(isCall)) return;
  throw unreadable(`message ${describeValue(id)}`, `its content is ${describeValue(content)}`);
}

function isCall({ providerId, name, arguments: args }: ToolCallRequest): boolean {
  return typeof providerId === "string" && typeof name === "string" && typeof args === "string";
}

function unreadable(what: string, problem: string): InvariantError {
  return new InvariantError(`${what} would be unreadable: ${problem}; nothing was written`);
}
