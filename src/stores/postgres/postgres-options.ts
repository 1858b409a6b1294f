import { describeValue, type OptionRule, type OptionsSchema, optionsOf, wholeNumberRule } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import {
  checkedPostgresLocation,
  type ClientSettings,
  insteadOfPostgresLocation,
  type PostgresLocationOptions,
  postgresLocationRules,
} from "../../postgres/index.ts";

/** The address of Postgres (one of `url` and `connection`) and how data is stored in it. */
export interface PostgresStoresOptions extends PostgresLocationOptions {
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
  readonly client: ClientSettings;
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

const schemaRule: OptionRule = (value, where) => {
  if (typeof value === "string" && /^[a-z][a-z0-9_]{0,39}$/.test(value) && !value.startsWith("pg_")) return value;
  throw new InvalidInputError(
    `${where} is ${describeValue(value)}; expected 1 to 40 characters of a-z, 0-9 and _, starting with a letter but not with pg_`,
  );
};

const postgresOptionsSchema: OptionsSchema<PostgresStoresOptions> = {
  rules: {
    ...postgresLocationRules,
    schema: schemaRule,
    maxConnections: wholeNumberRule(1, MOST_CONNECTIONS),
    timeoutMs: wholeNumberRule(1, LONGEST_TIMEOUT_MS),
  },
  instead: { ...insteadOfPostgresLocation, prefix: "schema", statementTimeout: "timeoutMs" },
};

/** Throws `InvalidInputError` for invalid options; messages never contain the URL. */
export function checkedOptions(given: PostgresStoresOptions): CheckedOptions {
  const options = optionsOf<PostgresStoresOptions>(given, "postgresStores()", postgresOptionsSchema);
  const { schema = DEFAULT_SCHEMA } = options;
  const { maxConnections = DEFAULT_MAX_CONNECTIONS, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  return { client: checkedPostgresLocation("postgresStores()", options), schema, maxConnections, timeoutMs };
}
