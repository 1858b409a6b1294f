import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { render } from "preact";
import { useMemo, useState } from "preact/hooks";
import { type AuditReport, checkAudit, entryOf } from "../../run-model/audit-check.ts";
import type { AuditFile } from "../../run-model/audit-file.ts";
import "./audit.css";

/** One implementation for all browsers: `crypto.subtle` is missing in pages that are not secure contexts. */
function hashInPage(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)));
}

/** Most entries that are drawn at once. */
const ENTRIES_SHOWN = 500;

const words: Readonly<Record<AuditReport["verdict"], string>> = {
  verified: "Verified",
  consistent: "Consistent",
  partial: "Partial",
  broken: "Broken",
};

function Page({ file }: { readonly file: AuditFile }) {
  const [head, setHead] = useState("");
  const given = /^[0-9a-f]{64}$/.test(head.trim()) ? head.trim() : undefined;
  const report = useMemo(() => checkAudit(file, { sha256: hashInPage, head: given }), [file, given]);
  return (
    <>
      <h1>Audit of {report.rootAgentId}</h1>
      <section class={`verdict ${report.verdict}`} role="status">
        <strong>{words[report.verdict]}</strong>
        <p>{meaningOf(report)}</p>
      </section>
      <label>
        Head that was kept elsewhere
        <input value={head} spellcheck={false} onInput={({ currentTarget }) => setHead(currentTarget.value)} />
      </label>
      {head.trim() !== "" && given === undefined && <p class="hint">A head has 64 hexadecimal digits.</p>}
      <Problems report={report} />
      <dl>
        <dt>Head of this run</dt>
        <dd class="mono">{report.head ?? "unknown"}</dd>
        <dt>Audited</dt>
        <dd>{timeOf(file.auditedAt)}</dd>
        {report.forkedFrom && (
          <>
            <dt>Forked from</dt>
            <dd>
              {report.forkedFrom.agentId}, turn {report.forkedFrom.turn}
            </dd>
          </>
        )}
        <dt>Removed, with the hash kept</dt>
        <dd>
          {report.removed.fields} fields, {report.removed.messages} messages
        </dd>
      </dl>
      <Facts report={report} />
      <Entries links={file.links} report={report} />
    </>
  );
}

function meaningOf({ verdict, covered, entries, removed }: AuditReport): string {
  switch (verdict) {
    case "verified":
      return covered === entries
        ? `All ${entries} entries are as they were when the head was kept.`
        : `The head covers the first ${covered} of ${entries} entries; the later ones are newer.`;
    case "consistent":
      return "The entries, approvals and amounts fit together. Enter a head that was kept elsewhere to exclude that the whole run was replaced.";
    case "partial":
      return `The hashes of ${removed.unknown} deleted messages are unknown, so the head cannot be computed.`;
    default:
      return "Something in this run was changed. The parts that do not fit are listed below.";
  }
}

function Problems({ report: { problems, problemCount } }: { readonly report: AuditReport }) {
  if (problemCount === 0) return null;
  return (
    <section>
      <h2>What is broken ({problemCount})</h2>
      <ul class="problems">
        {problems.map(({ agentId, seq, problem }, index) => (
          <li key={index}>
            {agentId !== null && <b>{agentId}</b>}
            {seq !== null && ` entry ${seq}`}
            {agentId !== null && ": "}
            {problem}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Facts({ report }: { readonly report: AuditReport }) {
  const { agents, definitions, approvals, effects, accounts, prompts } = report;
  return (
    <>
      <Table
        title="Requests"
        columns={["Request", "Tool", "Arguments", "Decision", "Person"]}
        rows={approvals.map((one) => [one.requestId, one.name, one.argumentsHash, one.verdict ?? "open", one.by ?? ""])}
      />
      <Table
        title="Effects"
        columns={["Call", "Tool", "Class", "Outcome"]}
        rows={effects.map((one) => [one.callId, one.name, one.effect ?? "", one.outcome])}
      />
      <Table
        title="Money"
        columns={["Account", "Tokens", "Micro-dollars", "Tool calls", "Stored account"]}
        rows={accounts.map(({ accountId, tokens, costMicros, toolCalls, isEqual }) => [
          accountId,
          String(tokens),
          String(costMicros),
          String(toolCalls),
          isEqual === null ? "not compared" : isEqual ? "equal" : "differs",
        ])}
      />
      <Table
        title="Prompts"
        columns={["Agent", "Turn", "Step", "Model", "Hash"]}
        rows={prompts.map((one) => [one.agentId, one.turnId, String(one.step), one.model, one.promptHash])}
      />
      <Table title="Definitions" columns={["Name", "Hash"]} rows={definitions.map(({ name, hash }) => [name, hash])} />
      <Table
        title="Agents"
        columns={["Agent", "Head"]}
        rows={agents.map(({ agentId, head }) => [agentId, head ?? "unknown"])}
      />
    </>
  );
}

interface TableProps {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

function Table({ title, columns, rows }: TableProps) {
  if (rows.length === 0) return null;
  return (
    <details open={rows.length <= 20}>
      <summary>
        {title} ({rows.length})
      </summary>
      <table>
        <thead>
          <tr>
            {columns.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, ENTRIES_SHOWN).map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > ENTRIES_SHOWN && <p>And {rows.length - ENTRIES_SHOWN} more.</p>}
    </details>
  );
}

function Entries({ links, report }: { readonly links: AuditFile["links"]; readonly report: AuditReport }) {
  const [shown, setShown] = useState(ENTRIES_SHOWN);
  const broken = new Set(report.problems.map(({ agentId, seq }) => `${agentId} ${seq}`));
  return (
    <section>
      <h2>The run in order</h2>
      <ol class="entries">
        {links.slice(0, shown).map((link, index) => {
          const { agentId, entry } = link;
          const { seq, at, type } = entryOf(link);
          const isBroken = broken.has(`${agentId} ${seq}`);
          return (
            <li key={index} class={isBroken ? "broken" : ""}>
              <details>
                <summary>
                  <span class="mono">
                    {agentId} {seq}
                  </span>{" "}
                  {type} <time>{timeOf(at)}</time>
                  {isBroken && <b> broken</b>}
                </summary>
                <pre>{JSON.stringify({ entry, messages: link.messages }, null, 2)}</pre>
                <p class="mono">{link.hash ?? "hash unknown"}</p>
              </details>
            </li>
          );
        })}
      </ol>
      {links.length > shown && (
        <button type="button" onClick={() => setShown(shown + ENTRIES_SHOWN)}>
          Show more of {links.length} entries
        </button>
      )}
    </section>
  );
}

function timeOf(at: number): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? String(at) : time.toISOString();
}

function start(): void {
  const app = document.getElementById("app");
  if (!app) return;
  try {
    const file = JSON.parse(document.getElementById("troupe-audit")?.textContent ?? "") as AuditFile;
    render(<Page file={file} />, app);
  } catch {
    render(
      <section class="verdict broken" role="status">
        <strong>Broken</strong>
        <p>The data of this page cannot be read.</p>
      </section>,
      app,
    );
  }
}

start();
