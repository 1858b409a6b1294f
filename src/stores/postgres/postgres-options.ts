import {
  describeValue,
  type OptionRule,
  type OptionsSchema,
  optionsOf,
  ruleOf,
  wholeNumberRule,
} from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";

/** The address of Postgres (one of `url` and `connection`) and how data is stored in it. */
export interface PostgresStoresOptions {
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
  /**
   * The schema with the tables; it is created if it is missing. 1 to 40 characters of a-z, 0-9 and _, starting with a letter. Default
   * `"troupe"`.
   */
  readonly schema?: string | undefined;
  /** Most connections for statements, from 1 to 1,000; listening uses one more. Default 10. */
  readonly maxConnections?: number | undefined;
  /** Time limit of a statement, including retries, in milliseconds, from 1 to 2,000,000,000. Default 5,000. */
  readonly timeoutMs?: number | undefined;
}

export interface CheckedOptions {
  /** Options of a `pg` client. */
  readonly client: Readonly<Record<string, unknown>>;
  readonly schema: string;
  readonly maxConnections: number;
  readonly timeoutMs: number;
}

const DEFAULT_SCHEMA = "troupe";
const DEFAULT_MAX_CONNECTIONS = 10;
const DEFAULT_TIMEOUT_MS = 5000;
const MOST_CONNECTIONS = 1_000;
/** Node's timers are limited to 2³¹ - 1 ms. */
const LONGEST_TIMEOUT_MS = 2_000_000_000;

/** A URL may contain a password, so it is never shown. */
const urlRule: OptionRule = (value, where) => {
  if (typeof value !== "string") throw new InvalidInputError(`${where} is ${describeType(value)}; expected a text`);
  assertPostgresUrl(value, where);
  return value;
};

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

const schemaRule: OptionRule = (value, where) => {
  if (typeof value === "string" && /^[a-z][a-z0-9_]{0,39}$/.test(value) && !value.startsWith("pg_")) return value;
  throw new InvalidInputError(
    `${where} is ${describeValue(value)}; expected 1 to 40 characters of a-z, 0-9 and _, starting with a letter but not with pg_`,
  );
};

const postgresOptionsSchema: OptionsSchema<PostgresStoresOptions> = {
  rules: {
    url: urlRule,
    connection: ruleOf(
      "options of a pg client: { host, database, user, password }",
      (value) => typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype,
    ),
    schema: schemaRule,
    maxConnections: wholeNumberRule(1, MOST_CONNECTIONS),
    timeoutMs: wholeNumberRule(1, LONGEST_TIMEOUT_MS),
  },
  instead: {
    connectionString: "url",
    client: "connection",
    pool: "connection",
    max: "maxConnections",
    poolSize: "maxConnections",
    prefix: "schema",
    statementTimeout: "timeoutMs",
  },
};

/** Throws `InvalidInputError` for invalid options; messages never contain the URL. */
export function checkedOptions(given: PostgresStoresOptions): CheckedOptions {
  const options = optionsOf<PostgresStoresOptions>(given, "postgresStores()", postgresOptionsSchema);
  const { url, connection, schema = DEFAULT_SCHEMA } = options;
  const { maxConnections = DEFAULT_MAX_CONNECTIONS, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  if ((url === undefined) === (connection === undefined)) {
    throw new InvalidInputError(
      `postgresStores() takes one of url and connection; ${url === undefined ? "none is" : "both are"} given`,
    );
  }
  const client = url === undefined ? { ...connection } : { connectionString: url };
  return { client, schema, maxConnections, timeoutMs };
}

function describeType(value: unknown): string {
  return value === null ? "null" : `of type ${typeof value}`;
}
