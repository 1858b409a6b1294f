import { script } from "./redis-scripts.ts";

/**
 * Reads rows of a tree, or all rows if there are few.
 * KEYS rows. ARGV 1 how many count as few, then names.
 * Returns {"all", name, row, ...} or {"some", row or nil for each name}.
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
 * Finds rows that are older than the version in which this process saw them.
 * KEYS rows. ARGV for each row its name and the newest version seen.
 * Returns the oldest version of such a row, 0 for a missing row, "" if there is none.
 */
export const olderRowsScript = script(
  "older-rows",
  `
local oldest = ''
for at = 1, #ARGV, 2 do
  local version = string.match(redis.call('HGET', KEYS[1], ARGV[at]) or '', '^(%d+)|') or '0'
  local isOlder = tonumber(version) < tonumber(ARGV[at + 1])
  if isOlder and (oldest == '' or tonumber(version) < tonumber(oldest)) then oldest = version end
end
return oldest
`,
);

/**
 * Reads a collection and its version.
 * KEYS rows, the collection. ARGV 1 name of the version's row, 2 HGETALL or LRANGE.
 * Returns {version row or nil, members}.
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
 * Reads the agents of a tree.
 * KEYS rows, ids of the agents. Returns {ids, their records, the versions of their sets of children}, "" for missing values.
 */
export const familiesScript = script(
  "families",
  `
local ids = redis.call('LRANGE', KEYS[2], 0, -1)
local records, versions = {}, {}
for at, id in ipairs(ids) do
  records[at] = redis.call('HGET', KEYS[1], 'agent:' .. id) or ''
  versions[at] = redis.call('HGET', KEYS[1], 'children:' .. id) or ''
end
return {ids, records, versions}
`,
);

/**
 * Reads a page of one agent's journal rows.
 * KEYS journal, index of the agent. ARGV 1 lowest seq that a row must reach, 2 how many rows at most.
 * Returns {{seq of its last entry, stream entry or nil}, ...}.
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

/**
 * Reads whether a turn has ended, and the data of its result.
 * KEYS rows, journal, index of the agent, messages of the agent. ARGV 1 name of the agent's record, 2 of the turn's
 * account, 3 lowest seq that a journal row must reach, 4 how many rows at most, 5 the turn's id, 6 the same as JSON text.
 * Returns {record or ""}. If the turn is not open and no more rows were found, also account or "", the message that the turn's end names
 * or "", and id, version and text of each row, all in one list. The record is searched as text, not parsed: the reader checks the result.
 */
export const turnLookScript = script(
  "turn-look",
  `
local read = redis.call('HMGET', KEYS[1], ARGV[1], ARGV[2])
local record = read[1] or ''
if record == '' or string.find(record, '"openTurnId":' .. ARGV[6], 1, true) then return {record} end
local cursors = redis.call('ZRANGEBYSCORE', KEYS[3], ARGV[3], '+inf', 'LIMIT', 0, ARGV[4])
if #cursors == tonumber(ARGV[4]) then return {record} end
local entries, answer = {}, {record, read[2] or '', ''}
local first, last = cursors[1], cursors[#cursors]
-- Where no other agent has written in between, the rows are one range.
if first and last - first + 1 == #cursors then entries = redis.call('XRANGE', KEYS[2], first .. '-0', last .. '-0')
else
  for at, cursor in ipairs(cursors) do
    local entry = redis.call('XRANGE', KEYS[2], cursor .. '-0', cursor .. '-0')[1]
    if not entry then return {record} end
    entries[at] = entry
  end
end
if #entries < #cursors then return {record} end
for _, entry in ipairs(entries) do
  local values = entry[2]
  if values[3] ~= 'version' or values[5] ~= 'entries' then return {record} end
  answer[#answer + 1] = entry[1]
  answer[#answer + 1] = values[4]
  answer[#answer + 1] = values[6]
  -- A row with the end of a turn names the turn and its answer after the other fields.
  if values[7] == 'turn' and values[8] == ARGV[5] then answer[3] = redis.call('HGET', KEYS[4], values[10]) or '' end
end
return answer
`,
);

/**
 * Reads the items in an agent's inbox, and its record.
 * KEYS inbox, rows. ARGV 1 name of the record. Returns the items and then the record or "", in one list.
 */
export const inboxScript = script(
  "inbox",
  `
local answer = redis.call('HVALS', KEYS[1])
answer[#answer + 1] = redis.call('HGET', KEYS[2], ARGV[1]) or ''
return answer
`,
);

/**
 * Reads a page of each of several sorted sets.
 * KEYS sorted sets. ARGV 1 "name" or "score", 2 from, 3 to, 4 how many of these to skip, 5 how many at most.
 * Returns the members of each set, by score each with its score.
 */
export const pagesScript = script(
  "pages",
  `
local pages = {}
for at, key in ipairs(KEYS) do
  if ARGV[1] == 'name' then pages[at] = redis.call('ZRANGEBYLEX', key, ARGV[2], ARGV[3], 'LIMIT', ARGV[4], ARGV[5])
  else pages[at] = redis.call('ZRANGEBYSCORE', key, ARGV[2], ARGV[3], 'WITHSCORES', 'LIMIT', ARGV[4], ARGV[5]) end
end
return pages
`,
);

/**
 * Reads timers of a tree.
 * KEYS their times, timers. ARGV 1 the latest time. Returns {earliest time or "", timers up to the latest time, in order}.
 */
export const timersScript = script(
  "timers",
  `
local found = {}
for at, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])) do
  found[at] = redis.call('HGET', KEYS[2], id) or ''
end
return {redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or '', found}
`,
);

const rowsOfTree = `
local function rowsOf(kind, names)
  local found = {}
  for at, name in ipairs(names) do found[at] = redis.call('HGET', KEYS[1], kind .. name) or '' end
  return found
end
local agents = redis.call('LRANGE', KEYS[3], 0, -1)
local accounts = redis.call('LRANGE', KEYS[4], 0, -1)
`;

/**
 * Reads which agents work in a tree and which requests are open.
 * KEYS rows, open requests, ids of the agents, ids of the accounts, inboxes.
 * Returns {} if no request is open, else {requests, their rows, agents, their records, accounts, their rows, and the items of each
 * inbox}, "" for missing values.
 */
export const treeActivityScript = script(
  "tree-activity",
  `
local open = redis.call('ZRANGE', KEYS[2], 0, -1)
if #open == 0 then return {} end
${rowsOfTree}
local activity = {open, rowsOf('request:', open), agents, rowsOf('agent:', agents), accounts, rowsOf('account:', accounts)}
for at = 5, #KEYS do activity[#activity + 1] = redis.call('HVALS', KEYS[at]) end
return activity
`,
);

/**
 * Reads a tree without its journal.
 * KEYS rows, open requests, ids of the agents, ids of the accounts, meta.
 * Returns {last cursor, requests, their rows, agents, their records, accounts, their rows}, "" for missing values.
 */
export const treeHeadScript = script(
  "tree-head",
  `
local open = redis.call('ZRANGE', KEYS[2], 0, -1)
${rowsOfTree}
return {
  redis.call('HGET', KEYS[5], 'cursor') or '0',
  open, rowsOf('request:', open), agents, rowsOf('agent:', agents), accounts, rowsOf('account:', accounts)
}
`,
);

/**
 * Reads the heads of a tree's agents.
 * KEYS rows, ids of the agents. Returns {ids, their heads}, "" for missing values.
 */
export const headsScript = script(
  "heads",
  `
local ids = redis.call('LRANGE', KEYS[2], 0, -1)
local heads = {}
for at, id in ipairs(ids) do heads[at] = redis.call('HGET', KEYS[1], 'head:' .. id) or '' end
return {ids, heads}
`,
);

/** Reads inboxes. KEYS inboxes. Returns the items of each. */
export const inboxesScript = script(
  "inboxes",
  `
local found = {}
for at, key in ipairs(KEYS) do found[at] = redis.call('HVALS', key) end
return found
`,
);

/** Checks which keys exist. KEYS any. Returns 1 or 0 for each. */
export const existsScript = script(
  "exists",
  `
local found = {}
for at, key in ipairs(KEYS) do found[at] = redis.call('EXISTS', key) end
return found
`,
);

/**
 * Reads members of the index of holders that belong to dead processes, skipping those of living ones.
 * KEYS index. ARGV 1 the member to begin with, 2 how many members at most, then the names of living processes.
 */
export const deadHoldersScript = script(
  "lost-holders",
  `
local living = {}
for at = 3, #ARGV do living[ARGV[at]] = true end
local found, from, most = {}, ARGV[1], tonumber(ARGV[2])
while #found < most do
  local first = redis.call('ZRANGEBYLEX', KEYS[1], from, '+', 'LIMIT', 0, 1)[1]
  if not first then break end
  local holder = string.match(first, '^(%S+) ')
  local behind = holder .. '!'
  if living[holder] then from = '[' .. behind
  else
    local page = redis.call('ZRANGEBYLEX', KEYS[1], '[' .. first, '(' .. behind, 'LIMIT', 0, most - #found)
    for _, member in ipairs(page) do found[#found + 1] = member end
    from = '(' .. page[#page]
  end
end
return found
`,
);
