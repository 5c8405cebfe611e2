/**
 * The scripts that run in Redis: one for looking up, storing, bumping, and synchronising.
 *
 * All keys of a script belong to one upstream and are in one slot of a Cluster. The hash `g` of an upstream holds its
 * order: `born` (token of when the hash was made), `last` (highest token of a bump), `high` (highest token given to a
 * load), `alive` (when a replica last synchronised), and for each field, with a colon in front, the token of its last
 * bump; `*` is a field.
 *
 * Whichever script finds no hash, or a foreign value, makes a new one with everything over: after a flush, an
 * eviction or a failover to an empty server nothing older comes back. A token is above every other one given out for
 * the upstream, here or, as far as the asking replica knows (`floor`), by the server before this one: so it is also
 * above them when the clock of Redis goes back. `high` is written at each look-up for that reason: a bump must be
 * above the loads that began before it, by whatever clock.
 *
 * *Never* unbounded: everything written has a time to live.
 */
import { FIELD_MAX_BYTES, HEAD_BYTES, MAGIC, URIS_MAX_BYTES } from './envelope.ts';

/** Tokens are below this, so that sums of them are exact in Lua's doubles; reached in the year 2255. */
export const TOKEN_MAX = 9_000_000_000_000_000;
/** A hash lives for so long after a script last wrote to it; synchronising replicas keep it alive. */
export const HASH_TTL_MS = 172_800_000;
/** Fields of a hash. Beyond them everything of the upstream is over, and they are forgotten. */
export const FIELDS_MAX = 10_000;
/**
 * A replica that starts trusts what it finds only if another one was there so short a time ago. Otherwise Redis may
 * have come back with old data (a host that rebooted), and in any case nobody heard what the upstream announced.
 */
export const ABSENT_MAX_MS = 10_000;

/**
 * `open(g, floor)` → the state, made where missing. `keep(g)` gives the hash its time to live.
 *
 * Both begin with a write that needs no memory (DEL, PEXPIRE): when Redis is out of memory it refuses the first write
 * of a script only, and what keeps the order must be written. Entries need not: STORE calls no `keep`, and is refused.
 */
const COMMON = `
local TOKEN_MAX = ${TOKEN_MAX}
local function text(n) return string.format('%.0f', n) end
local function number(value)
  local n = value and string.match(value, '^%d+$') and tonumber(value)
  if n and n < TOKEN_MAX then return n end
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local function keep(g) redis.call('PEXPIRE', g, ${HASH_TTL_MS}) end
local function open(g, floor)
  local found = redis.pcall('HMGET', g, 'born', 'last', 'high', 'alive', ':*')
  if not found.err then
    local s = { born = number(found[1]), last = number(found[2]), high = number(found[3]),
      alive = number(found[4]), all = found[5] and number(found[5]) or 0 }
    if s.born and s.last and s.high and s.alive and (not found[5] or s.all > 0) then
      s.token = math.max(now, s.last + 1, s.high + 1, floor + 1)
      return s
    end
  elseif not string.find(found.err, 'WRONGTYPE', 1, true) then
    error(found.err, 0)
  end
  redis.call('DEL', g)
  local born = math.max(now, floor + 1)
  local t = text(born)
  redis.call('HSET', g, 'born', t, 'last', t, 'high', t, 'alive', text(now))
  keep(g)
  return { born = born, last = born, high = born, alive = now, all = 0, token = born + 1 }
end
local function highest(g, floor, fields)
  for at = 1, #fields, 1000 do
    local names = {}
    for i = at, math.min(at + 999, #fields) do names[#names + 1] = ':' .. fields[i] end
    for _, mark in ipairs(redis.call('HMGET', g, unpack(names))) do
      if mark then floor = math.max(floor, number(mark) or TOKEN_MAX) end
    end
  end
  return floor
end
`;

/**
 * KEYS g, slot…; ARGV floor, bytes of an envelope at most, then for each slot the count of its fields and they.
 * → token, born, count of corrupt entries, value or nil of each slot.
 */
export const LOOKUP = `${COMMON}
local MOST = tonumber(ARGV[2])
local s = open(KEYS[1], tonumber(ARGV[1]))
local base = math.max(s.born, s.all)
local corrupt = 0
local function fieldsOf(raw)
  if string.sub(raw, 1, ${MAGIC.length}) ~= '${MAGIC}' then return end
  local token = number(string.sub(raw, 6, 21))
  local length = number(string.sub(raw, 38, 43))
  if not token or token >= s.token or not length or length > ${URIS_MAX_BYTES} then return end
  local fields, at, stop = {}, ${HEAD_BYTES} + 1, ${HEAD_BYTES} + length
  if #raw < stop then return end
  while at <= stop do
    local size = number(string.sub(raw, at, at + 2))
    if not size or size > ${FIELD_MAX_BYTES} or at + 2 + size > stop then return end
    fields[#fields + 1] = string.sub(raw, at + 3, at + 2 + size)
    at = at + 3 + size
  end
  return token, fields
end
local function living(key, fields)
  local size = redis.pcall('STRLEN', key)
  if size == 0 then return false end
  if type(size) == 'number' and size <= MOST then
    local raw = redis.call('GET', key)
    local token, uris = fieldsOf(raw)
    if token then
      local floor = highest(KEYS[1], base, fields)
      return token > floor and token > highest(KEYS[1], floor, uris) and raw
    end
  end
  corrupt = corrupt + 1
  return false
end
local reply = { s.token, s.born, 0 }
local arg = 3
for slot = 2, #KEYS do
  local fields = {}
  local count = tonumber(ARGV[arg])
  for i = 1, count do fields[i] = ARGV[arg + i] end
  arg = arg + count + 1
  reply[2 + slot] = living(KEYS[slot], fields)
end
reply[3] = corrupt
keep(KEYS[1])
redis.call('HSET', KEYS[1], 'high', text(s.token))
return reply
`;

/**
 * KEYS g, slot; ARGV floor, token, born as it was when the token was given, milliseconds to keep, envelope, field…
 * → 1 stored, 0 superseded.
 */
export const STORE = `${COMMON}
local s = open(KEYS[1], tonumber(ARGV[1]))
local token = number(ARGV[2])
if not token or number(ARGV[3]) ~= s.born then return 0 end
local fields = {}
for i = 6, #ARGV do fields[#fields + 1] = ARGV[i] end
if token <= highest(KEYS[1], math.max(s.born, s.all), fields) then return 0 end
local there = redis.pcall('GETRANGE', KEYS[2], 0, ${HEAD_BYTES - 1})
if type(there) == 'string' and string.sub(there, 1, ${MAGIC.length}) == '${MAGIC}' then
  local other = number(string.sub(there, 6, 21))
  if other and other >= token and other < s.token then return 0 end
end
redis.call('SET', KEYS[2], ARGV[5], 'PX', ARGV[4])
return 1
`;

/**
 * KEYS g; ARGV floor, channel, beginning of the message, field…
 * → token, token of the bump before, born.
 */
export const BUMP = `${COMMON}
local g = KEYS[1]
local s = open(g, tonumber(ARGV[1]))
local t = text(s.token)
keep(g)
local writes = { 'last', t, 'high', t }
if redis.call('HLEN', g) + #ARGV - 3 > ${FIELDS_MAX} then
  redis.call('DEL', g)
  writes = { 'last', t, 'high', t, 'born', text(s.born), 'alive', text(s.alive), ':*', t }
else
  for i = 4, #ARGV do
    writes[#writes + 1] = ':' .. ARGV[i]
    writes[#writes + 1] = t
  end
end
redis.call('HSET', g, unpack(writes))
keep(g)
redis.call('PUBLISH', ARGV[2], ARGV[3] .. ',"t":"' .. t .. '","p":"' .. text(s.last) .. '"}')
return { s.token, s.last, s.born }
`;

/**
 * KEYS g; ARGV highest token of a bump known, highest token given to a load, both 0 for a replica that starts.
 * A server that knows less than its replicas has lost bumps: everything is over.
 * → last, last as it was found, born, now, 1 when everything is over.
 */
export const SYNC = `${COMMON}
local g = KEYS[1]
local seen, given = tonumber(ARGV[1]), tonumber(ARGV[2])
local s = open(g, math.max(seen, given))
local last, raised = s.last, 0
keep(g)
if s.last < seen or (seen == 0 and now - s.alive > ${ABSENT_MAX_MS} * 1000) then
  raised, last = 1, s.token
  local t = text(last)
  redis.call('HSET', g, 'last', t, 'high', t, ':*', t)
elseif given > s.high then
  redis.call('HSET', g, 'high', text(given))
end
redis.call('HSET', g, 'alive', text(now))
return { last, s.last, s.born, math.max(s.token, last), raised }
`;
