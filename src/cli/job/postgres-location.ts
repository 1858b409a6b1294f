import type { PostgresStoresOptions } from "../../stores/postgres.ts";

/** An address of Postgres as given on the command line. */
export interface PostgresAddress {
  readonly options: PostgresStoresOptions;
  /** The address without secrets. */
  readonly shown: string;
  readonly hasPassword: boolean;
}

export function isPostgresAddress(text: string): boolean {
  return /^postgres(?:ql)?:\/\//i.test(text);
}

/**
 * Parses `postgres://[user[:password]@]host[:port]/database`; the parameter `schema` names the schema. Texts that are no URL are kept,
 * for the error of the stores.
 */
export function postgresAddress(text: string): PostgresAddress {
  if (!URL.canParse(text)) return { options: { url: text }, shown: "postgres://…", hasPassword: false };
  const url = new URL(text);
  const schema = url.searchParams.get("schema") ?? undefined;
  const shown = withoutSecrets(url);
  const hasPassword = shown !== url.href;
  url.searchParams.delete("schema");
  return { options: { url: url.href, schema }, shown, hasPassword };
}

/** Removes passwords from the parameters too, because `pg` accepts them there. */
function withoutSecrets(url: URL): string {
  const shown = new URL(url.href);
  shown.password = "";
  for (const name of Array.from(shown.searchParams.keys())) {
    if (/pass|secret|token|auth/i.test(name)) shown.searchParams.delete(name);
  }
  return shown.href;
}
