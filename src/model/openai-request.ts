/*
 * Address and headers of a Chat Completions request, as the `openai` client makes them, without the client: it takes as long to load
 * as the rest of a first turn. What is not plain is left to the client. A test compares both over all options and variables.
 */

/** The version of the `openai` package that is installed and told to servers; a test fails when they differ. */
export const clientVersion = "7.55.0";

/** The path of Chat Completions below the base URL. */
export const completionsPath = "/chat/completions";

/** Where a request goes, and its headers: their names in small letters, in order. */
export interface RequestHead {
  readonly url: string;
  readonly headers: Iterable<readonly [string, string]>;
}

export interface RequestHeadOptions {
  readonly apiKey: string;
  /** Default: OpenAI's own. */
  readonly baseURL: string | undefined;
  /** Default: `OPENAI_ORG_ID`. */
  readonly organization: string | undefined;
  /** Come in place of the client's own; but for the type of the body, which is JSON. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/** Undefined where the client may do something that is not done here: it has to be asked. */
export function plainRequestHead(options: RequestHeadOptions): RequestHead | undefined {
  if (!isPlainProcess()) return undefined;
  const url = plainUrl(options.baseURL ?? "https://api.openai.com/v1");
  const headers = plainHeaders(options);
  return url === undefined || headers === undefined ? undefined : { url, headers };
}

/** Variables by which the client logs, or sends more. */
const variablesOfTheClient = ["OPENAI_LOG", "OPENAI_CUSTOM_HEADERS"] as const;
/** What is there in browsers and in runtimes other than Node, for which the client has other headers, or refuses to work. */
const foreignGlobals = ["window", "WorkerGlobalScope", "Deno", "EdgeRuntime", "Bun"] as const;

function isPlainProcess(): boolean {
  return (
    variablesOfTheClient.every((name) => variable(name) === undefined) &&
    foreignGlobals.every((name) => !(name in globalThis))
  );
}

/** A variable as the client reads it. */
function variable(name: string): string | undefined {
  return process.env[name]?.trim() || undefined;
}

/** The client takes a query apart and puts it together again; and where there is no URL, it says so. */
function plainUrl(baseURL: string): string | undefined {
  const joined = baseURL + (baseURL.endsWith("/") ? completionsPath.slice(1) : completionsPath);
  return joined.includes("?") || !URL.canParse(joined) ? undefined : new URL(joined).toString();
}

const plainName = /^[\w!#$%&'*+.^`|~-]+$/;
/** Other values are trimmed, refused or written in other characters. */
const plainValue = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
/** It is the one header of which several are sent. */
const repeatedName = "set-cookie";

function plainHeaders({ apiKey, organization, headers }: RequestHeadOptions): RequestHead["headers"] | undefined {
  const sent = new Map<string, string>([
    ["accept", "application/json"],
    ["authorization", `Bearer ${apiKey}`],
    ["user-agent", `OpenAI/JS ${clientVersion}`],
    ["x-stainless-arch", words.arch[process.arch] ?? `other:${process.arch}`],
    ["x-stainless-lang", "js"],
    ["x-stainless-os", words.os[process.platform] ?? `Other:${process.platform}`],
    ["x-stainless-package-version", clientVersion],
    ["x-stainless-retry-count", "0"],
    ["x-stainless-runtime", "node"],
    ["x-stainless-runtime-version", process.version],
  ]);
  const account = [
    ["openai-organization", organization ?? variable("OPENAI_ORG_ID")],
    ["openai-project", variable("OPENAI_PROJECT_ID")],
  ] as const;
  for (const [name, value] of account) if (value !== undefined) sent.set(name, value);
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (!plainName.test(name)) return undefined;
    sent.set(name.toLowerCase(), value);
  }
  sent.set("content-type", "application/json");
  for (const value of sent.values()) if (!plainValue.test(value)) return undefined;
  return sent.has(repeatedName) ? undefined : [...sent].sort(([one], [other]) => (one < other ? -1 : 1));
}

/** The client's words for machines and systems. */
const words: {
  readonly arch: Readonly<Partial<Record<string, string>>>;
  readonly os: Readonly<Partial<Record<string, string>>>;
} = {
  arch: { x32: "x32", x64: "x64", arm: "arm", arm64: "arm64" },
  os: { linux: "Linux", darwin: "MacOS", win32: "Windows", freebsd: "FreeBSD", openbsd: "OpenBSD", android: "Android" },
};
