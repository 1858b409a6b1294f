import { type OptionRule, ruleOf } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";

/** The address of Postgres: one of `url` and `connection`. */
export interface PostgresLocationOptions {
  /**
   * `postgres://[user[:password]@]host[:port]/database`, with the parameters of `pg`: `?sslmode=verify-full` for TLS, `&sslrootcert=FILE`
   * for its CA. Default: none; one of `url` and `connection` is required.
   */
  readonly url?: string | undefined;
  /**
   * Options of a `pg` client instead of a URL, for instance `{ host, database, user, password: () => token(), ssl: { ca } }`. Default:
   * none.
   */
  readonly connection?: Readonly<Record<string, unknown>> | undefined;
}

/** Options of a `pg` client. */
export type ClientSettings = Readonly<Record<string, unknown>>;

/** A URL may contain a password, so it is never shown. */
const urlRule: OptionRule = (value, where) => {
  if (typeof value !== "string") throw new InvalidInputError(`${where} is ${describeType(value)}; expected a text`);
  assertPostgresUrl(value, where);
  return value;
};

/** The option rules of all components that use Postgres. */
export const postgresLocationRules = {
  url: urlRule,
  connection: ruleOf(
    "options of a pg client: { host, database, user, password }",
    (value) => typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype,
  ),
} as const;

/** Names that other packages have for these options. */
export const insteadOfPostgresLocation = {
  connectionString: "url",
  client: "connection",
  pool: "connection",
  max: "maxConnections",
  poolSize: "maxConnections",
} as const;

/** Throws `InvalidInputError` unless exactly one location is given. `taker` is the function whose options are checked. */
export function checkedPostgresLocation(taker: string, { url, connection }: PostgresLocationOptions): ClientSettings {
  if ((url === undefined) === (connection === undefined)) {
    throw new InvalidInputError(
      `${taker} takes one of url and connection; ${url === undefined ? "none is" : "both are"} given`,
    );
  }
  return url === undefined ? { ...connection } : { connectionString: url };
}

/** Throws `InvalidInputError` for a text that is not a URL of Postgres; its message does not contain the text. */
export function assertPostgresUrl(text: string, where: string): void {
  const parsed = URL.canParse(text) ? new URL(text) : undefined;
  if (parsed && isPostgresUrl(text)) return;
  throw new InvalidInputError(
    `${where}: invalid Postgres URL; expected postgres://[user[:password]@]host[:port]/database`,
  );
}

/** Whether a text is meant as a URL of Postgres. */
export function isPostgresUrl(text: string): boolean {
  return /^postgres(?:ql)?:\/\//i.test(text);
}

function describeType(value: unknown): string {
  return value === null ? "null" : `of type ${typeof value}`;
}
