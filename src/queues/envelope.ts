import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { issueOf, type Job, jobSchema, toolJobIdOf } from "./jobs.ts";
import type { Signer } from "./signature.ts";

const VERSION = 1;
/** Of a job as it is stored, in characters; ids are shorter by far. */
const MAX_CHARACTERS = 8_192;

const laterSchema = z.looseObject({ version: z.number().int().gt(VERSION) });

const envelopeSchema = z.strictObject({
  version: z.literal(VERSION),
  job: z.unknown(),
  signature: z.strictObject({ keyId: z.string().max(128), mac: z.string().max(128) }).optional(),
});

/** A job as it lies in a queue that others can write to. */
export type Envelope = DeepReadonly<z.infer<typeof envelopeSchema>>;

/** `later`: it is for processes of a later version of this package. */
export type Opened = { readonly job: Job } | { readonly refused: string } | { readonly later: string };

/** What is signed: a job is good in the queue that it was made for, and in no other. */
function signedPart(queue: string, job: unknown): unknown {
  return { version: VERSION, queue, job };
}

/** Throws `InvalidInputError` for a job that is too large. */
export function seal(queue: string, job: Job, signer: Signer | undefined): Envelope {
  const signature = signer?.sign(signedPart(queue, job));
  const envelope = { version: VERSION, job, ...(signature ? { signature } : {}) } as const;
  const { length } = JSON.stringify(envelope);
  if (length <= MAX_CHARACTERS) return envelope;
  throw new InvalidInputError(`the job is ${length} characters long; a job takes ids only, at most ${MAX_CHARACTERS}`);
}

/**
 * Reads what lies in a queue under an id. Nothing of it is believed before it fits the schema, the signature (where there
 * is a signer) and its own id. Where there is no signer, signatures are not looked at.
 */
export function open(queue: string, jobId: string, stored: unknown, signer: Signer | undefined): Opened {
  if (!isBounded(stored)) return { refused: `it is longer than ${MAX_CHARACTERS} characters` };
  const later = laterSchema.safeParse(stored);
  if (later.success) return { later: `it is of version ${later.data.version}; this process knows ${VERSION}` };
  const envelope = envelopeSchema.safeParse(stored);
  if (!envelope.success) return { refused: `it is no job of this version (${issueOf(envelope.error)})` };
  const fault = signer && faultOf(queue, envelope.data, signer);
  if (fault !== undefined) return { refused: fault };
  const parsed = jobSchema.safeParse(envelope.data.job);
  if (!parsed.success) return { refused: `it does not fit the schema (${issueOf(parsed.error)})` };
  const { data: job } = parsed;
  if (job.kind === "tool" && toolJobIdOf(job) !== jobId) return { refused: "it lies under the id of another job" };
  return { job };
}

function faultOf(queue: string, { job, signature }: Envelope, signer: Signer): string | undefined {
  try {
    return signer.fault(signedPart(queue, job), signature);
  } catch {
    // Nested so deep, for instance, that it has no canonical form.
    return "its signature cannot be looked at";
  }
}

function isBounded(stored: unknown): boolean {
  try {
    return (JSON.stringify(stored) ?? "").length <= MAX_CHARACTERS;
  } catch {
    return false;
  }
}
