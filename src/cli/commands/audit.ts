import { resolve } from "node:path";
import { InvalidInputError } from "../../errors/index.ts";
import {
  type AuditFile,
  type AuditReport,
  auditRun,
  type AuditRunOptions,
  type DeletionAudit,
  pageOfAudit,
  verifyAudit,
  verifyDeletion,
} from "../../inspector/index.ts";
import { DEFAULT_TENANT, type Deletion } from "../../state/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { findAgent } from "../job/find-agent.ts";
import { countsText } from "../job/stored-deletions.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { formatNumberOf } from "../view/format.ts";
import { printable } from "../view/terminal-text.ts";
import { orUsage } from "./replay.ts";
import { assertWritable, writePrivateFile } from "./written-file.ts";

export interface AuditCommandOptions extends StoreOptions {
  readonly html?: string | undefined;
  readonly file?: string | undefined;
  readonly json?: boolean | undefined;
  /** Prints only the verdict and the problems. */
  readonly verify?: boolean | undefined;
  readonly head?: string | undefined;
  /** The file of an earlier audit. */
  readonly earlier?: string | undefined;
  /** Commander's form of `--without-content`. */
  readonly withoutContent?: boolean | undefined;
  readonly force?: boolean | undefined;
}

/** Most lines of each list on the terminal. */
const SHOWN = 20;

/** Audits a run of a store or of a file. Exit code 0: it fits; 1: it is broken; 2: it cannot be verified. */
export async function auditCommand(context: CliContext, what: string, options: AuditCommandOptions): Promise<ExitCode> {
  return await orUsage(context, async () => {
    const { html, file, head, json = false, verify = false, force = false } = options;
    const paths = [html, file].filter((path) => path !== undefined);
    if (html !== undefined && file !== undefined && pathOf(context, html) === pathOf(context, file)) {
      throw new InvalidInputError("--html and --file name the same file; give each its own");
    }
    for (const path of paths) await assertWritable(context, path, force);
    const deletion = await deletionOf(context, what, options);
    if (deletion) return auditOfDeletion(context, what, deletion, { head, json });
    const earlier = options.earlier === undefined ? undefined : await auditRun(pathOf(context, options.earlier));
    const audit = await auditOf(context, what, options, { earlier, content: options.withoutContent !== true });
    const report = verifyAudit(audit, { head, earlier });
    if (html !== undefined) await writePrivateFile(context, html, await pageOfAudit(audit));
    if (file !== undefined) await writePrivateFile(context, file, `${JSON.stringify(audit)}\n`);
    if (json) context.out(JSON.stringify(report));
    else reportLines(report, { head, verify }).forEach((line) => context.out(printable(line)));
    if (!json) for (const path of paths) context.out(`Written: ${path}`);
    if (report.verdict === "broken") return exitCodes.failure;
    return head !== undefined && report.covered === null ? exitCodes.usage : exitCodes.success;
  });
}

function pathOf({ directory }: CliContext, path: string): string {
  return resolve(directory, path);
}

/** The line that stays of a run that was deleted; `undefined` for a file, and for any other run. */
async function deletionOf(context: CliContext, what: string, options: StoreOptions): Promise<Deletion | undefined> {
  if (what.endsWith(".json")) return undefined;
  return await withStore(storeLocation(context, options), "openExisting", async (stores) => {
    const isStored = (await stores.readAgent({ tenant: DEFAULT_TENANT, agentId: what })) !== undefined;
    return isStored ? undefined : await stores.deletion(DEFAULT_TENANT, what);
  });
}

function auditOfDeletion(
  { out }: CliContext,
  agentId: string,
  deletion: Deletion,
  { head, json }: { readonly head: string | undefined; readonly json: boolean },
): ExitCode {
  const audit = verifyDeletion(deletion, agentId, { head });
  const { verdict, covered, entries } = audit;
  if (json) out(JSON.stringify({ deletion, audit }));
  else deletionLines(agentId, deletion, audit).forEach((line) => out(printable(line)));
  if (verdict === "broken")
    return head !== undefined && covered === null && entries > 0 ? exitCodes.usage : exitCodes.failure;
  return head !== undefined && covered === null ? exitCodes.usage : exitCodes.success;
}

function deletionLines(
  agentId: string,
  { deletedAt, by, reason, counts, used, pending }: Deletion,
  { verdict, problem, head, covered, entries }: DeletionAudit,
): string[] {
  const at = new Date(deletedAt).toISOString();
  const why = reason === "retention" ? "by the retention" : `for ${by}`;
  const proof =
    covered === null ? verdict : `${verdict}: the given head covers ${covered} of the ${entries} deleted entries`;
  return [
    `${agentId}: deleted at ${at} ${why}${pending ? "; the deletion is not finished, repeat it" : ""}`,
    `  ${problem ?? proof}`,
    `  head: ${head ?? "unknown"}`,
    `  deleted: ${countsText(counts)}`,
    `  used: ${formatNumberOf(used.tokens, "token")}, $${(used.costMicros / 1_000_000).toFixed(6)}, ${formatNumberOf(used.toolCalls, "tool call")}`,
  ];
}

async function auditOf(
  context: CliContext,
  what: string,
  options: AuditCommandOptions,
  how: AuditRunOptions,
): Promise<AuditFile> {
  if (what.endsWith(".json")) return await auditRun(pathOf(context, what), how);
  return await withStore(storeLocation(context, options), "openExisting", async (stores) => {
    const { agentId } = await findAgent(stores, what);
    return await auditRun({ stores, agentId, tenant: DEFAULT_TENANT }, how);
  });
}

function reportLines(
  report: AuditReport,
  { head, verify }: { readonly head: string | undefined; readonly verify: boolean },
): string[] {
  const { problems, problemCount } = report;
  const faults = problems.map(({ agentId, seq, problem }) => {
    const where = [agentId, seq === null ? null : `entry ${seq}`].filter((part) => part !== null).join(", ");
    return `  ${where === "" ? "" : `${where}: `}${problem}`;
  });
  const more = problemCount > faults.length ? [`  and ${problemCount - faults.length} more`] : [];
  const verdict = [`${report.rootAgentId}: ${verdictOf(report, head)}`, ...faults, ...more];
  return verify ? verdict : [...verdict, ...factLines(report)];
}

function verdictOf({ verdict, covered, entries, removed }: AuditReport, head: string | undefined): string {
  switch (verdict) {
    case "verified":
      return covered === entries
        ? `verified: all entries (${entries}) are as they were when the head was kept`
        : `verified up to entry ${covered} of ${entries}: the later ones are newer than the head`;
    case "consistent":
      return "consistent; give a head that was kept elsewhere with --head, to find changes by those who can write the store";
    case "partial": {
      const missing = `the hashes of ${formatNumberOf(removed.unknown, "deleted message")} are unknown`;
      const cannot = head === undefined ? "" : ", so the head cannot be compared";
      return `partial: ${missing}${cannot}; give an audit from before the deletion with --earlier`;
    }
    default:
      return "broken";
  }
}

function factLines(report: AuditReport): string[] {
  const { head, agents, entries, removed, prompts, approvals, effects, accounts, definitions, forkedFrom } = report;
  return [
    `  head: ${head ?? "unknown"}`,
    `  entries: ${entries} of ${formatNumberOf(agents.length, "agent")}; model calls: ${prompts.length}`,
    ...(forkedFrom ? [`  forked from: ${forkedFrom.agentId}, turn ${forkedFrom.turn}`] : []),
    ...(removed.fields + removed.messages > 0
      ? [
          `  removed, with their hashes kept: ${formatNumberOf(removed.fields, "field")}, ${formatNumberOf(removed.messages, "message")}`,
        ]
      : []),
    ...listed(
      "definitions",
      definitions,
      ({ name, hash, isStored }) => `${name} ${hash}${isStored ? "" : " (not stored)"}`,
    ),
    ...listed("requests", approvals, ({ requestId, name, argumentsHash, verdict, by }) => {
      const decision = verdict === null ? "open" : `${verdict} by ${by ?? "no person"}`;
      return `${requestId} ${name}, arguments ${argumentsHash}: ${decision}`;
    }),
    ...listed(
      "effects",
      effects,
      ({ callId, name, effect, outcome }) => `${callId} ${name} (${effect ?? "no class"}): ${outcome}`,
    ),
    ...listed("accounts", accounts, ({ accountId, tokens, costMicros, toolCalls }) => {
      const calls = formatNumberOf(toolCalls, "tool call");
      return `${accountId}: ${formatNumberOf(tokens, "token")}, $${(costMicros / 1_000_000).toFixed(6)}, ${calls}`;
    }),
  ];
}

function listed<Item>(title: string, items: readonly Item[], line: (item: Item) => string): string[] {
  if (items.length === 0) return [];
  const more = items.length > SHOWN ? [`    and ${items.length - SHOWN} more; --json prints all`] : [];
  return [`  ${title}:`, ...items.slice(0, SHOWN).map((item) => `    ${line(item)}`), ...more];
}
