import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import {
  AUDIT_FORMAT,
  describeValue,
  flagRule,
  optionsOf,
  type OptionsSchema,
  portRule,
  reading,
  redactedText,
  ruleOf,
  stableStringify,
  textRule,
  wordsOfThrown,
} from "../../base/index.ts";
import { accountSchema } from "../../budget/index.ts";
import { InvalidInputError, NotFoundError, TroupeError, UnsupportedError } from "../../errors/index.ts";
import { DEFAULT_TENANT, jsonSchema } from "../../state/index.ts";
import { nodeSha256, readRunFile, RUN_FORMAT, type Stores } from "../../stores/index.ts";
import { type AuditReport, checkAudit } from "../run-model/audit-check.ts";
import { type AuditFile } from "../run-model/audit-file.ts";
import { auditOfTree, contentRemoved } from "./audit-run.ts";

/** A tree in open stores, or the path of a file: an audit, or a run that `troupe export --json` wrote. */
export type AuditSource =
  | string
  | URL
  | {
      /** The open stores that have the tree. */
      readonly stores: Stores;
      /** The id of any agent of the tree. */
      readonly agentId: string;
      /** Default: the tenant of runtimes without one. */
      readonly tenant?: string | undefined;
    };

/** What `auditRun()` takes besides the run. */
export interface AuditRunOptions {
  /**
   * An earlier audit of the run. It provides the hashes of messages that were deleted since, so that the head can still be computed.
   * Default: none.
   */
  readonly earlier?: AuditFile | undefined;
  /** False removes the texts of people, models and tools; their hashes stay, and so does the head. Default true. */
  readonly content?: boolean | undefined;
}

/** What `verifyAudit()` compares an audit with. */
export interface VerifyAuditOptions {
  /** A head that was kept outside of the store: 64 hexadecimal digits. Default: none. */
  readonly head?: string | undefined;
  /** An earlier audit of the run, whose entries the run must begin with. Default: none. */
  readonly earlier?: AuditFile | undefined;
}

const hashSchema = z.string().regex(/^[0-9a-f]{64}$/, "expected 64 hexadecimal digits");
const sealedSchema = z.object({
  fields: z.record(z.string(), jsonSchema),
  removed: z.record(z.string(), hashSchema).optional(),
});
const entrySchema = sealedSchema.extend({
  fields: z.looseObject({ type: z.string(), seq: z.number().int(), at: z.number(), epoch: z.number() }),
});
/** An audit as `troupe audit --file` writes it. `troupe schema audit` prints it as JSON Schema. */
export const auditFileSchema = z.object({
  format: z.literal(AUDIT_FORMAT),
  auditedAt: z.number(),
  rootAgentId: z.string(),
  head: hashSchema.nullable(),
  agents: z.array(
    z.object({
      agentId: z.string(),
      identity: sealedSchema,
      seq: z.number(),
      at: z.number(),
      head: hashSchema.nullable(),
    }),
  ),
  links: z.array(
    z.object({
      agentId: z.string(),
      entry: entrySchema,
      messages: z.array(z.object({ id: z.string(), hash: hashSchema.nullable(), message: sealedSchema.optional() })),
      hash: hashSchema.nullable(),
    }),
  ),
  accounts: z.array(accountSchema),
  requests: z.array(
    z.object({
      agentId: z.string(),
      requestId: z.string(),
      kind: z.enum(["approval", "client", "question", "auth", "budget"]),
      name: z.string(),
      status: z.enum(["open", "decided", "closed"]),
      argumentsHash: z.string(),
      verdict: z.string().nullable(),
      by: z.string().nullable(),
    }),
  ),
  definitions: z.array(z.object({ hash: z.string(), name: z.string(), content: jsonSchema.optional() })),
});

const auditRule = ruleOf("an audit of `auditRun()` or `readAudit()`", isAudit);
export const headRule = ruleOf("64 hexadecimal digits", (value) => hashSchema.safeParse(value).success);

function isAudit(value: unknown): boolean {
  try {
    return typeof value === "object" && value !== null && "format" in value && value.format === AUDIT_FORMAT;
  } catch {
    return false;
  }
}

/**
 * Computes the hash chain of a run: over all entries of all its agents, their messages, requests and amounts. Reads the whole run, and
 * changes nothing. Keep its `head` where those who can write the store cannot: later, `verifyAudit()` finds every change of what the
 * head covers. Fields with a secret, as `createRedactor()` finds them, are removed; their hashes stay.
 * @throws InvalidInputError if a file cannot be read or is neither an audit nor an exported run, and for wrong options.
 * @throws NotFoundError if the stores have no such agent.
 * @throws UnsupportedError for an exported run with redacted texts, because their hashes are lost.
 */
export async function auditRun(source: AuditSource, given?: AuditRunOptions): Promise<AuditFile> {
  const { earlier, content = true } = optionsOf<AuditRunOptions>(given, "auditRun()", {
    rules: { earlier: auditRule, content: flagRule },
  });
  const file = await auditOf(source, earlier && readAudit(earlier));
  return content ? file : contentRemoved(file);
}

async function auditOf(source: AuditSource, earlier: AuditFile | undefined): Promise<AuditFile> {
  const isFile = typeof source === "string" || reading("auditRun()", () => source instanceof URL);
  if (isFile) return await auditOfFile(source as string | URL, earlier);
  const {
    stores,
    agentId,
    tenant = DEFAULT_TENANT,
  } = optionsOf<Exclude<AuditSource, string | URL>>(source, "auditRun()", sourceOptions);
  const record = await stores.readAgent({ tenant, agentId });
  const tree = record && (await stores.exportTree(tenant, record.rootAgentId));
  if (!tree) throw new NotFoundError(`there is no agent "${agentId}" in these stores`);
  return await auditOfTree(tree, { earlier });
}

const sourceOptions: OptionsSchema<Exclude<AuditSource, string | URL>> = {
  rules: { stores: portRule("open stores", ["readAgent", "exportTree"]), agentId: textRule, tenant: textRule },
  needed: ["stores", "agentId"],
};

async function auditOfFile(source: string | URL, earlier: AuditFile | undefined): Promise<AuditFile> {
  const path = typeof source === "string" ? source : pathOf(source);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw new InvalidInputError(`${path} cannot be read: ${wordsOfThrown(cause)}`, { cause });
  }
  const json = parsedJson(text, path);
  const isRun = typeof json === "object" && json !== null && "format" in json && json.format === RUN_FORMAT;
  if (!isRun) return readAudit(json);
  const { tree, namesOnly } = readRunFile(text);
  const hashed = [tree.rows, tree.agents.map(({ record }) => record.ownerId)];
  if (namesOnly || JSON.stringify(hashed).includes(redactedText)) {
    const what = namesOnly ? "was written with --names-only" : "has redacted texts";
    throw new UnsupportedError(
      `${path} ${what}, so that its hashes cannot be computed; audit the store, and share the audit with --without-content`,
    );
  }
  return await auditOfTree(tree, { earlier });
}

function pathOf(url: URL): string {
  if (url.protocol === "file:") return fileURLToPath(url);
  throw new InvalidInputError(`an audit is read from a file: URL, not from ${describeValue(url.href)}`);
}

function parsedJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new InvalidInputError(`${path} is not JSON; expected an audit or an exported run`, { cause });
  }
}

/**
 * Reads an audit that was parsed from JSON; checks its form, not its hashes.
 * @throws InvalidInputError if it has another form.
 */
export function readAudit(value: unknown): AuditFile {
  try {
    // Checks the depth of hostile values.
    stableStringify(value);
    const parsed = auditFileSchema.safeParse(value);
    if (parsed.success) return parsed.data as AuditFile;
    const [issue] = parsed.error.issues;
    throw invalidAudit(`${issue?.message} at ${issue?.path.join(".") || "its top"}`);
  } catch (error) {
    if (error instanceof InvalidInputError && error.message.startsWith("invalid audit")) throw error;
    throw invalidAudit(error instanceof TroupeError ? error.message : "it cannot be read", error);
  }
}

/**
 * The same audit without the texts of people, models and tools: only names, ids, numbers and hashes. Its head is the same.
 * @throws InvalidInputError unless the value is an audit.
 */
export function withoutContent(audit: AuditFile): AuditFile {
  return contentRemoved(readAudit(audit));
}

function invalidAudit(why: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(
    `invalid audit: ${why}; expected the format ${AUDIT_FORMAT}, as "troupe audit ID --file FILE" writes it`,
    { cause },
  );
}

/**
 * Verifies an audit: recomputes its hashes, and compares approvals, amounts, requests and definitions with its entries. With `head`, also
 * whether the run has that head; entries after it are not covered by it.
 * @throws InvalidInputError unless the value is an audit, and for wrong options. A broken audit gets a report and throws nothing.
 */
export function verifyAudit(audit: AuditFile, given?: VerifyAuditOptions): AuditReport {
  const { head, earlier } = optionsOf<VerifyAuditOptions>(given, "verifyAudit()", {
    rules: { head: headRule, earlier: auditRule },
  });
  return checkAudit(readAudit(audit), { sha256: nodeSha256, head, earlier: earlier && readAudit(earlier) });
}
