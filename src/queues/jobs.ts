import { createHmac, timingSafeEqual } from "node:crypto";
import {
  anyRule,
  assertId,
  optionsRule,
  stableStringify,
  type DeepReadonly,
  type TraceHeaders,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { z } from "zod";
import { type AgentKey, traceHeadersSchema } from "../state/index.ts";

/** Longer than any id that this package creates. */
const idSchema = z
  .string()
  .min(1)
  .max(512)
  .refine((id) => id.isWellFormed(), "must be well-formed Unicode");

/** W3C Trace Context of the operation that added the job. */
const traceShape = traceHeadersSchema.partial().shape;

const agentSchema = z.object({ tenant: idSchema, agentId: idSchema });

/** Requests that a worker activates an agent. */
export const wakeJobSchema = z.strictObject({
  kind: z.literal("wake"),
  ...agentSchema.shape,
  ...traceShape,
});
export type WakeJob = DeepReadonly<z.infer<typeof wakeJobSchema>>;

/** Requests that a worker runs a tool call. It contains only ids: the worker reads the rest from the stores. */
export const toolJobSchema = z.strictObject({
  kind: z.literal("tool"),
  ...agentSchema.shape,
  callId: idSchema,
  /** Counts from 1. */
  attempt: z.number().int().positive().max(1_000_000),
  /** The epoch in which the call was made, if the worker needs it. */
  epoch: z.number().int().nonnegative().optional(),
  /** Whether it may run again after its worker died: true for effects `none` and `keyed`, false for `once`. */
  isRepeatable: z.boolean(),
  /** Time limit of a run, in whole milliseconds, without the time in the queue. Absent if there is no limit. */
  timeoutMs: z
    .number()
    .int()
    .positive()
    .max(2 ** 31 - 1)
    .optional(),
  ...traceShape,
});
export type ToolJob = DeepReadonly<z.infer<typeof toolJobSchema>>;

export const jobSchema = z.discriminatedUnion("kind", [wakeJobSchema, toolJobSchema]);
export type Job = DeepReadonly<z.infer<typeof jobSchema>>;

/** Identifies a tool job. */
export type ToolJobKey = Pick<ToolJob, "tenant" | "agentId" | "callId" | "attempt">;

/** Throws `InvalidInputError` that names the field. */
export function checkedWake(agent: AgentKey, trace: TraceHeaders | undefined): WakeJob {
  const { tenant, agentId } = agent;
  return checked(wakeJobSchema, { kind: "wake", tenant, agentId, ...trace }, "the wake");
}

/** Throws `InvalidInputError` that names the field. */
export function checkedTool(job: Omit<ToolJob, "kind">): ToolJob {
  return checked(toolJobSchema, { ...job, kind: "tool" }, "the tool job");
}

function checked<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new InvalidInputError(`${what} is not valid: ${issueOf(parsed.error)}`);
}

/** The first issue with its path; never contains the value. */
export function issueOf(error: z.ZodError): string {
  const [issue] = error.issues;
  const place = issue?.path.join(".") ?? "";
  return `${place === "" ? "it" : place}: ${issue?.message ?? "does not fit"}`;
}

/** An agent's key among the wakes, unique per agent. */
export function wakeKeyOf({ tenant, agentId }: AgentKey): string {
  return `agent.${encodeURIComponent(tenant)}/${encodeURIComponent(agentId)}`;
}

/** The id of a tool job in its queue, unique per job. It is not a number and contains no colon, because queues accept neither. */
export function toolJobIdOf({ tenant, agentId, callId, attempt }: ToolJobKey): string {
  const ids = [tenant, agentId, callId].map((id) => encodeURIComponent(id));
  return `call.${ids.join("/")}/${attempt}`;
}

const VERSION = 1;
/** Largest stored job, in characters; ids are far shorter. */
const MAX_CHARACTERS = 8_192;

const laterSchema = z.looseObject({ version: z.number().int().gt(VERSION) });

const envelopeSchema = z.strictObject({
  version: z.literal(VERSION),
  job: z.unknown(),
  signature: z.strictObject({ keyId: z.string().max(128), mac: z.string().max(128) }).optional(),
});

/** A job as stored in a queue to which others can write. */
export type Envelope = DeepReadonly<z.infer<typeof envelopeSchema>>;

/** `later`: the job was written by a later version of this package. */
export type Opened = { readonly job: Job } | { readonly refused: string } | { readonly later: string };

/** The signed value. It includes the queue, so that a job is only valid in the queue that it was added to. */
function signedPart(queue: string, job: unknown): unknown {
  return { version: VERSION, queue, job };
}

/** Throws `InvalidInputError` for a job that is too large. */
export function seal(queue: string, job: Job, signer: Signer | undefined): Envelope {
  const signature = signer?.sign(signedPart(queue, job));
  const envelope = { version: VERSION, job, ...(signature ? { signature } : {}) } as const;
  const { length } = JSON.stringify(envelope);
  if (length <= MAX_CHARACTERS) return envelope;
  throw new InvalidInputError(
    `the job is ${length} characters long; a job contains only ids, at most ${MAX_CHARACTERS} characters`,
  );
}

/**
 * Parses a stored job. Its content is trusted only after the schema, the signature (if there is a signer) and the id were checked.
 * Without a signer, signatures are ignored.
 */
export function open(queue: string, jobId: string, stored: unknown, signer: Signer | undefined): Opened {
  if (!isBounded(stored)) return { refused: `it is longer than ${MAX_CHARACTERS} characters` };
  const later = laterSchema.safeParse(stored);
  if (later.success) return { later: `its version is ${later.data.version}; this process supports ${VERSION}` };
  const envelope = envelopeSchema.safeParse(stored);
  if (!envelope.success) return { refused: `it is not a job of this version (${issueOf(envelope.error)})` };
  const fault = signer && faultOf(queue, envelope.data, signer);
  if (fault !== undefined) return { refused: fault };
  const parsed = jobSchema.safeParse(envelope.data.job);
  if (!parsed.success) return { refused: `it does not fit the schema (${issueOf(parsed.error)})` };
  const { data: job } = parsed;
  if (job.kind === "tool" && toolJobIdOf(job) !== jobId) return { refused: "it is stored under the id of another job" };
  return { job };
}

function faultOf(queue: string, { job, signature }: Envelope, signer: Signer): string | undefined {
  try {
    return signer.fault(signedPart(queue, job), signature);
  } catch {
    // For instance, it is nested too deeply to be serialized.
    return "its signature cannot be checked";
  }
}

function isBounded(stored: unknown): boolean {
  try {
    return (JSON.stringify(stored) ?? "").length <= MAX_CHARACTERS;
  } catch {
    return false;
  }
}

/** A secret that all processes of a deployment share. */
export interface SigningKey {
  /** Identifies the key in signed jobs, so that it can be replaced: 1 to 128 characters, the same as in ids. */
  readonly id: string;
  /** At least 16 characters; 32 random ones are better. */
  readonly secret: string;
}

export interface Signature {
  readonly keyId: string;
  /** HMAC-SHA256 in hexadecimal digits. */
  readonly mac: string;
}

/** Signs with the first key, accepts signatures with any key. */
export interface Signer {
  sign(value: unknown): Signature;
  /** Why the signature is invalid; `undefined` if it is valid. */
  fault(value: unknown, signature: Signature | undefined): string | undefined;
}

/** Errors never contain a key's value; values are checked in `createSigner`. */
export const signingKeyRule = optionsRule<SigningKey>({
  rules: { id: anyRule, secret: anyRule },
  needed: ["id", "secret"],
});

const SHORTEST_SECRET = 16;
const MAC_BYTES = 32;

/**
 * To replace a key, first add the new one after the old one in every process, then move it to the front, then remove the old one.
 * Throws `InvalidInputError` for an empty list, a short secret and two keys with one id.
 */
export function createSigner(keys: readonly SigningKey[]): Signer {
  const [first] = keys;
  if (!first) throw new InvalidInputError("secrets is empty; expected at least one { id, secret }, or leave it out");
  const secrets = new Map<string, string>();
  for (const [place, { id, secret }] of keys.entries()) {
    assertId(`secrets[${place}].id`, id);
    if (typeof secret !== "string" || secret.length < SHORTEST_SECRET) {
      throw new InvalidInputError(`secrets[${place}].secret must be a text of at least ${SHORTEST_SECRET} characters`);
    }
    if (secrets.has(id))
      throw new InvalidInputError(`secrets[${place}].id is ${JSON.stringify(id)} again; each key needs its own id`);
    secrets.set(id, secret);
  }
  return {
    sign: (value) => ({ keyId: first.id, mac: macOf(first.secret, value).toString("hex") }),
    fault(value, signature) {
      if (!signature) return "it is not signed";
      const secret = secrets.get(signature.keyId);
      if (secret === undefined) return "it is signed with an unknown key";
      const given = Buffer.from(signature.mac, "hex");
      const isGood = given.length === MAC_BYTES && timingSafeEqual(given, macOf(secret, value));
      return isGood ? undefined : "its signature does not match its content";
    },
  };
}

function macOf(secret: string, value: unknown): Buffer {
  return createHmac("sha256", secret).update(stableStringify(value)).digest();
}
