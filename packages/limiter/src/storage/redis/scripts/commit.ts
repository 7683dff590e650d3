/** The commit of a step: all writes, if every cell that was read is unchanged. */

import { SHARED_KEYS } from "../keys.ts";
import { script } from "./script.ts";

/** How long a token is known. The server forgets it later: its clock may be another. */
export const TOKEN_MS = 600_000;
const LOG_MS = 86_400_000;
const LOG_MAX = 100_000;

/**
 * KEYS: for each tag its shared keys and the key of the token, then two for each cell. ARGV: the
 * time; whether there is a token; how many tags; the cells, each with its revision; the writes; the
 * members to add to sorted sets and to remove from them. `parameters.ts` writes them.
 *
 * A script that stops is not undone, so all checks come before the first write. Answers with the
 * keys of items whose time is over: the client removes them, because their keys are not declared.
 */
export const COMMIT = script(`
local at = 0
local function arg() at = at + 1; return ARGV[at] end
local now, once, tags, reads = tonumber(arg()), arg() == '1', tonumber(arg()), tonumber(arg())
local cells = tags * ${SHARED_KEYS}
if once then
  local used = redis.call('GET', KEYS[${SHARED_KEYS}])
  if used and tonumber(used) > now - ${TOKEN_MS} then return {'repeated'} end
end
for i = 1, reads do
  local item = redis.call('GET', KEYS[cells + 2 * i - 1])
  local revision = item and redis.sha1hex(item .. (redis.call('GET', KEYS[cells + 2 * i]) or ''))
  if (revision or '') ~= arg() then return {'changed'} end
end
local writes = tonumber(arg())
if once and writes > 0 then
  redis.call('SET', KEYS[${SHARED_KEYS}], string.format('%.0f', now), 'PX', ${2 * TOKEN_MS})
end
local swept, logged, second = {}, {}, math.floor(now / 1000)
for i = 1, writes do
  local cell, home = cells + 2 * tonumber(arg()) - 1, (tonumber(arg()) - 1) * ${SHARED_KEYS}
  local name = arg()
  local item, ttl, log, before = arg(), arg(), arg(), arg()
  local numbers = tonumber(arg())
  if item == '' then redis.call('DEL', KEYS[cell]) else redis.call('SET', KEYS[cell], item) end
  if numbers == 0 then
    redis.call('DEL', KEYS[cell + 1])
  else
    local row = {arg(), arg(), arg(), arg()}
    for j = 1, numbers do row[4 + j] = tonumber(arg()) end
    redis.call('SET', KEYS[cell + 1], cmsgpack.pack(row))
  end
  if ttl ~= '' then redis.call('ZADD', KEYS[home + 6], ttl, name)
  else redis.call('ZREM', KEYS[home + 6], name) end
  swept[home] = (swept[home] or 0) + 2
  if log ~= '0' then
    local number = redis.call('INCR', KEYS[home + 8])
    redis.call('XADD', KEYS[home + 7], string.format('%.0f', number), 'k', name,
      'o', log, 't', string.format('%.0f', now), 'b', before, 'a', item)
    logged[home] = (logged[home] or 0) + 2
  end
end
for i = 1, tonumber(arg()) do
  local set, add, member = KEYS[tonumber(arg())], arg() == '1', arg()
  if add then redis.call('ZADD', set, 0, member) else redis.call('ZREM', set, member) end
end
for home, count in pairs(logged) do
  local log = KEYS[home + 7]
  for _, entry in ipairs(redis.call('XRANGE', log, '-', '+', 'COUNT', count)) do
    local isOld = tonumber(entry[2][6]) <= now - ${LOG_MS}
    if not isOld and redis.call('XLEN', log) <= ${LOG_MAX} then break end
    redis.call('XDEL', log, entry[1])
  end
  redis.call('PEXPIRE', log, ${2 * LOG_MS})
end
local answer = {'done'}
for home, count in pairs(swept) do
  local over = string.format('(%.0f', second)
  local found = redis.call('ZRANGE', KEYS[home + 6], '-inf', over, 'BYSCORE', 'LIMIT', 0, count)
  for _, name in ipairs(found) do answer[#answer + 1] = name end
end
return answer`);
