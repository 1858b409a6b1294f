export {
  type RedisClient,
  type RedisLocation,
  type RedisLocationOptions,
  checkedRedisLocation,
  redisLocationRules,
} from "./redis-location.ts";
export { checkServers, type ServerFacts, unlessRefused } from "./redis-check.ts";
export { letGo, RedisLink, type RedisUser, sharedLinkOf, within, withSharedLink } from "./redis-link.ts";
export {
  hasAnswered,
  isMissingScript,
  isWorthRepeating,
  networkCode,
  translated,
} from "./redis-errors.ts";
