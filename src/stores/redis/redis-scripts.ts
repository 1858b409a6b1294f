import { createHash } from "node:crypto";

/** A Lua script, which Redis runs atomically. Its text is sent to a server once; later calls use its hash. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

/** The name is for people who read a server's scripts or slow log. */
export function script(name: string, body: string): Script {
  const text = `-- troupe ${name}\n${body}`;
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

/** How long a transaction may rely on its index entries, in milliseconds. */
export const INDEX_WRITE_LASTS_MS = 60_000;

/** How many rows one command reads or writes; the stack of a script is limited. */
const ROWS_AT_ONCE = 1_000;
/** Minimum time for which the outcome of a transaction is kept in case it is sent again, in microseconds. */
const RECEIPT_MICROS = 600_000_000;

/** A Lua function that writes a member of an index and the time of the write. */
const writeIndex = `
local function writeIndex(list, stamps, kind, member, score, stamp)
  if kind == 'name' then redis.call('ZADD', list, 0, member)
  elseif kind == 'at' then redis.call('ZADD', list, score, member)
  else redis.call('ZADD', list, 'LT', score, member) end
  redis.call('HSET', stamps, member, stamp)
end
`;

/** Lua functions with which a transaction checks its reads and changes its tree. The enclosing script declares the variables. */
const transactionSteps = `
local found = {
  ['in'] = function(key, name) return tostring(redis.call('HEXISTS', key, name)) end,
  size = function(key) return tostring(redis.call('HLEN', key)) end,
  first = function(key) return redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or '' end,
  tree = function() return redis.call('HGET', meta, 'version') or '' end,
}
local function forgetReceipts()
  local fields = redis.call('HGETALL', meta)
  for at = 1, #fields, 2 do
    local written = string.match(fields[at], '^receipt:') and string.match(fields[at + 1], '^%S+ (%d+) ')
    if written and tonumber(written) < micros - ${RECEIPT_MICROS} then redis.call('HDEL', meta, fields[at]) end
  end
end
local function keyAt(at) return KEYS[tonumber(ARGV[at])] end
-- Each gives the place after its last argument.
local operations = {
  row = function(a)
    written[#written + 1] = ARGV[a]
    written[#written + 1] = version .. '|' .. ARGV[a + 1]
    return a + 2
  end,
  gone = function(a)
    redis.call('HDEL', rows, ARGV[a])
    return a + 1
  end,
  push = function(a)
    redis.call('RPUSH', keyAt(a), ARGV[a + 1])
    return a + 2
  end,
  pull = function(a)
    redis.call('LREM', keyAt(a), 0, ARGV[a + 1])
    return a + 2
  end,
  put = function(a)
    redis.call('HSET', keyAt(a), ARGV[a + 1], ARGV[a + 2])
    return a + 3
  end,
  item = function(a)
    ordinal = ordinal + 1
    redis.call('HSET', keyAt(a), ARGV[a + 1], whole(ordinal) .. '|' .. ARGV[a + 2])
    answer[#answer + 1] = string.match(stored[ARGV[a + 3]] or '', '"holder":"([^"]*)"') or ''
    return a + 4
  end,
  take = function(a)
    redis.call('HDEL', keyAt(a), ARGV[a + 1])
    return a + 2
  end,
  place = function(a)
    redis.call('ZADD', keyAt(a), ARGV[a + 2], ARGV[a + 1])
    return a + 3
  end,
  unplace = function(a)
    redis.call('ZREM', keyAt(a), ARGV[a + 1])
    return a + 2
  end,
  drop = function(a)
    redis.call('DEL', keyAt(a))
    return a + 1
  end,
  purge = function(a)
    isPurged = true
    return a
  end,
  highest = function(a)
    local key, name, value = keyAt(a), ARGV[a + 1], ARGV[a + 2]
    if tonumber(value) > tonumber(redis.call('HGET', key, name) or '0') then redis.call('HSET', key, name, value) end
    return a + 3
  end,
  entries = function(a)
    cursor = ARGV[a + 1] == '' and cursor + 1 or tonumber(ARGV[a + 1])
    local id, agent, form, text, turn = whole(cursor) .. '-0', ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6]
    if turn == '' then redis.call('XADD', journal, id, 'agent', agent, 'version', form, 'entries', text)
    else redis.call('XADD', journal, id, 'agent', agent, 'version', form, 'entries', text, 'turn', turn, 'answer', ARGV[a + 7]) end
    redis.call('ZADD', keyAt(a), ARGV[a + 2], whole(cursor))
    return a + 8
  end,
  index = function(a)
    local list, stamps, kind, member = keyAt(a), keyAt(a + 1), ARGV[a + 2], ARGV[a + 3]
    if kind ~= 'leaving' then writeIndex(list, stamps, kind, member, ARGV[a + 4], moment)
    else
      redis.pcall('HDEL', stamps, member)
      redis.pcall('ZREM', list, member)
    end
    return a + 5
  end,
  message = function(a)
    if redis.call('HSETNX', keyAt(a), ARGV[a + 2], whole(cursor) .. '|' .. ARGV[a + 3]) == 1 then
      redis.call('RPUSH', keyAt(a + 1), ARGV[a + 2])
    end
    return a + 4
  end,
}
`;

/**
 * Validates the reads of a transaction on one tree, then applies its changes.
 * KEYS rows, meta, journal, lock, expiring keys, and the keys that are referred to by number below
 * ARGV 1 id of the transaction, 2 who sends it, 3 "1" when it may have been applied before, 4 when its indexes were written
 *      (ms, "" for none), 5 channel, 6 message for it ("" for none), 7 newest version of the tree that the sender has seen,
 *      8 count of rows, rows: name, expected version, "" for none, "*" for any: an operation reads the row
 *      count of checks, checks: kind, number of key, name, expected
 *        in: whether a hash has a field; size: of a hash; first: lowest score of a sorted set, "" for none;
 *        tree: version of the whole tree
 *      operations: name, arguments; see above. On one server, "index" writes the indexes over trees; entries that add members
 *        come first, so that nothing is changed if one cannot be written
 * Returns one text, because each element of a reply costs time on both sides: one line each for version, cursor before, and for each
 * "item" the holder of the inbox's agent or "" (no holders if it had been applied before); or, if nothing was written: {"changed", kind,
 * key, name, value, ...} for each check that failed, {"changed", "older", key of meta, "", version} if the tree has an older version than
 * the sender has seen, {"locked"} while another process has locked the tree, {"late"} if the indexes are too old.
 * "purge" also deletes meta, with the receipts. Publishes the sender and the message. Beside version, cursor and counter, meta has a receipt for each sender: id, version and cursor
 * before its last transaction. A sender without a receipt removes receipts that are too old to be needed.
 */
export const applyScript = script(
  "apply",
  `
${writeIndex}
local function whole(number) return string.format('%.0f', number) end
local rows, meta, journal = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local moment = whole(micros)
local stored = {}
local version, cursor, ordinal, written, answer
local isPurged = false
${transactionSteps}
local place = 'receipt:' .. ARGV[2]
local known = redis.call('HMGET', meta, 'version', 'cursor', 'ordinal', place)
if ARGV[3] == '1' and known[4] then
  local id, version, cursor = string.match(known[4], '^(%S+) (%S+) (%S+)$')
  if id == ARGV[1] then return version .. '\\n' .. cursor end
end
local holder = redis.call('GET', KEYS[4])
if holder and holder ~= ARGV[2] then return {'locked'} end
if ARGV[4] ~= '' and micros / 1000 - tonumber(ARGV[4]) > ${INDEX_WRITE_LASTS_MS} then return {'late'} end
local last, before, placed = known[1] or '0', known[2] or '0', known[3] or '0'
if tonumber(last) < tonumber(ARGV[7]) then return {'changed', 'older', '2', '', last} end

local rowsEnd = 8 + 2 * tonumber(ARGV[8])
local names, changed = {}, {'changed'}
for at = 9, rowsEnd, 2 do names[#names + 1] = ARGV[at] end
for from = 1, #names, ${ROWS_AT_ONCE} do
  local till = math.min(from + ${ROWS_AT_ONCE - 1}, #names)
  for number, value in ipairs(redis.call('HMGET', rows, unpack(names, from, till))) do
    local name, expected = names[from + number - 1], ARGV[8 + 2 * (from + number - 1)]
    stored[name] = value or ''
    if expected ~= '*' and (string.match(value or '', '^(%d+)|') or '') ~= expected then
      for _, part in ipairs({'row', '1', name, value or ''}) do changed[#changed + 1] = part end
    end
  end
end
local at = rowsEnd + 2
local checks = at + 4 * tonumber(ARGV[rowsEnd + 1])
while at < checks do
  local kind, key, name = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local is = found[kind](KEYS[tonumber(key)], name)
  if is ~= ARGV[at + 3] then
    for _, part in ipairs({kind, key, name, is}) do changed[#changed + 1] = part end
  end
  at = at + 4
end
if #changed > 1 then return changed end
if at > #ARGV then return last .. '\\n' .. before end

cursor, ordinal = tonumber(before), tonumber(placed)
version = whole(math.max(tonumber(last) + 1, micros))
written, answer = {}, {version, before}
local expiring = redis.call('SMEMBERS', KEYS[5])
for _, key in ipairs(expiring) do redis.call('PERSIST', key) end
if #expiring > 0 then redis.call('DEL', KEYS[5]) end
if not known[4] then forgetReceipts() end
while at <= #ARGV do at = operations[ARGV[at]](at + 1) end
for from = 1, #written, ${2 * ROWS_AT_ONCE} do
  redis.call('HSET', rows, unpack(written, from, math.min(from + ${2 * ROWS_AT_ONCE - 1}, #written)))
end
if isPurged then
  redis.call('DEL', meta, KEYS[5])
  if ARGV[6] ~= '' then redis.call('PUBLISH', ARGV[5], ARGV[2] .. ' ' .. ARGV[6]) end
  return table.concat(answer, '\\n')
end
local receipt = ARGV[1] .. ' ' .. version .. ' ' .. before
redis.call('HSET', meta, 'version', version, 'cursor', whole(cursor), 'ordinal', whole(ordinal), place, receipt)
if ARGV[6] ~= '' then redis.call('PUBLISH', ARGV[5], ARGV[2] .. ' ' .. ARGV[6]) end
return table.concat(answer, '\\n')
`,
);

/**
 * Writes the index entries of a transaction that is about to write.
 * KEYS the indexes and the hashes of each member's last write, all of one partition.
 * ARGV operations: kind, number of index, number of hash, member, score
 *   name: a member of an index by name; at: a member at a score; from: a member at the lowest score written since it was
 *   corrected; leaving: changes nothing
 * Returns {the time in ms, for each "leaving" when the member was last written or ""}.
 */
export const writeIndexesScript = script(
  "write-indexes",
  `
${writeIndex}
local time = redis.call('TIME')
local stamp = string.format('%.0f', time[1] * 1000000 + time[2])
local answer = {string.format('%.0f', math.floor(stamp / 1000))}
for at = 1, #ARGV, 5 do
  local kind, list, stamps = ARGV[at], KEYS[tonumber(ARGV[at + 1])], KEYS[tonumber(ARGV[at + 2])]
  local member, score = ARGV[at + 3], ARGV[at + 4]
  if kind == 'leaving' then answer[#answer + 1] = redis.call('HGET', stamps, member) or ''
  else writeIndex(list, stamps, kind, member, score, stamp) end
end
return answer
`,
);

/**
 * Corrects an index after its tree was changed, unless the member was written again in between.
 * KEYS index, stamps. ARGV 1 member, 2 when it was last written, read before the tree was changed, 3 score to set, ""
 * to remove the member.
 */
export const correctIndexScript = script(
  "correct-index",
  `
if (redis.call('HGET', KEYS[2], ARGV[1]) or '') ~= ARGV[2] then return 0 end
if ARGV[3] ~= '' then return redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1]) end
redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('ZREM', KEYS[1], ARGV[1])
`,
);

/**
 * Removes a member from an index if its tree does not exist, unless it was written recently.
 * KEYS index, stamps. ARGV 1 member, 2 its minimum age in ms.
 */
export const forgetIndexScript = script(
  "forget-index",
  `
local time = redis.call('TIME')
local told = tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or '0')
if time[1] * 1000 + time[2] / 1000 - told / 1000 < tonumber(ARGV[2]) then return 0 end
redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('ZREM', KEYS[1], ARGV[1])
`,
);

/**
 * Lets all keys of a tree expire at one moment, unless the tree was changed in between.
 * KEYS expiring keys, meta, all others of the tree. ARGV 1 version of the tree, 2 in how many ms.
 */
export const expireScript = script(
  "expire",
  `
if redis.call('HGET', KEYS[2], 'version') ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
local moment = string.format('%.0f', math.floor(time[1] * 1000 + time[2] / 1000) + tonumber(ARGV[2]))
for at = 2, #KEYS do redis.call('SADD', KEYS[1], KEYS[at]) end
for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, moment) end
return 1
`,
);

/**
 * Lists a tree that is about to expire, with its entries in the indexes; a later call replaces an earlier one.
 * KEYS trees by when they are due, their entries. ARGV 1 tag, 2 entries, 3 in how many ms they are due.
 */
export const noteExpiredScript = script(
  "note-expired",
  `
local time = redis.call('TIME')
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return redis.call('ZADD', KEYS[1], math.floor(time[1] * 1000 + time[2] / 1000) + tonumber(ARGV[3]), ARGV[1])
`,
);

/**
 * Reads the trees that are due, earliest first: for each its tag, when it was due, and its entries.
 * KEYS trees by when they are due, their entries. ARGV 1 how many at most.
 */
export const dueExpiredScript = script(
  "due-expired",
  `
local time = redis.call('TIME')
local now = string.format('%.0f', math.floor(time[1] * 1000 + time[2] / 1000))
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local answer = {}
for at = 1, #due, 2 do
  answer[#answer + 1] = due[at]
  answer[#answer + 1] = due[at + 1]
  answer[#answer + 1] = redis.call('HGET', KEYS[2], due[at]) or ''
end
return answer
`,
);

/** Removes a tree from the trees that are due, unless it was listed again. KEYS as above. ARGV 1 tag, 2 when it was due. */
export const dropExpiredScript = script(
  "drop-expired",
  `
if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('ZREM', KEYS[1], ARGV[1])
`,
);

/**
 * Removes members of several indexes that were not written recently.
 * KEYS index, stamps; and so on. ARGV 1 minimum age of a member in ms; then for each member the number of its index's key, the member,
 * and the score that it must have, "" for any.
 */
export const forgetIndexesScript = script(
  "forget-indexes",
  `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
for at = 2, #ARGV, 3 do
  local list, stamps = KEYS[tonumber(ARGV[at])], KEYS[tonumber(ARGV[at]) + 1]
  local member, score = ARGV[at + 1], ARGV[at + 2]
  local told = tonumber(redis.call('HGET', stamps, member) or '0')
  local isSame = score == '' or redis.call('ZSCORE', list, member) == score
  if isSame and now - told / 1000 >= tonumber(ARGV[1]) then
    redis.call('HDEL', stamps, member)
    redis.call('ZREM', list, member)
  end
end
return 1
`,
);

/** Releases a lock if the caller still holds it. KEYS lock. ARGV 1 its holder. */
export const unlockScript = script(
  "unlock",
  `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`,
);
