export {
  type RedisClient,
  type RedisPlace,
  type RedisPlaceOptions,
  checkedPlace,
  redisPlaceRules,
} from "./redis-place.ts";
export { checkServers, type ServerFacts, unlessRefused } from "./redis-check.ts";
export { letGo, RedisLink, type RedisUser, sharedLinkOf, within, withSharedLink } from "./redis-link.ts";
export {
  hasAnswered,
  isMissingScript,
  isWorthRepeating,
  networkCode,
  translated,
} from "./redis-errors.ts";
