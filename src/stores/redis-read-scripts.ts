import { script } from "./redis-script.ts";

/**
 * Reads rows of a tree: all of them where they are few.
 * KEYS rows. ARGV 1 how many are few, then names.
 * Gives {"all", name, row, ...} or {"some", row or nil for each name}.
 */
export const rowsScript = script(
  "rows",
  `
if redis.call('HLEN', KEYS[1]) <= tonumber(ARGV[1]) then
  local all = redis.call('HGETALL', KEYS[1])
  table.insert(all, 1, 'all')
  return all
end
local some = {'some'}
for at = 2, #ARGV do some[at] = redis.call('HGET', KEYS[1], ARGV[at]) end
return some
`,
);

/**
 * Reads a collection with the version it has.
 * KEYS rows, the collection. ARGV 1 name of the version's row, 2 HGETALL or LRANGE.
 * Gives {version row or nil, members}.
 */
export const collectionScript = script(
  "collection",
  `
local members
if ARGV[2] == 'LRANGE' then members = redis.call('LRANGE', KEYS[2], 0, -1)
else members = redis.call('HGETALL', KEYS[2]) end
return {redis.call('HGET', KEYS[1], ARGV[1]), members}
`,
);

/**
 * Reads who belongs to a tree.
 * KEYS rows, ids of the agents. Gives {ids, their records, the versions of their sets of children}, "" for what is absent.
 */
export const familiesScript = script(
  "families",
  `
local ids = redis.call('LRANGE', KEYS[2], 0, -1)
local records, versions = {}, {}
for at, id in ipairs(ids) do
  records[at] = redis.call('HGET', KEYS[1], 'a:' .. id) or ''
  versions[at] = redis.call('HGET', KEYS[1], 'k:' .. id) or ''
end
return {ids, records, versions}
`,
);

/**
 * Reads a page of one agent's rows of the journal.
 * KEYS journal, index of the agent. ARGV 1 lowest seq that a row must reach, 2 how many rows at most.
 * Gives {{seq of its last entry, stream entry or nil}, ...}.
 */
export const agentRowsScript = script(
  "agent-rows",
  `
local index = redis.call('ZRANGEBYSCORE', KEYS[2], ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local page = {}
for at = 1, #index, 2 do
  local id = index[at] .. '-0'
  page[#page + 1] = {index[at + 1], redis.call('XRANGE', KEYS[1], id, id)[1] or false}
end
return page
`,
);
