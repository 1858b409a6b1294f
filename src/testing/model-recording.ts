import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, readFile, rename, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { type DeepReadonly, describeFileError } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { jsonObjectSchema, modelResponseSchema } from "../state/index.ts";

export const MODEL_RECORDING_FORMAT = "troupe.model-recording/1";

const deltaSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("reasoning"), text: z.string() }),
  z.object({ type: z.literal("tool-call"), index: z.number(), id: z.string(), name: z.string() }),
  z.object({ type: z.literal("tool-arguments"), index: z.number(), text: z.string() }),
]);

const errorSchema = z.object({
  message: z.string(),
  retryable: z.boolean(),
  mayHaveBeenSent: z.boolean(),
  status: z.number().optional(),
  retryAfterMs: z.number().optional(),
  partialInputTokens: z.number().optional(),
  partialOutputTokens: z.number().optional(),
  details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).optional(),
});

const callSchema = z.object({
  /** Hash of model and request. */
  key: z.string(),
  /** The how-manieth of equal requests it is, from 1. */
  occurrence: z.number().int().positive(),
  request: jsonObjectSchema,
  deltas: z.array(deltaSchema),
  response: modelResponseSchema.optional(),
  error: errorSchema.optional(),
});
export type RecordedCall = DeepReadonly<z.infer<typeof callSchema>>;
export type RecordedError = DeepReadonly<z.infer<typeof errorSchema>>;

const modelSchema = z.object({
  provider: z.string(),
  name: z.string(),
  contextWindow: z.number().positive().optional(),
  hostedTools: z.array(z.string()).optional(),
  server: z.string().optional(),
});
export type RecordedModelFacts = DeepReadonly<z.infer<typeof modelSchema>>;

/**
 * A file of recorded model calls. `troupe schema model-recording` prints it as JSON Schema. Strict: a rewrite would drop fields that this
 * version does not have.
 */
export const modelRecordingSchema = z.strictObject({
  format: z.literal(MODEL_RECORDING_FORMAT),
  /** The recorded models, by provider and name. */
  models: z.array(modelSchema),
  /** By key and occurrence, so that parallel calls give the same file in each run. */
  calls: z.array(callSchema),
});
export type ModelRecording = DeepReadonly<z.infer<typeof modelRecordingSchema>>;

/** Reads a file of recorded calls; `undefined` if there is none. Throws `InvalidInputError` if it is something else. */
export async function readModelRecording(path: string): Promise<ModelRecording | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return undefined;
    throw new InvalidInputError(describeFileError(path, cause), { cause });
  }
  return parsedRecording(path, text);
}

/** The only model of a file. Throws `InvalidInputError` if there is no file, or if it has several models. */
export function modelOfRecording(path: string): RecordedModelFacts {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new InvalidInputError(describeFileError(path, cause), { cause });
  }
  const [model, ...others] = parsedRecording(path, text).models;
  if (model && others.length === 0) return model;
  const names = [model, ...others].flatMap((one) => (one ? [nameOf(one)] : []));
  throw new InvalidInputError(
    `${path} has calls of ${names.length === 0 ? "no model" : names.join(", ")}; pass the model to recordedModel()`,
  );
}

function parsedRecording(path: string, text: string): ModelRecording {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw noRecording(path, "it is not JSON", cause);
  }
  const parsed = modelRecordingSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw noRecording(path, `${issue?.message} at ${issue?.path.join(".") || "its top"}`);
}

function noRecording(path: string, why: string, cause?: unknown): InvalidInputError {
  const message = `${path} is not a file of recorded model calls (${MODEL_RECORDING_FORMAT}): ${why}; delete it to record it anew`;
  return new InvalidInputError(message, { cause });
}

/**
 * Adds a call to the file. Other processes may add theirs at the same time: the file is read, changed and replaced under a lock.
 * @param replaces Whether the call replaces a recorded one of the same key and occurrence; otherwise the recorded one stays.
 */
export async function addToRecording(
  path: string,
  { call, model }: { readonly call: RecordedCall; readonly model: RecordedModelFacts },
  replaces: boolean,
): Promise<ModelRecording> {
  try {
    await mkdir(dirname(path), { recursive: true });
    return await locked(path, async () => {
      const before = (await readModelRecording(path)) ?? { format: MODEL_RECORDING_FORMAT, models: [], calls: [] };
      const isSame = (one: RecordedCall): boolean => one.key === call.key && one.occurrence === call.occurrence;
      if (!replaces && before.calls.some(isSame)) return before;
      const calls = [...before.calls.filter((one) => !isSame(one)), call].toSorted(byKey);
      const others = before.models.filter((one) => one.name !== model.name || one.provider !== model.provider);
      const models = [...others, model].toSorted((one, other) => compared(nameOf(one), nameOf(other)));
      const after: ModelRecording = { format: MODEL_RECORDING_FORMAT, models, calls };
      await replaceFile(path, `${JSON.stringify(after, null, 2)}\n`);
      return after;
    });
  } catch (cause) {
    if (cause instanceof InvalidInputError) throw cause;
    throw new InvalidInputError(describeFileError(path, cause), { cause });
  }
}

function byKey(one: RecordedCall, other: RecordedCall): number {
  return compared(one.key, other.key) || one.occurrence - other.occurrence;
}

function nameOf({ provider, name }: RecordedModelFacts): string {
  return `${provider}/${name}`;
}

/** Not by locale, which differs between machines. */
function compared(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** A process that dies half-way leaves the file as it was. */
async function replaceFile(path: string, text: string): Promise<void> {
  const partial = `${path}.${randomUUID().slice(0, 8)}.partial`;
  try {
    await writeFile(partial, text, { flag: "wx" });
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

/** A lock is held for milliseconds; an older one belonged to a process that died. */
const STALE_MS = 10_000;
const RETRY_MS = 5;

async function locked<T>(path: string, work: () => Promise<T>): Promise<T> {
  const lock = `${path}.lock`;
  await taken(lock);
  try {
    return await work();
  } finally {
    await rmdir(lock).catch(() => undefined);
  }
}

async function taken(lock: string): Promise<void> {
  let seen: { readonly mtimeMs: number; readonly since: number } | undefined;
  for (;;) {
    try {
      await mkdir(lock);
      return;
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    }
    const held = await stat(lock).catch(() => undefined);
    if (!held) continue;
    if (!held.isDirectory()) throw new InvalidInputError(`${lock} is not a lock of a recording; remove it`);
    const { mtimeMs } = held;
    if (seen?.mtimeMs !== mtimeMs) seen = { mtimeMs, since: performance.now() };
    // The second age does not depend on the clock that wrote the time.
    const age = Math.max(Date.now() - mtimeMs, performance.now() - seen.since);
    if (age > STALE_MS) await removeStale(lock);
    else await wait(RETRY_MS);
  }
}

async function removeStale(lock: string): Promise<void> {
  try {
    await rmdir(lock);
  } catch (cause) {
    // Another process removed it first.
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return;
    throw new InvalidInputError(`${lock} is a lock that cannot be removed; remove it by hand`, { cause });
  }
}
