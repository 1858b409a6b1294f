export { PostgresConnection, type PostgresUser } from "./postgres-connection.ts";
export {
  endsConnection,
  isConflict,
  isMissingTable,
  isTimeout,
  isUnsure,
  isWorthRepeating,
  sqlState,
  translated,
} from "./postgres-errors.ts";
export {
  assertPostgresUrl,
  checkedPostgresLocation,
  type ClientSettings,
  insteadOfPostgresLocation,
  isPostgresUrl,
  type PostgresLocationOptions,
  postgresLocationRules,
} from "./postgres-location.ts";
export { prepared, type Query, queryOf, type Row, type Statement, within } from "./postgres-query.ts";
